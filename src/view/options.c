/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Parses the options of views, opens the directory, and runs the view. */
#include "view/options.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "control/control.h"
#include "reader/say.h"


enum { OPT_TID = 0x1000, OPT_NO_PAGER, OPT_RANGE, OPT_DEMANGLE, OPT_MATCH,
	OPT_BUFFER };

static const struct argp_option common[] = {
	{ "data", 'd', "DIR", 0, "Data directory (patchbay.data)", 8 },
	{ "directory", 0, NULL, OPTION_ALIAS | OPTION_HIDDEN, NULL, 0 },
	{ "pid", 'p', "PID", OPTION_HIDDEN, NULL, 8 },
	{ "tid", OPT_TID, "ID[,ID...]", 0, "Show these threads or processes only", 8 },
	{ "buffer", OPT_BUFFER, "ID", 0,
		"Number of the buffer (today a recording has only buffer 0)", 8 },
	{ "demangle", OPT_DEMANGLE, "HOW", 0,
		"C++ and Rust names: simple, full (with parameters) or no", 8 },
	{ "no-pager", OPT_NO_PAGER, NULL, 0, "Do not start a pager on a terminal", 8 },
	{ 0 }
};

static const struct argp_option selection[] = {
	{ "filter", 'F', "FUNC", 0, "Show FUNC and what it calls, nothing else", 4 },
	{ "notrace", 'N', "FUNC", 0, "Leave out FUNC and what it calls", 4 },
	{ "match", OPT_MATCH, "TYPE", 0, "Patterns are glob (default), regex or simple", 4 },
	{ "depth", 'D', "N", 0, "Show N levels of calls only", 4 },
	{ "time-filter", 't', "TIME", 0,
		"Show only calls of at least TIME: 5us, 1.5ms, 2s; 100 is in ns, 0.1 in s", 4 },
	{ "range", OPT_RANGE, "FROM~TO", 0,
		"Show this part of the trace only; FROM or TO may be left out", 4 },
	{ 0 }
};

void pb_view_add_filter(struct argp_state *state, struct pb_view_options *o, unsigned mark,
			const char *pattern)
{
	if (o->nr_filters == PB_VIEW_MAX_LIST)
		argp_failure(state, 2, 0, "%s: more than %d patterns", pattern, PB_VIEW_MAX_LIST);
	o->filters[o->nr_filters].mark = mark;
	o->filters[o->nr_filters++].pattern = pattern;
}

static void add_tids(struct argp_state *state, struct pb_view_options *o, char *arg)
{
	char *end = arg;

	do {
		unsigned long id = strtoul(arg, &end, 10);

		if (end == arg || (*end && *end != ',') || id > UINT32_MAX)
			argp_failure(state, 2, 0, "--tid=%s: not a thread's or process's number",
				     arg);
		if (o->nr_tids == PB_VIEW_MAX_LIST)
			argp_failure(state, 2, 0, "--tid: more than %d numbers", PB_VIEW_MAX_LIST);
		o->tids[o->nr_tids++] = (uint32_t)id;
		arg = end + 1;
	} while (*end);
}

static error_t parse_common(int key, char *arg, struct argp_state *state)
{
	struct pb_view_options *o = state->input;
	uint64_t id;

	switch (key) {
	case 'd':
		o->dir = arg;
		return 0;
	case ARGP_KEY_ARG:
		/* a command that takes arguments has already consumed them, so this one is an
		 * error */
		if (o->selects)
			argp_failure(state, 2, 0,
				     "%s: %s takes no argument; for a function say -F %s, for a "
				     "recording -d %s", arg, o->command, arg, arg);
		argp_failure(state, 2, 0, "%s: %s takes no argument; for a recording say -d %s",
			     arg, o->command, arg);
		return 0;
	case 'p':
		argp_failure(state, 2, 0,
			     "-p %s: for a process or thread of the recording say --tid=%s", arg,
			     arg);
		return 0;
	case OPT_NO_PAGER:
		o->no_pager = true;
		return 0;
	case OPT_TID:
		add_tids(state, o, arg);
		return 0;
	case OPT_BUFFER:
		if (pb_control_parse_u64(arg, UINT32_MAX, &id))
			argp_failure(state, 2, 0, "--buffer=%s: not a buffer's number", arg);
		o->buffer = (uint32_t)id;
		return 0;
	case OPT_DEMANGLE:
		if (!pb_demangle_style(arg, &o->demangle))
			argp_failure(state, 2, 0, "--demangle=%s: choose simple, full or no", arg);
		o->demangle_given = true;
		return 0;
	}
	return ARGP_ERR_UNKNOWN;
}

static void parse_range(struct pb_view_options *o, char *arg, struct argp_state *state)
{
	char *tilde = strchr(arg, '~');
	int err = !tilde;

	o->range = true;
	o->from_ns = 0;
	o->to_ns = UINT64_MAX;
	if (tilde) {
		*tilde = 0;
		err = (*arg && pb_view_parse_time(arg, &o->from_ns)) ||
		      (tilde[1] && pb_view_parse_time(tilde + 1, &o->to_ns));
		*tilde = '~';
	}
	if (err)
		argp_failure(state, 2, 0, "--range=%s: give FROM~TO, for example 1.5ms~2ms", arg);
	if (o->from_ns > o->to_ns)
		argp_failure(state, 2, 0, "--range=%s: FROM is later than TO", arg);
}

static error_t parse_selection(int key, char *arg, struct argp_state *state)
{
	struct pb_view_options *o = state->input;
	unsigned long depth;
	uint64_t ns;
	char *end;

	switch (key) {
	case ARGP_KEY_INIT:
		o->selects = true;
		return 0;
	case 'F':
		pb_view_add_filter(state, o, PB_FILTER_IN, arg);
		return 0;
	case 'N':
		pb_view_add_filter(state, o, PB_FILTER_OUT, arg);
		return 0;
	case OPT_MATCH:
		if (!pb_control_match_type(arg, &o->match))
			argp_failure(state, 2, 0, "--match=%s: choose glob, regex or simple", arg);
		return 0;
	case 'D':
		depth = strtoul(arg, &end, 10);
		if (end == arg || *end || !depth || depth > UINT32_MAX)
			argp_failure(state, 2, 0,
				     "-D %s: not a depth; give a number, for example -D 3", arg);
		o->max_depth = (uint32_t)depth;
		return 0;
	case 't':
		if (pb_view_parse_time(arg, &ns))
			argp_failure(state, 2, 0, "-t %s: not a time; say 500ns, 5us, 1.5ms or 2s",
				     arg);
		o->min_time = arg;
		return 0;
	case OPT_RANGE:
		parse_range(o, arg, state);
		return 0;
	}
	return ARGP_ERR_UNKNOWN;
}

const struct argp pb_view_argp = { common, parse_common };
const struct argp pb_view_argp_select = { selection, parse_selection };

/* Adds the digits after a decimal point to *ns. The digits are a fraction of the unit. */
static int parse_fraction(const char **text, uint64_t unit, uint64_t *ns)
{
	uint64_t weight = unit;

	if (**text != '.')
		return 0;
	for (++*text; **text >= '0' && **text <= '9'; ++*text) {
		weight /= 10;
		if (__builtin_add_overflow(*ns, weight * (uint64_t)(**text - '0'), ns))
			return -ERANGE;
	}
	return 0;
}

int pb_view_parse_time(const char *text, uint64_t *ns)
{
	static const struct { const char *name; uint64_t ns; } units[] = {
		{ "ns", 1 }, { "us", 1000 }, { "ms", 1000000 }, { "s", 1000000000 },
		{ "", 1 }, { "m", 60000000000 },
	};
	size_t number = strspn(text, "0123456789.");
	const char *fraction;
	unsigned __int128 whole = 0;

	if (!number || *text == '.')
		return -EINVAL;
	for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++) {
		uint64_t unit = units[i].ns;

		if (strcmp(text + number, units[i].name))
			continue;
		if (!*units[i].name && memchr(text, '.', number))
			unit = 1000000000;	/* without a unit, a number with a point is in
						 * seconds, as in the views' output */
		for (fraction = text; *fraction >= '0' && *fraction <= '9'; fraction++)
			if ((whole = whole * 10 + (unsigned)(*fraction - '0')) > UINT64_MAX / unit)
				return -ERANGE;
		*ns = (uint64_t)whole * unit;
		if (parse_fraction(&fraction, unit, ns))
			return -ERANGE;
		return fraction == text + number ? 0 : -EINVAL;
	}
	return -EINVAL;
}

static void set_range(struct pb_view *v, const struct pb_view_options *o)
{
	const struct pb_clock *clock = &v->data->clock;
	uint64_t end;

	if (o->from_ns)
		v->from = pb_clock_ticks(clock, o->from_ns);
	if (o->to_ns == UINT64_MAX)
		return;
	end = pb_clock_ticks(clock, o->to_ns + 1);
	v->to = end ? end - 1 : 0;
	if (!end)			/* the range ends before the clock's first tick */
		v->from = UINT64_MAX;
}

static int fail(const struct pb_view_options *o, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

static int fail(const struct pb_view_options *o, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	pb_say_v(o->command, fmt, ap);
	va_end(ap);
	return 1;
}

/* If the directory is damaged or incomplete, prints the notes that were not printed yet. */
static void show_notes(struct pb_view *v, const struct pb_view_options *o)
{
	if (!v->data->damaged && v->data->ended)
		return;
	for (; v->notes_shown < v->data->nr_notes; v->notes_shown++)
		pb_say(o->command, "warning: %s", v->data->notes[v->notes_shown]);
}

static void progress(void *arg, uint64_t done, uint64_t total)
{
	pb_out_progress(arg, done, total);
}

static const char *option_of(unsigned mark)
{
	return mark == PB_FILTER_IN ? "-F " : mark == PB_FILTER_OUT ? "-N " : "";
}

/* If `other` is true, v is the second directory of a comparison. The patterns were already looked
 * up in the first directory. If a pattern matches nothing in the second directory, that is no
 * error. */
static int add_filters(struct pb_view *v, const struct pb_view_options *o, bool other)
{
	char err[600];

	if (!o->nr_filters)
		return 0;
	v->filters = pb_filters_new(v->data);
	if (!v->filters)
		return fail(o, "out of memory");
	for (size_t i = 0; i < o->nr_filters; i++)
		if (pb_filters_add(v->filters, o->filters[i].mark, o->match, o->filters[i].pattern,
				   err, sizeof(err)) && !other)
			return fail(o, "%s%s: %s", option_of(o->filters[i].mark),
				    o->filters[i].pattern, err);
	return 0;
}

/* Reports an error if a number of --tid belongs to no recorded thread or process, because such a
 * number is probably mistyped. */
static int check_tids(const struct pb_view *v, const struct pb_view_options *o)
{
	const struct pb_data *d = v->data;
	char known[200] = "";

	for (size_t i = 0; i < o->nr_tids; i++) {
		size_t n = 0;

		while (n < d->nr_threads && d->threads[n].tid != o->tids[i] &&
		       d->threads[n].pid != o->tids[i])
			n++;
		if (n < d->nr_threads)
			continue;
		for (n = 0; n < d->nr_threads && n < 8; n++)
			snprintf(known + strlen(known), sizeof(known) - strlen(known), "%s%u",
				 n ? ", " : "", d->threads[n].tid);
		return fail(o, "--tid=%u: no such thread or process was recorded; there %s %s%s",
			    o->tids[i], d->nr_threads > 1 ? "are" : "is", *known ? known : "none",
			    d->nr_threads > 8 ? ", ..." : "");
	}
	return 0;
}

static int choose(struct pb_view *v, const struct pb_view_options *o, bool other)
{
	v->tids = o->tids;
	v->nr_tids = o->nr_tids;
	v->to = UINT64_MAX;
	v->max_depth = o->max_depth;
	if (o->min_time)
		pb_view_parse_time(o->min_time, &v->min_ns);
	if (o->range)
		set_range(v, o);
	if (v->min_ns && !pb_data_has_times(v->data))
		return fail(o, "-t: no durations were recorded (%s)", v->data->clock.none ?
			    "--clock=none" : "--tracer=function");
	return (!other && check_tids(v, o)) || add_filters(v, o, other);
}

static void close_data(struct pb_view *v)
{
	pb_filters_free(v->filters);
	pb_data_close(v->data);
}

static int open_data(struct pb_view *v, const struct pb_view_options *o, const char *dir,
		     bool other)
{
	char err[4600];

	memset(v, 0, sizeof(*v));
	v->data = pb_data_open(dir, o->buffer, err, sizeof(err));
	if (!v->data)
		return fail(o, "%s", err);
	pb_symbols_demangle(v->data->symbols, o->demangle);
	show_notes(v, o);
	if (!choose(v, o, other))
		return 0;
	close_data(v);
	return 1;
}

static void show_progress(struct pb_view *v, struct pb_out *out)
{
	v->out = out;
	v->data->progress = progress;
	v->data->progress_arg = out;
}

static int open_view(struct pb_view *v, const struct pb_view_options *o, struct pb_out *out)
{
	int ret = open_data(v, o, o->dir ? o->dir : "patchbay.data", false);

	if (ret)
		return ret;
	pb_out_open(out, o->command, !o->no_pager);
	show_progress(v, out);
	return 0;
}

int pb_view_open_other(struct pb_view *v, const struct pb_view_options *o, const char *dir,
		       struct pb_out *out)
{
	int ret = open_data(v, o, dir, true);

	if (!ret)
		show_progress(v, out);
	return ret;
}

void pb_view_close_other(struct pb_view *v, const struct pb_view_options *o, struct pb_view *first)
{
	first->other_damaged |= v->data->damaged;
	show_notes(v, o);
	close_data(v);
}

/* `ret` is the result of the view. Returns the exit status. */
static int close_view(struct pb_view *v, const struct pb_view_options *o, int ret)
{
	int written = pb_out_close(v->out);
	bool damaged = v->data->damaged || v->other_damaged;
	char text[256];

	show_notes(v, o);
	close_data(v);
	if (ret > 0)
		return ret;
	/* all readable data was shown, and warnings have named the missing data */
	if (!ret && !written)
		return damaged;
	if (ret)
		snprintf(text, sizeof(text), "%s", strerror(-ret));
	else
		snprintf(text, sizeof(text), "can't write the output: %s", strerror(-written));
	return fail(o, "%s", text);
}

int pb_view_run(const struct pb_view_command *c, int argc, char **argv, void *input,
		struct pb_view_options *common)
{
	static struct pb_out out;
	struct pb_view v;
	int ret;

	common->command = c->name;
	if (argp_parse(c->argp, argc, argv, 0, NULL, input))
		return 2;
	ret = c->check ? c->check(input) : 0;
	if (!ret)
		ret = open_view(&v, common, &out);
	return ret ? ret : close_view(&v, common, c->show(input, &v));
}
