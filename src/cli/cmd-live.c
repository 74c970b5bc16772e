/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* `patchbay live`: records into a temporary directory, then replays. */
#include <string.h>

#include "base/base.h"
#include "cli/cli.h"
#include "cli/record_options.h"
#include "module/demangle.h"
#include "recorder/settings.h"

enum { OPT_DEMANGLE = 0x2000, OPT_NO_PAGER };

struct live {
	struct record_options record;
	char *argv[64];			/* the command line for replay */
	int argc;
};

static const struct argp_option options[] = {
	{ "option", 'O', "NAME", 0, "A trace option for the output (see patchbay replay)", 4 },
	{ "demangle", OPT_DEMANGLE, "HOW", 0, "Names: simple, full (with parameters) or no", 4 },
	{ "no-pager", OPT_NO_PAGER, NULL, 0, "No pager on a terminal", 4 },
	{ 0 }
};

/* Adds an option for replay. The caller must have checked the option, since replay checks its
 * options only after the program has run. */
static void pass_on(struct argp_state *state, struct live *l, const char *option, char *arg)
{
	if (l->argc + 4 > (int)pb_array_size(l->argv))
		argp_failure(state, 2, 0, "%s: too many options", option);
	l->argv[l->argc++] = (char *)option;
	if (arg)
		l->argv[l->argc++] = arg;
}

static error_t live_parse(int key, char *arg, struct argp_state *state)
{
	struct live *l = state->input;
	enum pb_demangle how;

	switch (key) {
	case ARGP_KEY_INIT:
		state->child_inputs[0] = &l->record;
		return 0;
	case 'O':
		if (!pb_replay_option(arg))
			argp_failure(state, 2, 0, "--option=%s: no such trace option", arg);
		pass_on(state, l, "-O", arg);
		return 0;
	case OPT_DEMANGLE:
		if (!pb_demangle_style(arg, &how))
			argp_failure(state, 2, 0, "--demangle=%s: choose simple, full or no", arg);
		pass_on(state, l, "--demangle", arg);
		return 0;
	case OPT_NO_PAGER:
		pass_on(state, l, "--no-pager", NULL);
		return 0;
	}
	return ARGP_ERR_UNKNOWN;
}

static const struct argp_child children[] = { { &record_common_argp }, { 0 } };
static const struct argp argp = {
	.options = options,
	.parser = live_parse,
	.args_doc = "[--] PROG [ARGS]\n-p PID",
	.doc = "Run PROG and show its calls when it exits, or show the calls of the process PID. "
	       "No data is kept.\v" RECORD_HELP_END,
	.children = children,
};

static int replay(void *arg, const char *dir)
{
	struct live *l = arg;
	l->argv[l->argc++] = "-d";
	l->argv[l->argc++] = (char *)dir;
	l->argv[l->argc] = NULL;
	return pb_command_replay.run(l->argc, l->argv);
}

static int live_run(int argc, char **argv)
{
	struct live l = { .argv = { "patchbay replay" }, .argc = 1 };
	int ret;

	record_options_init(&l.record);
	ret = argp_parse(&argp, argc, argv, ARGP_IN_ORDER, NULL, &l) ||
	      l.record.usage_error ? 2 : 0;
	if (!ret)
		ret = record_temporary(&l.record, "live", replay, &l);
	record_options_free(&l.record);
	return ret;
}

const struct pb_command pb_command_live = {
	.name = "live",
	.summary = "Run a program and show its calls when it exits",
	.argp = &argp,
	.run = live_run,
};
