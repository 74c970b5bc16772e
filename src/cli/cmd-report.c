/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* `patchbay report`: prints the times and calls of each function. */
#include <string.h>

#include "cli/cli.h"
#include "view/options.h"

enum { OPT_SORT = 0x2000, OPT_FORMAT, OPT_DIFF };

struct report {
	struct pb_view_options common;
	enum pb_report_sort sort;
	enum pb_report_format format;
	const char *diff;
};

static const struct argp_option options[] = {
	{ "sort", 's', "KEY", 0, "total (default), self, calls, min, max, avg or func", 1 },
	{ "format", 'f', "FORMAT", 0, "text (default), csv or json", 1 },
	{ "diff", OPT_DIFF, "DIR", 0, "Compare with the earlier recording in DIR", 1 },
	{ 0 }
};

static int choose(const char *arg, const char *const *names)
{
	for (int i = 0; names[i]; i++)
		if (!strcmp(arg, names[i]))
			return i;
	return -1;
}

static error_t report_parse(int key, char *arg, struct argp_state *state)
{
	static const char *const sorts[] = { "total", "self", "calls", "min", "max", "avg", "func",
		NULL };
	static const char *const formats[] = { "text", "csv", "json", NULL };
	struct report *r = state->input;
	int n;

	switch (key) {
	case ARGP_KEY_INIT:
		state->child_inputs[0] = state->child_inputs[1] = &r->common;
		return 0;
	case 's':
		n = choose(arg, sorts);
		if (n < 0)
			argp_failure(state, 2, 0,
				     "--sort=%s: choose total, self, calls, min, max, avg or func",
				   arg);
		r->sort = (enum pb_report_sort)n;
		return 0;
	case 'f':
		n = choose(arg, formats);
		if (n < 0)
			argp_failure(state, 2, 0, "--format=%s: choose text, csv or json", arg);
		r->format = (enum pb_report_format)n;
		return 0;
	case OPT_DIFF:
		r->diff = arg;
		return 0;
	}
	return ARGP_ERR_UNKNOWN;
}

static const struct argp_child children[] = {
	{ &pb_view_argp_select }, { &pb_view_argp }, { 0 }
};
static const struct argp argp = {
	options, report_parse, NULL,
	"Shows, for each function, its calls and the time spent in it.", children
};

static int print_diff(struct pb_view *now, const struct report *r, struct pb_report *report)
{
	struct pb_view base;
	struct pb_report former;
	int ret = pb_view_open_other(&base, &r->common, r->diff, now->out);

	if (ret)
		return ret;
	ret = pb_report_make(&base, &former);
	if (!ret) {
		ret = pb_report_diff(now, &base, &former, report, r->sort, r->format);
		pb_report_free(&former);
	}
	pb_view_close_other(&base, &r->common, now);
	return ret;
}

static int print(struct pb_view *v, const struct report *r, struct pb_report *report)
{
	if (r->diff)
		return print_diff(v, r, report);
	pb_report_sort(report, r->sort);
	if (r->format == PB_FORMAT_CSV)
		pb_report_csv(v, report);
	else if (r->format == PB_FORMAT_JSON)
		pb_report_json(v, report);
	else
		pb_report_print(v, report, r->sort);
	return 0;
}

static int check(void *input)
{
	struct report *r = input;

	/* in a table that programs read, overloaded functions must have different names */
	if (!r->common.demangle_given && r->format != PB_FORMAT_TEXT)
		r->common.demangle = PB_DEMANGLE_FULL;
	r->common.no_pager |= r->format != PB_FORMAT_TEXT;
	return 0;
}

static int report_show(void *input, struct pb_view *v)
{
	struct pb_report report;
	int ret = pb_report_make(v, &report);

	if (!ret) {
		ret = print(v, input, &report);
		pb_report_free(&report);
	}
	return ret;
}

static int report_run(int argc, char **argv)
{
	static const struct pb_view_command command = { "report", &argp, check, report_show };
	static struct report r;

	return pb_view_run(&command, argc, argv, &r, &r.common);
}

const struct pb_command pb_command_report = {
	.name = "report",
	.summary = "Show calls and times by function",
	.argp = &argp,
	.run = report_run,
};
