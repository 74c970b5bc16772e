/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* `patchbay snapshot`: copies the records that a process's buffer holds at this moment to a data
 * directory. The process and its recording go on. */
#include <stdio.h>

#include "cli/cli.h"
#include "cli/session_find.h"
#include "cli/session_memory.h"
#include "control/control.h"
#include "reader/say.h"
#include "reader/snapshot.h"
#include "recorder/snapshot_text.h"

struct snapshot {
	const char *dir;
	uint32_t pid;
	bool quiet;
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

	switch (key) {
	case 'd':
		s->dir = arg;
		return 0;
	case 'q':
		s->quiet = true;
		return 0;
	case 'p':
	case ARGP_KEY_ARG:
		return cli_session_pid("snapshot", arg, &s->pid);
	}
	return ARGP_ERR_UNKNOWN;
}

static const struct argp snapshot_argp = {
	.options = options,
	.parser = snapshot_parse,
	.args_doc = "[-p] PID",
	.doc = "Write the newest records of a process that is attached, or that `patchbay flight' "
	       "or `patchbay record --overwrite --serve' records. Its recording goes on.",
};

static int snapshot_run(int argc, char **argv)
{
	struct snapshot o = { .dir = PB_DEFAULT_DIR };
	struct pb_snapshot s;
	struct pb_control *c;
	char text[100];

	if (argp_parse(&snapshot_argp, argc, argv, ARGP_IN_ORDER, NULL, &o))
		return 2;
	if (cli_session_find("snapshot", o.pid, &c))
		return 1;
	int ret = cli_session_snapshot("snapshot", c, CLI_SNAPSHOT_ALL, o.dir, &s);
	o.pid = pb_control_pid(c);
	pb_control_close(c);
	if (ret || o.quiet)
		return ret;
	pb_say(NULL, "snapshot of %u in %s: %s; the recording goes on", o.pid, o.dir,
	       record_snapshot_text(&s, o.dir, text, sizeof(text)));
	return 0;
}

const struct pb_command pb_command_snapshot = {
	.name = "snapshot",
	.summary = "Write the newest records of a process to a data directory",
	.argp = &snapshot_argp,
	.run = snapshot_run,
};
