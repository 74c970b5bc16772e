/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Writes the text that `patchbay info` shows. The text has a line for each fact. If the process ran
 * already, the text has the working directory and the user of the process, not those of the
 * recorder. Paths and patterns may contain control characters. A newline in a value would begin
 * another line, which could be a false fact. So control characters are replaced in all values. (In
 * the command line, they are escaped as in a shell.)
 */
#include <errno.h>
#include <limits.h>
#include <pwd.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#include "base/base.h"
#include "base/clean_text.h"
#include "recorder/session_meta.h"
#include "reader/datadir_writer.h"
#include "recorder/settings.h"
#include "recorder/target.h"
#include "recorder/texts.h"

/* Writes the line KEY=VALUE. Replaces control characters of the value by `with`. */
__attribute__((format(printf, 4, 5)))
static void put_fact(FILE *f, const char *key, char with, const char *fmt, ...)
{
	char *value;
	va_list ap;

	va_start(ap, fmt);
	if (vasprintf(&value, fmt, ap) >= 0) {
		pb_text_clean(value, with, 0);
		fprintf(f, "%s=%s\n", key, value);
		free(value);
	}
	va_end(ap);
}

static void find_cwd(const struct record_target *t, char cwd[PATH_MAX])
{
	char link[40];

	if (!t->pid) {
		if (!getcwd(cwd, PATH_MAX))
			*cwd = 0;
		return;
	}
	snprintf(link, sizeof(link), "/proc/%d/cwd", (int)t->pid);
	ssize_t n = readlink(link, cwd, PATH_MAX - 1);
	cwd[n > 0 ? n : 0] = 0;
}

static uid_t find_user(const struct record_target *t)
{
	char path[40];
	struct stat st;

	snprintf(path, sizeof(path), "/proc/%d", (int)t->pid);
	return t->pid && !stat(path, &st) ? st.st_uid : getuid();
}

static void print_program(FILE *f, const struct record_options *o, const struct record_target *t)
{
	char cwd[PATH_MAX];

	fputs("cmdline=", f);
	for (char **a = o->argv; *a; a++) {
		if (a != o->argv)
			putc(' ', f);
		record_print_quoted(f, *a);
	}
	putc('\n', f);
	find_cwd(t, cwd);
	put_fact(f, "exe", '?', "%s", t->exe);
	put_fact(f, "cwd", '?', "%s", cwd);
}

static void print_rest(FILE *f, const struct record_options *o, const struct record_target *t)
{
	static const char *const modes[] = { "discard", "overwrite", "wait" };
	struct passwd *pw = getpwuid(find_user(t));
	char host[256] = "", when[40] = "";
	time_t now = time(NULL);
	struct utsname u;

	gethostname(host, sizeof(host) - 1);
	uname(&u);
	strftime(when, sizeof(when), "%Y-%m-%dT%H:%M:%S%z", localtime(&now));
	put_fact(f, "host", '?', "%s", host);
	put_fact(f, "user", '?', "%s", pw ? pw->pw_name : "");
	fprintf(f, "kernel=%s %s\ntracer=%s\nclock=%s\nmode=%s\n", u.sysname, u.release,
		o->tracer, o->clock ? o->clock : "x86-tsc", modes[o->mode]);
	fprintf(f, "version=%s\nstarted=%s\nbuffer=%llu\ncpus=%ld\n", PB_VERSION, when,
		(unsigned long long)o->buffer, sysconf(_SC_NPROCESSORS_ONLN));
	for (const char *p = o->writes.buf, *e = p + o->writes.len; p < e;) {
		const char *op = p + strlen(p) + 1, *value = op + strlen(op) + 1;

		/* in control files, a newline separates words as a blank does */
		put_fact(f, "option", ' ', "%s %s %s", p, op, value);
		p = value + strlen(value) + 1;
	}
}

int record_session_meta(const struct record_options *o, const struct record_target *t,
			struct pb_datadir *d)
{
	char *text = NULL;
	size_t len = 0;
	FILE *f = open_memstream(&text, &len);

	if (!f)
		return -ENOMEM;
	print_program(f, o, t);
	print_rest(f, o, t);
	fclose(f);
	int ret = pb_datadir_meta(d, PB_META_SESSION, text, len, NULL, 0);
	free(text);
	return ret;
}
