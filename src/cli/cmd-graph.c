/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* `patchbay graph`: prints the tree of all calls, or of the calls around one function. */
#include "cli/cli.h"
#include "view/options.h"

struct graph {
	struct pb_view_options common;
	bool focus;
};

static error_t graph_parse(int key, char *arg, struct argp_state *state)
{
	struct graph *g = state->input;

	switch (key) {
	case ARGP_KEY_INIT:
		state->child_inputs[0] = state->child_inputs[1] = &g->common;
		return 0;
	case ARGP_KEY_ARG:
		pb_view_add_filter(state, &g->common, PB_FILTER_FOCUS, arg);
		g->focus = true;
		return 0;
	}
	return ARGP_ERR_UNKNOWN;
}

static const struct argp_child children[] = {
	{ &pb_view_argp_select }, { &pb_view_argp }, { 0 }
};
static const struct argp argp = {
	NULL, graph_parse, "[FUNC...]",
	"Shows the tree of calls with their times; with FUNC, its callers and callees.",
	children
};

static int graph_show(void *input, struct pb_view *v)
{
	const struct graph *g = input;

	return pb_view_graph(v, g->focus);
}

static int graph_run(int argc, char **argv)
{
	static const struct pb_view_command command = { "graph", &argp, NULL, graph_show };
	static struct graph g;

	return pb_view_run(&command, argc, argv, &g, &g.common);
}

const struct pb_command pb_command_graph = {
	.name = "graph",
	.summary = "Show the tree of calls",
	.argp = &argp,
	.run = graph_run,
};
