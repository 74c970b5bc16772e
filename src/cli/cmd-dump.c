/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* `patchbay dump`: prints the recorded calls in formats for other tools. */
#include <string.h>

#include "cli/cli.h"
#include "view/options.h"

/* All formats but the default: X(name, view, the note in --help). */
#define FORMATS(X) \
	X("chrome", pb_view_chrome, " (Trace Event JSON)") \
	X("flame-graph", pb_view_flame, " (folded stacks, self time in ns)") \
	X("graphviz", pb_view_dot, "")

static const struct {
	const char *name;
	int (*view)(const struct pb_view *v);
} formats[] = {
	{ "raw", pb_view_raw },
#define X(name, view, what) { name, view },
	FORMATS(X)
#undef X
	{ "text", pb_view_raw },	/* another name for raw, which isn't documented */
};

const char *pb_dump_format(size_t i)
{
	return i < sizeof(formats) / sizeof(formats[0]) - 1 ? formats[i].name : NULL;
}

struct dump {
	struct pb_view_options common;
	int (*view)(const struct pb_view *v);
};

static const struct argp_option options[] = {
#define X(name, view, what) ", " name what
	{ "format", 'f', "FORMAT", 0, "raw (the default)" FORMATS(X), 1 },
#undef X
	{ 0 }
};

static error_t dump_parse(int key, char *arg, struct argp_state *state)
{
	struct dump *d = state->input;

	switch (key) {
	case ARGP_KEY_INIT:
		state->child_inputs[0] = state->child_inputs[1] = &d->common;
		return 0;
	case 'f':
		for (size_t i = 0; i < sizeof(formats) / sizeof(formats[0]); i++)
			if (!strcmp(arg, formats[i].name)) {
				d->view = formats[i].view;
				return 0;
			}
#define X(name, view, what) ", " name
		argp_failure(state, 2, 0, "--format=%s: choose one of raw" FORMATS(X), arg);
#undef X
		return 0;
	}
	return ARGP_ERR_UNKNOWN;
}

static const struct argp_child children[] = {
	{ &pb_view_argp_select }, { &pb_view_argp }, { 0 }
};
static const struct argp argp = {
	options, dump_parse, NULL, "Writes the recorded calls in a format for other programs.",
	children
};

static int check(void *input)
{
	struct dump *d = input;
	bool raw = d->view == pb_view_raw;

	if (raw && (d->common.nr_filters || d->common.max_depth || d->common.min_time)) {
		pb_error("dump",
			 "raw shows each record as it is: -F, -N, -D and -t are for the other "
			 "formats");
		return 2;
	}
	d->common.no_pager |= !raw;
	return 0;
}

static int dump_show(void *input, struct pb_view *v)
{
	const struct dump *d = input;

	if (d->view == pb_view_chrome && v->data->clock.none)
		return pb_error("dump",
				"chrome needs times, and none were recorded (--clock=none)");
	return d->view(v);
}

static int dump_run(int argc, char **argv)
{
	static const struct pb_view_command command = { "dump", &argp, check, dump_show };
	static struct dump d;

	d.view = pb_view_raw;
	return pb_view_run(&command, argc, argv, &d, &d.common);
}

const struct pb_command pb_command_dump = {
	.name = "dump",
	.summary = "Write the recorded calls for other programs",
	.argp = &argp,
	.run = dump_run,
};
