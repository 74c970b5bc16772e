/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* `patchbay snapshot`: writes what the buffer of a process has now into a data directory. The
 * process and its recording go on meanwhile. */
#include <stdio.h>

#include "cli/cli.h"
#include "cli/session_find.h"
#include "cli/session_memory.h"
#include "control/control.h"
#include "reader/kept_calls.h"
#include "reader/say.h"
#include "reader/snapshot.h"
#include "recorder/texts.h"

struct snapshot {
	const char *dir;
	uint32_t pid;
	bool quiet, usage_error;
};

static const struct argp_option options[] = {
	{ "pid", 'p', "PID", 0, "The process; the option's name may be left out", 0 },
	{ "data", 'd', "DIR", 0, "Where the data goes (" PB_DEFAULT_DIR ")", 1 },
	{ "quiet", 'q', 0, 0, "Print only errors", 1 },
	{ 0 }
};

static error_t snapshot_parse(int key, char *arg, struct argp_state *state)
{
	struct snapshot *s = state->input;
	uint64_t n;

	switch (key) {
	case 'd':
		s->dir = arg;
		return 0;
	case 'q':
		s->quiet = true;
		return 0;
	case 'p':
	case ARGP_KEY_ARG:
		if (pb_control_parse_u64(arg, INT32_MAX, &n) || !n)
			s->usage_error = pb_error("snapshot", "%s: not a process number; patchbay "
						  "ps lists the processes", arg);
		else if (s->pid)
			s->usage_error = pb_error("snapshot", "%s: one process at a time", arg);
		s->pid = (uint32_t)n;
		return 0;
	}
	return ARGP_ERR_UNKNOWN;
}

static const struct argp snapshot_argp = {
	.options = options,
	.parser = snapshot_parse,
	.args_doc = "[-p] PID",
	.doc = "Write the newest records of a process that is attached or recorded with "
	       "--overwrite. Its recording goes on.",
};

static int snapshot_run(int argc, char **argv)
{
	struct snapshot o = { .dir = PB_DEFAULT_DIR };
	char calls[32] = "?", bytes[32], missed[64] = "";
	struct pb_snapshot s;
	struct pb_control *c;
	uint64_t kept;

	if (argp_parse(&snapshot_argp, argc, argv, ARGP_IN_ORDER, NULL, &o) || o.usage_error)
		return 2;
	if (cli_session_find("snapshot", o.pid, &c))
		return 1;
	int ret = cli_session_snapshot("snapshot", c, CLI_SNAPSHOT_ALL, o.dir, &s);
	o.pid = pb_control_pid(c);
	pb_control_close(c);
	if (ret || o.quiet)
		return ret;
	if (!pb_kept_calls(o.dir, &kept))
		record_format_number(kept, calls, sizeof(calls));
	record_format_bytes(s.bytes, bytes, sizeof(bytes));
	if (s.missed)
		snprintf(missed, sizeof(missed), ", %llu chunks changed meanwhile",
			 (unsigned long long)s.missed);
	pb_say(NULL, "%s calls of %u in %s (%s%s); the recording goes on", calls, o.pid, o.dir,
	       bytes, missed);
	return 0;
}

const struct pb_command pb_command_snapshot = {
	.name = "snapshot",
	.summary = "Write the newest records of a process to a data directory",
	.argp = &snapshot_argp,
	.run = snapshot_run,
};
