/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* `patchbay stack`: prints the open calls of each thread of a process. Reads the calls from the
 * ring, the memory that the process shares with its recorder. The process isn't stopped, and does
 * no work for the command. */
#include <string.h>

#include "cli/cli.h"
#include "cli/session_find.h"
#include "cli/session_memory.h"
#include "cli/temporary.h"
#include "control/control.h"
#include "reader/snapshot.h"
#include "view/options.h"

struct stack {
	struct pb_view_options common;
	uint32_t pid;
	uint32_t image;		/* number of the process's image */
	uint32_t shown;		/* the process that is shown if there is no --tid: its pid as it
				 * sees it itself */
	char dir[CLI_TEMPORARY];	/* directory with the copy of the open calls; "": not made
					 * yet */
};

static const struct argp_option options[] = {
	{ "pid", 'p', "PID", 0, "The process; the option's name may be left out", 0 },
	{ 0 }
};

static error_t stack_parse(int key, char *arg, struct argp_state *state)
{
	struct stack *s = state->input;

	switch (key) {
	case ARGP_KEY_INIT:
		state->child_inputs[0] = &s->common;
		return 0;
	case 'p':
	case ARGP_KEY_ARG:
		return cli_session_pid("stack", arg, &s->pid);
	case ARGP_KEY_END:
		if (s->common.dir)
			argp_failure(state, 2, 0, "-d %s: shows a process; for a recording say "
				     "patchbay info --open -d %s", s->common.dir, s->common.dir);
		return 0;
	}
	return ARGP_ERR_UNKNOWN;
}

static const struct argp_child children[] = { { &pb_view_argp, 0, NULL, 0 }, { 0 } };
static const struct argp argp = {
	.options = options,
	.parser = stack_parse,
	.args_doc = "[-p] PID",
	.doc = "Show the calls that each thread of a traced process is in. The process must be "
	       "attached, or run by `patchbay record --serve' or `patchbay flight'. It isn't "
	       "stopped.",
	.children = children,
};

static int take(void *input)
{
	struct pb_snapshot snapshot;
	struct stack *s = input;
	struct pb_control *c;
	int ret;

	if (cli_session_find("stack", s->pid, &c))
		return 1;
	ret = cli_temporary_make("stack", s->dir);
	if (!ret)
		ret = cli_session_snapshot("stack", c, CLI_SNAPSHOT_OPEN, s->dir, &snapshot);
	s->shown = pb_control_pid(c);
	s->image = pb_control_image(c);
	pb_control_close(c);
	s->common.dir = s->dir;
	return ret;
}

static int show(void *input, struct pb_view *v)
{
	struct stack *s = input;

	/* Show only this process, because a session may have several. Its number is set only now,
	 * after the numbers of --tid were checked: a number without a record is an error there, but
	 * this process may have recorded nothing yet. If the process runs in a container, its
	 * records have its number there. Another container may have the same number, but not the
	 * same image. */
	if (!v->nr_tids) {
		v->image = pb_data_image(v->data, s->image);
		if (v->image)
			s->shown = v->data->images[v->image].pid;
		v->tids = &s->shown;
		v->nr_tids = 1;
	}
	return pb_view_stacks(v);
}

static int stack_run(int argc, char **argv)
{
	static const struct pb_view_command command = { "stack", &argp, take, show };
	static struct stack s;
	int ret = pb_view_run(&command, argc, argv, &s, &s.common);

	if (*s.dir)
		cli_temporary_remove(s.dir);
	return ret;
}

const struct pb_command pb_command_stack = {
	.name = "stack",
	.summary = "Show the calls that the threads of a process are in",
	.argp = &argp,
	.run = stack_run,
};
