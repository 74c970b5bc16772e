/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* `patchbay info`: prints what was recorded, how much, and how the recording ended. */
#include <string.h>

#include "cli/cli.h"
#include "view/options.h"

enum { OPT_OPEN = 0x2000 };

struct info {
	struct pb_view_options common;
	bool json, open;
};

static const struct argp_option options[] = {
	{ "format", 'f', "FORMAT", 0, "text or json (text)", 1 },
	{ "open", OPT_OPEN, NULL, 0, "The calls that each thread was in when the recording ended",
		1 },
	{ 0 }
};

static error_t info_parse(int key, char *arg, struct argp_state *state)
{
	struct info *i = state->input;

	switch (key) {
	case ARGP_KEY_INIT:
		state->child_inputs[0] = &i->common;
		return 0;
	case 'f':
		if (strcmp(arg, "text") && strcmp(arg, "json"))
			argp_failure(state, 2, 0, "--format=%s: choose text or json", arg);
		i->json = !strcmp(arg, "json");
		return 0;
	case OPT_OPEN:
		i->open = true;
		return 0;
	}
	return ARGP_ERR_UNKNOWN;
}

static const struct argp_child children[] = { { &pb_view_argp }, { 0 } };
static const struct argp argp = {
	options, info_parse, NULL,
	"Shows what was recorded: the program, how it ended, calls, losses, modules.", children
};

static int check(void *input)
{
	struct info *i = input;

	i->common.no_pager |= i->json;
	return 0;
}

static int info_show(void *input, struct pb_view *v)
{
	const struct info *i = input;

	return pb_view_info(v, i->json, i->open);
}

static int info_run(int argc, char **argv)
{
	static const struct pb_view_command command = { "info", &argp, check, info_show };
	static struct info i;

	return pb_view_run(&command, argc, argv, &i, &i.common);
}

const struct pb_command pb_command_info = {
	.name = "info",
	.summary = "Show what was recorded and how it ended",
	.argp = &argp,
	.run = info_run,
};
