/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The text has a line for each fact. `patchbay info` shows the text. If the process ran already,
 * the text has the working directory and the user of the process, not those of the recorder. Such a
 * process may belong to another user, so control characters in its paths are replaced: a newline
 * would begin another line.
 */
#include <errno.h>
#include <limits.h>
#include <pwd.h>
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
	pb_text_clean(cwd, '?', 0);
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
	char cwd[PATH_MAX], exe[PATH_MAX];

	fputs("cmdline=", f);
	for (char **a = o->argv; *a; a++) {
		if (a != o->argv)
			putc(' ', f);
		record_print_quoted(f, *a);
	}
	memcpy(exe, t->exe, sizeof(exe));
	if (t->pid)
		pb_text_clean(exe, '?', 0);
	find_cwd(t, cwd);
	fprintf(f, "\nexe=%s\ncwd=%s\n", exe, cwd);
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
	fprintf(f, "host=%s\nkernel=%s %s\nuser=%s\ntracer=%s\nclock=%s\nmode=%s\n", host,
		u.sysname, u.release, pw ? pw->pw_name : "", o->tracer,
		o->clock ? o->clock : "x86-tsc", modes[o->mode]);
	fprintf(f, "version=%s\nstarted=%s\nbuffer=%llu\ncpus=%ld\n", PB_VERSION, when,
		(unsigned long long)o->buffer, sysconf(_SC_NPROCESSORS_ONLN));
	for (const char *p = o->writes.buf, *e = p + o->writes.len; p < e;) {
		const char *op = p + strlen(p) + 1, *value = op + strlen(op) + 1;

		fprintf(f, "option=%s %s %s\n", p, op, value);
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
