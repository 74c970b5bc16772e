/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Prints the reports of two runs side by side, with a line for each function. A function of one run
 * and a function of the other are the same if their symbols and the names of their modules are
 * equal. If a run has calls of a function, but the time of none of them is known, the difference of
 * the times isn't known either. If a run has no calls of the function, its time is 0. */
#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "view/distinct.h"
#include "view/view.h"

typedef unsigned long long ull;

struct difference {
	const struct pb_report_row *base, *now;	/* never NULL: &none if the run lacks the
						 * function */
	int64_t key;				/* the differences are sorted by this
						 * number, without its sign; 0 if the
						 * difference isn't known */
};

static const struct pb_report_row none = { .name = "", .raw = "", .module = "" };

static int by_symbol(const struct pb_report_row *x, const struct pb_report_row *y)
{
	int ret = strcmp(x->raw, y->raw);

	return ret ? ret : strcmp(x->module, y->module);
}

/* Orders functions by symbol and module. Static functions of a module may have the same symbol.
 * Such functions are ordered by their ids, and so by address. */
static int by_symbol_and_id(const void *a, const void *b)
{
	const struct pb_report_row *x = a, *y = b;
	int ret = by_symbol(x, y);

	return ret ? ret : x->id < y->id ? -1 : x->id > y->id;
}

static const char *name_of(const struct difference *d)
{
	return d->now != &none ? d->now->name : d->base->name;
}

static const char *module_of(const struct difference *d)
{
	return d->now != &none ? d->now->module : d->base->module;
}

static int by_key(const void *a, const void *b)
{
	const struct difference *x = a, *y = b;
	uint64_t kx = (uint64_t)(x->key < 0 ? -x->key : x->key);
	uint64_t ky = (uint64_t)(y->key < 0 ? -y->key : y->key);
	int ret;

	if (kx != ky)
		return kx > ky ? -1 : 1;
	ret = strcmp(name_of(x), name_of(y));
	return ret ? ret : strcmp(module_of(x), module_of(y));
}

/* True if the difference of the times is known. */
static bool has_times(const struct difference *d)
{
	return (d->base->timed || !d->base->calls) && (d->now->timed || !d->now->calls);
}

/* Fills the list, which has room for all rows of both runs. Returns the number of its elements. */
static size_t match(struct pb_report *base, struct pb_report *now, enum pb_report_sort by,
		    struct difference *list)
{
	size_t i = 0, j = 0, nr = 0;

	qsort(base->rows, base->nr, sizeof(*base->rows), by_symbol_and_id);
	qsort(now->rows, now->nr, sizeof(*now->rows), by_symbol_and_id);
	while (i < base->nr || j < now->nr) {
		int order = i == base->nr ? 1 : j == now->nr ? -1 :
			    by_symbol(&base->rows[i], &now->rows[j]);
		struct difference *d = &list[nr++];

		d->base = order <= 0 ? &base->rows[i++] : &none;
		d->now = order >= 0 ? &now->rows[j++] : &none;
		if (by == PB_SORT_CALLS || has_times(d))
			d->key = (int64_t)(pb_report_key(d->now, by) - pb_report_key(d->base, by));
	}
	return nr;
}

/* Returns the function that is shown. If several functions have one name, their addresses are
 * shown, too. The addresses are looked up by the functions' ids in the modules of `now`, where the
 * id of a function of `base` may belong to another function. So a function that only `base` has
 * gets an id that no module has. */
static struct pb_function function_of(const struct difference *d)
{
	const struct pb_report_row *r = d->now != &none ? d->now : d->base;

	return (struct pb_function){ r->name, r->module, r->raw, d->now != &none ? r->id :
		UINT64_MAX };
}

/* Prints both times and their difference. */
static void print_times(struct pb_out *o, const struct difference *d, enum pb_report_sort key)
{
	uint64_t from = pb_report_key(d->base, key), to = pb_report_key(d->now, key);
	char buf[40];

	pb_report_time(o, from, d->base->timed);
	pb_report_time(o, to, d->now->timed);
	if (has_times(d))
		pb_out_fmt(o, "  %c%10s", to < from ? '-' : '+',
			   pb_view_time(buf, sizeof(buf), to < from ? from - to : to - from));
	else
		pb_out_str(o, "            -");
}

static void print_text(const struct pb_view *v, const struct difference *list, size_t nr,
		       enum pb_report_sort by)
{
	struct pb_function *f = calloc(nr + 1, sizeof(*f));
	struct pb_distinct distinct = { 0 };
	struct pb_out *o = v->out;
	/* if the rows are sorted by calls or name, the times in the table are totals */
	bool timed = by != PB_SORT_CALLS && by != PB_SORT_FUNC;
	static const char *const what[] = {
		[PB_SORT_TOTAL] = "Total", [PB_SORT_SELF] = " Self", [PB_SORT_MIN] = "  Min",
		[PB_SORT_MAX] = "  Max", [PB_SORT_AVG] = "  Avg",
	};
	enum pb_report_sort key = timed ? by : PB_SORT_TOTAL;

	for (size_t i = 0; f && i < nr; i++)
		f[i] = function_of(&list[i]);
	if (f)
		pb_distinct_array(&distinct, v->data, f, nr);
	pb_out_fmt(o, "  %s base   %s now   Difference  Calls base   Calls "
		      "now   Difference  Function\n",
		   what[key], what[key]);
	pb_out_str(o, "  ==========  ==========  ===========  ==========  ==========  ==========="
		   "  ====================\n");
	for (size_t i = 0; i < nr; i++) {
		const struct pb_report_row *base = list[i].base, *now = list[i].now;

		print_times(o, &list[i], key);
		pb_out_fmt(o, "  %10llu  %10llu  %+11lld  %s\n", (ull)base->calls, (ull)now->calls,
			   (long long)(now->calls - base->calls),
			   f ? f[i].name : name_of(&list[i]));
	}
	pb_distinct_free(&distinct);
	free(f);
}

static const struct {
	const char *name;
	size_t offset;
} columns[] = {
	{ "calls", offsetof(struct pb_report_row, calls) },
	{ "total_ns", offsetof(struct pb_report_row, total) },
	{ "self_ns", offsetof(struct pb_report_row, self) },
	{ "min_ns", offsetof(struct pb_report_row, min) },
	{ "max_ns", offsetof(struct pb_report_row, max) },
	{ "timed", offsetof(struct pb_report_row, timed) },
};
#define NR_COLUMNS (sizeof(columns) / sizeof(columns[0]))

static uint64_t value(const struct pb_report_row *r, size_t column)
{
	return *(const uint64_t *)((const char *)r + columns[column].offset);
}

static void print_csv(struct pb_out *o, const struct difference *list, size_t nr)
{
	pb_out_str(o, "function,module");
	for (size_t c = 0; c < NR_COLUMNS; c++)
		pb_out_fmt(o, ",base_%s,%s", columns[c].name, columns[c].name);
	for (size_t i = 0; i < nr; i++) {
		pb_out_char(o, '\n');
		pb_out_csv(o, name_of(&list[i]));
		pb_out_char(o, ',');
		pb_out_csv(o, module_of(&list[i]));
		for (size_t c = 0; c < NR_COLUMNS; c++)
			pb_out_fmt(o, ",%llu,%llu", (ull)value(list[i].base, c),
				   (ull)value(list[i].now, c));
	}
	pb_out_char(o, '\n');
}

static void print_json(const struct pb_view *v, const struct pb_view *base_view,
		       const struct difference *list, size_t nr, const struct pb_report *now,
		       const struct pb_report *base)
{
	struct pb_out *o = v->out;

	pb_out_str(o, "{\"functions\": [");
	for (size_t i = 0; i < nr; i++) {
		pb_out_str(o, i ? ",\n  {\"function\": " : "\n  {\"function\": ");
		pb_out_json(o, name_of(&list[i]));
		pb_out_str(o, ", \"module\": ");
		pb_out_json(o, module_of(&list[i]));
		for (size_t c = 0; c < NR_COLUMNS; c++)
			pb_out_fmt(o, ", \"base_%s\": %llu, \"%s\": %llu", columns[c].name,
				   (ull)value(list[i].base, c), columns[c].name,
				   (ull)value(list[i].now, c));
		pb_out_char(o, '}');
	}
	pb_out_str(o, "\n], \"totals\": {");
	pb_view_json_totals(v, now->calls, &now->totals);
	pb_out_str(o, "}, \"base_totals\": {");
	pb_view_json_totals(base_view, base->calls, &base->totals);
	pb_out_str(o, "}}\n");
}

int pb_report_diff(const struct pb_view *v, const struct pb_view *base_view,
		   struct pb_report *base, struct pb_report *now, enum pb_report_sort by,
		   enum pb_report_format format)
{
	struct difference *list = calloc(base->nr + now->nr + 1, sizeof(*list));
	size_t nr;

	if (!list)
		return -ENOMEM;
	nr = match(base, now, by, list);
	qsort(list, nr, sizeof(*list), by_key);
	if (format == PB_FORMAT_CSV)
		print_csv(v->out, list, nr);
	else if (format == PB_FORMAT_JSON)
		print_json(v, base_view, list, nr, now, base);
	else
		print_text(v, list, nr, by);
	free(list);
	if (format == PB_FORMAT_TEXT) {
		pb_view_losses(base_view, &base->totals, "# base: ");
		pb_view_losses(v, &now->totals, "# ");
	}
	return 0;
}
