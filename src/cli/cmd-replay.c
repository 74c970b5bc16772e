/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* `patchbay replay`: prints the recorded calls in the kernel's trace format. */
#include "cli/cli.h"
#include "view/options.h"

struct replay {
	struct pb_view_options common;
	const char *options[PB_VIEW_MAX_LIST];	/* -O */
	size_t nr_options;
};

#define DASH_NAME(flag, bit, name) " -" name
static const struct argp_option options[] = {
	{ "option", 'O', "NAME", 0,
		"A trace option: funcgraph-X, where -X is one of" PB_FG_OPTIONS(DASH_NAME)
		". With nofuncgraph-X the option is off", 1 },
	{ 0 }
};

bool pb_replay_option(const char *name)
{
	unsigned dummy = 0;

	return pb_fg_set(&dummy, name);
}

static error_t replay_parse(int key, char *arg, struct argp_state *state)
{
	struct replay *r = state->input;

	switch (key) {
	case ARGP_KEY_INIT:
		state->child_inputs[0] = state->child_inputs[1] = &r->common;
		return 0;
	case 'O':
		if (!pb_replay_option(arg))
			argp_failure(state, 2, 0, "--option=%s: no such trace option", arg);
		if (r->nr_options == PB_VIEW_MAX_LIST)
			argp_failure(state, 2, 0, "--option: at most %d options", PB_VIEW_MAX_LIST);
		r->options[r->nr_options++] = arg;
		return 0;
	}
	return ARGP_ERR_UNKNOWN;
}

static const struct argp_child children[] = {
	{ &pb_view_argp_select }, { &pb_view_argp }, { 0 }
};
static const struct argp argp = {
	options, replay_parse, NULL,
	"Shows the recorded calls of all threads in the order of their times, in the format of the "
	"kernel's trace file.", children
};

static int replay_show(void *input, struct pb_view *v)
{
	const struct replay *r = input;
	unsigned set = PB_FG_DEFAULT;

	if (pb_data_is_function_tracer(v->data))
		return pb_view_function_text(v);
	for (size_t i = 0; i < r->nr_options; i++)
		pb_fg_set(&set, r->options[i]);
	return pb_view_graph_text(v, set);
}

static int replay_run(int argc, char **argv)
{
	static const struct pb_view_command command = { "replay", &argp, NULL, replay_show };
	static struct replay r;

	return pb_view_run(&command, argc, argv, &r, &r.common);
}

const struct pb_command pb_command_replay = {
	.name = "replay",
	.summary = "Show the recorded calls",
	.argp = &argp,
	.run = replay_run,
};
