/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* `patchbay ps`: lists the processes that have control files. What it prints of each comes from the
 * process's own control files. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clean_text.h"
#include "cli/cli.h"
#include "control/control.h"
#include "recorder/proc.h"
#include "recorder/session_dir.h"

static const struct argp ps_argp = {
	.doc = "List the processes that are attached, or that `patchbay record --serve' records.",
};

/* Returns the first line of a control file; the caller frees it. NULL: no answer. */
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

static bool show(void *arg, const char *path)
{
	unsigned *nr = arg, sites = 0, patched = 0;
	char err[600], comm[RECORD_COMM] = "?";
	struct pb_control *c;

	if (pb_control_open(&c, path, 0, err, sizeof(err)))
		return false;
	char *tracer = read_line(c, "current_tracer");
	char *totals = read_line(c, "dyn_ftrace_total_info");
	if (totals)
		sscanf(totals, "%u sites, %u patched", &sites, &patched);
	pid_t pid = (pid_t)pb_control_pid(c);
	record_read_comm(pid, pid, comm);
	pb_text_clean(comm, '?', 0);
	if (!(*nr)++)
		printf("%7s  %-15s  %8s  %-14s  %9s  %9s\n", "PID", "NAME", "RECORDER", "TRACER",
		       "FUNCTIONS", "PATCHED");
	printf("%7d  %-15s  %8d  %-14s  %9u  %9u\n", (int)pid, comm, (int)pb_control_recorder(c),
	       tracer ? tracer : "?", sites, patched);
	free(tracer);
	free(totals);
	pb_control_close(c);
	return false;
}

static int ps_run(int argc, char **argv)
{
	unsigned nr = 0;

	if (argp_parse(&ps_argp, argc, argv, ARGP_IN_ORDER, NULL, NULL))
		return 2;
	record_session_each(show, &nr);
	if (!nr)
		puts("no process is attached");
	return fflush(stdout) ? 1 : 0;
}

const struct pb_command pb_command_ps = {
	.name = "ps",
	.summary = "List the processes that are attached",
	.argp = &ps_argp,
	.run = ps_run,
};
