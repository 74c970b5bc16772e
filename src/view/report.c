/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Sums up a recording by function, in one pass, or in two if stacks move between threads. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "reader/call_walk.h"
#include "view/sums.h"

static int make_rows(struct pb_sums *m, struct pb_report *r, const struct pb_data *d)
{
	const struct pb_clock *clock = &d->clock;
	bool has_times = pb_data_has_times(d);
	uint32_t total = m->sites.total;
	size_t nr = 0;

	for (uint32_t i = 0; (i = pb_sites_next(&m->sites, i)) < total; i++)
		nr += m->sums[i].calls != 0;
	r->rows = calloc(nr + 1, sizeof(*r->rows));
	if (!r->rows)
		return -ENOMEM;
	for (uint32_t i = 0; (i = pb_sites_next(&m->sites, i)) < total; i++) {
		const struct pb_sum *s = &m->sums[i];
		struct pb_function f;

		if (!s->calls)
			continue;
		f = pb_sites_function(&m->sites, i);
		r->calls += s->calls;
		r->rows[r->nr++] = (struct pb_report_row){
			.name = f.name, .module = f.module, .raw = f.raw, .id = f.id,
			.calls = s->calls, .timed = has_times ? s->timed : 0,
			.total = pb_clock_span(clock, s->total),
			.self = pb_clock_span(clock, s->self),
			.sum = pb_clock_span(clock, s->sum),
			.min = pb_clock_span(clock, s->min),
			.max = pb_clock_span(clock, s->max),
		};
	}
	return 0;
}

static int make(struct pb_sums *m, struct pb_report *r, bool by_time)
{
	const struct pb_view *v = m->view;
	struct pb_call_walk w = { .data = v->data, .tids = v->tids, .nr_tids = v->nr_tids,
				  .by_time = by_time, .arg = m, .event = pb_sums_event,
				  .open = pb_sums_open };
	int ret = pb_call_walk(&w);

	if (ret)
		return ret;
	if (m->selects)
		m->sums[0] = (struct pb_sum){ 0 };
	r->open = m->open;
	r->totals = w.totals;
	r->by_time = by_time;
	return make_rows(m, r, v->data);
}

int pb_report_make(const struct pb_view *v, struct pb_report *r)
{
	struct pb_sums m;
	int ret = 0;

	memset(r, 0, sizeof(*r));
	for (int by_time = 0; by_time < 2; by_time++) {
		ret = pb_sums_init(&m, v);
		if (ret)
			break;
		ret = make(&m, r, by_time);
		pb_sums_free(&m);
		if (ret != -EAGAIN)
			break;
	}
	return ret;
}

void pb_report_free(struct pb_report *r)
{
	free(r->rows);
	memset(r, 0, sizeof(*r));
}
