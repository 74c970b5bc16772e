/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* `patchbay ps`: prints a line of at most 80 columns for each process that has control files. The
 * tracer and the number of patched functions come from the process's own control files; the rest
 * comes from its recorder. If a process doesn't answer, these two columns have a question mark. If
 * a recorder doesn't answer, an error is printed instead of a line. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "abi/messages.h"
#include "base/clean_text.h"
#include "cli/cli.h"
#include "cli/session_find.h"
#include "control/control.h"
#include "recorder/proc.h"
#include "recorder/session_dir.h"
#include "recorder/texts.h"

#define DAY 86400

static error_t ps_parse(int key, char *arg, struct argp_state *state)
{
	if (key != ARGP_KEY_ARG)
		return ARGP_ERR_UNKNOWN;
	pb_error("ps", "%s: ps takes no argument", arg);
	return EINVAL;
}

static const struct argp ps_argp = {
	.parser = ps_parse,
	.doc = "List the processes that are attached, or that `patchbay record --serve' records.",
};

/* Returns the first line of a control file, which the caller frees. NULL: the process doesn't
 * answer. */
static char *read_line(struct pb_control *c, const char *file)
{
	char err[600], *text;
	size_t len;

	if (pb_control_read(c, file, &text, &len, err, sizeof(err)))
		return NULL;
	text[strcspn(text, "\n")] = 0;
	pb_text_clean(text, '?', 0);
	return text;
}

/* Formats a time: the time of day or, if it is more than a day ago, the date. */
static void format_since(uint64_t since, char *to, size_t size)
{
	time_t then = (time_t)since, now = time(NULL);
	struct tm tm;

	if (!localtime_r(&then, &tm) ||
	    !strftime(to, size, now - then < DAY ? "%H:%M:%S" : "%d %b", &tm))
		snprintf(to, size, "?");
}

/* Formats a count in at most seven columns. */
static void format_count(uint64_t n, char *to, size_t size)
{
	static const char units[] = " kMGTPE";
	unsigned u = 0;

	for (; n >= 1000000; n /= 1000)
		u++;
	snprintf(to, size, u ? "%llu%c" : "%llu", (unsigned long long)n, units[u]);
}

static void print_process(pid_t pid, uint32_t recorder, const struct pb_msg_status *st,
			  const char *tracer, const char *patched)
{
	char comm[RECORD_COMM] = "?", since[32], bytes[32], lost[32];

	record_read_comm(pid, pid, comm);
	pb_text_clean(comm, '?', 0);
	format_since(st->since, since, sizeof(since));
	record_format_bytes(st->bytes, bytes, sizeof(bytes));
	format_count(st->lost, lost, sizeof(lost));
	printf("%7d %-15s %8u %-8.8s %-14.14s %7s %8s %6s\n", (int)pid, comm, recorder, since,
	       tracer, patched, bytes, lost);
}

struct list {
	unsigned nr;		/* count of processes */
	bool failed;		/* a recorder didn't answer */
};

static void show_session(struct list *l, struct pb_control *c, const struct pb_msg_status *st)
{
	char *tracer = read_line(c, "current_tracer"), patched[16] = "?";
	char *totals = tracer ? read_line(c, "dyn_ftrace_total_info") : NULL;
	unsigned sites, done;

	if (totals && sscanf(totals, "%u sites, %u patched", &sites, &done) == 2)
		format_count(done, patched, sizeof(patched));
	if (!l->nr++)
		printf("%7s %-15s %8s %-8s %-14s %7s %8s %6s\n", "PID", "NAME", "RECORDER",
		       "SINCE", "TRACER", "PATCHED", "DATA", "LOST");
	print_process((pid_t)st->pid, pb_control_recorder(c), st, tracer ? tracer : "?", patched);
	free(tracer);
	free(totals);
}

static bool show(void *arg, const char *path)
{
	struct pb_control *c = NULL;
	struct list *l = arg;
	struct pb_msg_status st;
	char why[400], err[600];
	int ret = pb_control_open(&c, path, 0, err, sizeof(err));

	if (!ret) {
		pb_control_wait_less(c);	/* the next process may answer */
		ret = pb_control_status(c, &st, why, sizeof(why));
		if (ret)
			snprintf(err, sizeof(err), "%s: %s", path, why);
		else
			show_session(l, c, &st);
	}
	/* -ESRCH: the session has no process that is ready */
	if (ret && ret != -ESRCH && !cli_session_ended(ret)) {
		l->failed = true;
		pb_error("ps", "%s", err);
	}
	pb_control_close(c);
	return false;
}

static int ps_run(int argc, char **argv)
{
	struct list l = { 0 };

	if (argp_parse(&ps_argp, argc, argv, ARGP_IN_ORDER, NULL, NULL))
		return 2;
	record_session_each(show, &l);
	if (!l.nr && !l.failed)
		puts("no process is attached");
	return l.failed;
}

const struct pb_command pb_command_ps = {
	.name = "ps",
	.summary = "List the processes that are attached",
	.argp = &ps_argp,
	.run = ps_run,
};
