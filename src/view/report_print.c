/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Sorts the rows of `patchbay report` and prints them as a table, CSV or JSON. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "view/distinct.h"
#include "view/select.h"
#include "view/view.h"

typedef unsigned long long ull;

static uint64_t average(const struct pb_report_row *r)
{
	return r->timed ? r->sum / r->timed : 0;
}

uint64_t pb_report_key(const struct pb_report_row *r, enum pb_report_sort by)
{
	switch (by) {
	case PB_SORT_SELF:
		return r->self;
	case PB_SORT_CALLS:
		return r->calls;
	case PB_SORT_MIN:
		return r->min;
	case PB_SORT_MAX:
		return r->max;
	case PB_SORT_AVG:
		return average(r);
	case PB_SORT_FUNC:
		return 0;
	default:
		return r->total;
	}
}

static int compare(const void *a, const void *b, void *arg)
{
	const struct pb_report_row *x = a, *y = b;
	enum pb_report_sort by = *(enum pb_report_sort *)arg;
	uint64_t kx = pb_report_key(x, by), ky = pb_report_key(y, by);
	int ret;

	if (kx != ky)
		return kx > ky ? -1 : 1;
	if (by != PB_SORT_FUNC && x->calls != y->calls)
		return x->calls > y->calls ? -1 : 1;
	ret = strcmp(x->name, y->name);
	if (!ret)
		ret = strcmp(x->module, y->module);
	return ret ? ret : x->id < y->id ? -1 : x->id > y->id;
}

void pb_report_sort(struct pb_report *r, enum pb_report_sort by)
{
	qsort_r(r->rows, r->nr, sizeof(*r->rows), compare, &by);
}

void pb_report_time(struct pb_out *o, uint64_t ns, bool known)
{
	char buf[40];

	pb_out_fmt(o, "  %10s", known ? pb_view_time(buf, sizeof(buf), ns) : "-");
}

static void print_rule(struct pb_out *o, unsigned columns)
{
	for (unsigned i = 0; i < columns; i++)
		pb_out_str(o, "  ==========");
	pb_out_str(o, "  ====================\n");
}

static void print_row(const struct pb_view *v, const struct pb_report_row *row, const char *name,
		      bool spread)
{
	struct pb_out *o = v->out;
	bool known = row->timed;

	if (pb_data_has_times(v->data) && spread) {
		pb_report_time(o, average(row), known);
		pb_report_time(o, row->min, known);
		pb_report_time(o, row->max, known);
	} else if (pb_data_has_times(v->data)) {
		/* the time of a part of a call may be known */
		pb_report_time(o, row->total, known || row->total);
		pb_report_time(o, row->self, known || row->total);
	}
	pb_out_fmt(o, "  %10llu  %s\n", (ull)row->calls, name);
}

static void print_rows(const struct pb_view *v, const struct pb_report *r, bool spread)
{
	struct pb_function *f = calloc(r->nr + 1, sizeof(*f));
	struct pb_distinct distinct = { 0 };

	for (size_t i = 0; f && i < r->nr; i++)
		f[i] = (struct pb_function){ r->rows[i].name, r->rows[i].module, r->rows[i].raw,
			r->rows[i].id };
	if (f)
		pb_distinct_array(&distinct, v->data, f, r->nr);
	for (size_t i = 0; i < r->nr; i++)
		print_row(v, &r->rows[i], f ? f[i].name : r->rows[i].name, spread);
	pb_distinct_free(&distinct);
	free(f);
}

void pb_report_print(const struct pb_view *v, const struct pb_report *r, enum pb_report_sort by)
{
	bool spread = by == PB_SORT_MIN || by == PB_SORT_MAX || by == PB_SORT_AVG;
	bool counts = !pb_data_has_times(v->data);
	struct pb_out *o = v->out;

	if (counts)
		pb_out_str(o, "       Calls  Function\n");
	else if (spread)
		pb_out_str(o, "    Avg time    Min time    Max time       Calls  Function\n");
	else
		pb_out_str(o, "  Total time   Self time       Calls  Function\n");
	print_rule(o, counts ? 1 : spread ? 4 : 3);
	print_rows(v, r, spread);
	if (!r->nr && pb_view_selects(v))
		pb_out_str(o, "# none of the recorded calls is selected\n");
	if (r->open)
		pb_out_fmt(o, "# %llu %s still open at the end; %s time isn't known\n",
			   (ull)r->open, r->open == 1 ? "call was" : "calls were",
			   r->open == 1 ? "its" : "their");
	pb_view_losses(v, &r->totals, "# ");
}

void pb_report_csv(const struct pb_view *v, const struct pb_report *r)
{
	pb_out_str(v->out, "function,module,calls,total_ns,self_ns,min_ns,max_ns,timed\n");
	for (size_t i = 0; i < r->nr; i++) {
		const struct pb_report_row *row = &r->rows[i];

		pb_out_csv(v->out, row->name);
		pb_out_char(v->out, ',');
		pb_out_csv(v->out, row->module);
		pb_out_fmt(v->out, ",%llu,%llu,%llu,%llu,%llu,%llu\n", (ull)row->calls,
			   (ull)row->total, (ull)row->self, (ull)row->min, (ull)row->max,
			   (ull)row->timed);
	}
}

void pb_report_json(const struct pb_view *v, const struct pb_report *r)
{
	struct pb_out *o = v->out;

	pb_out_str(o, "{\"functions\": [");
	for (size_t i = 0; i < r->nr; i++) {
		const struct pb_report_row *row = &r->rows[i];

		pb_out_str(o, i ? ",\n  {\"function\": " : "\n  {\"function\": ");
		pb_out_json(o, row->name);
		pb_out_str(o, ", \"module\": ");
		pb_out_json(o, row->module);
		pb_out_fmt(o, ", \"calls\": %llu, \"total_ns\": %llu, \"self_ns\": %llu, "
			   "\"min_ns\": %llu, \"max_ns\": %llu, \"timed\": %llu}", (ull)row->calls,
			   (ull)row->total, (ull)row->self, (ull)row->min, (ull)row->max,
			   (ull)row->timed);
	}
	pb_out_str(o, "\n], \"totals\": {");
	pb_view_json_totals(v, r->calls, &r->totals);
	pb_out_str(o, "}}\n");
}
