/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* `patchbay detach`: asks the recorder of a process to detach from it, and waits until the
 * recording has ended. */
#include <stdio.h>

#include "base/clean_text.h"
#include "cli/cli.h"
#include "cli/session_find.h"
#include "control/control.h"

static const struct argp_option options[] = {
	{ "pid", 'p', "PID", 0, "The process; the option's name may be left out", 0 },
	{ 0 }
};

static error_t detach_parse(int key, char *arg, struct argp_state *state)
{
	if (key != 'p' && key != ARGP_KEY_ARG)
		return ARGP_ERR_UNKNOWN;
	return cli_session_pid("detach", arg, state->input);
}

static const struct argp detach_argp = {
	.options = options,
	.parser = detach_parse,
	.args_doc = "[-p] PID",
	.doc = "Leave a process that was attached, or that `patchbay record --serve' records. Its "
	       "text and its signal handlers are then as before. Its recording ends. The recorded "
	       "data stays, except after an attach without --data.",
};

static int detach_run(int argc, char **argv)
{
	struct pb_control *c;
	char err[600], text[5000];
	uint32_t pid = 0;

	if (argp_parse(&detach_argp, argc, argv, ARGP_IN_ORDER, NULL, &pid))
		return 2;
	if (!pid)
		return 2 * pb_error("detach", "no process; say patchbay detach -p PID");
	if (cli_session_find("detach", pid, &c))
		return 1;
	int ret = pb_control_detach(c, text, sizeof(text), err, sizeof(err));
	pb_control_close(c);
	if (ret)
		return pb_error("detach", "%u: %s", pid, err);
	pb_text_clean(text, '?', 0);
	puts(text);
	return 0;
}

const struct pb_command pb_command_detach = {
	.name = "detach",
	.summary = "Leave a process as it was before the attach",
	.argp = &detach_argp,
	.run = detach_run,
};
