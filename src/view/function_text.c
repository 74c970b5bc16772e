/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The function tracer's text, in the format of the kernel's trace file. Records have no processor
 * and no interrupt state, so the processor's column is zero and the interrupt state's column is
 * dots.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "view/select.h"

static void print_header(const struct pb_view *v, uint64_t entries, uint64_t written)
{
	char cpus[16];

	if (!pb_data_session(v->data, "cpus", cpus, sizeof(cpus)))
		snprintf(cpus, sizeof(cpus), "1");
	pb_out_fmt(v->out, "# tracer: function\n#\n"
		   "# entries-in-buffer/entries-written: %llu/%llu   #P:%u\n#\n",
		   (unsigned long long)entries, (unsigned long long)written,
		   (unsigned)strtoul(cpus, NULL, 10));
	pb_out_str(v->out,
		   "#                                _-----=> irqs-off/BH-disabled\n"
		   "#                               / _----=> need-resched\n"
		   "#                              | / _---=> hardirq/softirq\n"
		   "#                              || / _--=> preempt-depth\n"
		   "#                              ||| / _-=> migrate-disable\n"
		   "#                              |||| /     delay\n");
	pb_out_str(v->out, v->data->clock.none ?
		   "#           TASK-PID     CPU#  |||||  FUNCTION\n"
		   "#              | |         |   |||||  |\n" :
		   "#           TASK-PID     CPU#  |||||  TIMESTAMP  FUNCTION\n"
		   "#              | |         |   |||||     |         |\n");
}

static void print_line(const struct pb_view *v, const struct pb_event *ev)
{
	const struct pb_clock *clock = &v->data->clock;
	struct pb_out *o = v->out;
	char parent[1024];

	pb_out_fmt(o, "%16s-%-7u [000] .....", pb_view_comm(ev->thread), ev->tid);
	if (!clock->none) {
		uint64_t us = (pb_view_line_ns(v, ev->start) + 500) / 1000;

		pb_out_fmt(o, " %5llu.%06llu", (unsigned long long)(us / 1000000),
			   (unsigned long long)(us % 1000000));
	}
	pb_out_str(o, ": ");
	pb_out_str(o, pb_symbols_site(v->data->symbols, ev->image, ev->site).name);
	if (ev->value) {
		pb_symbols_caller(v->data->symbols, ev->image, ev->pid, ev->time, ev->value,
				  parent, sizeof(parent));
		pb_out_str(o, " <-");
		pb_out_str(o, parent);
	}
	pb_out_char(o, '\n');
}

void pb_function_text_event(const struct pb_view *v, const struct pb_event *ev)
{
	bool visible = pb_select(v, ev) & PB_SEL_VISIBLE;

	switch (ev->kind) {
	case PB_EV_FUNC: case PB_EV_CALL: case PB_EV_LEAF: case PB_EV_ENTRY:
		if (visible && pb_view_in_range(v, ev->start))
			print_line(v, ev);
		break;
	case PB_EV_LOST:
		if (!pb_view_in_range(v, ev->time))
			break;
		if (ev->value)
			pb_out_fmt(v->out, "TID:%u [LOST %llu EVENTS]\n", ev->tid,
				   (unsigned long long)ev->value);
		else
			pb_out_fmt(v->out, "TID:%u [LOST EVENTS]\n", ev->tid);
		break;
	default:
		break;
	}
}

/* Counts the records for the header, in one pass over all data. */
static int count(const struct pb_view *v, uint64_t *entries, uint64_t *lost)
{
	struct pb_stream s;
	struct pb_event ev;
	int ret = pb_stream_open(&s, v->data, false, v->tids, v->nr_tids);

	if (ret)
		return ret;
	while (pb_stream_next(&s, &ev))
		;
	*entries = pb_stream_totals(&s)->records;
	*lost = pb_stream_totals(&s)->lost;
	pb_stream_close(&s);
	return 0;
}

int pb_view_function_text(const struct pb_view *v)
{
	uint64_t entries = 0, lost = 0;
	struct pb_stream s;
	struct pb_event ev;
	int ret = count(v, &entries, &lost);

	if (!ret)
		ret = pb_stream_open(&s, v->data, true, v->tids, v->nr_tids);
	if (ret)
		return ret;
	print_header(v, entries, entries + lost);
	while (!v->out->error && pb_stream_next(&s, &ev))
		pb_function_text_event(v, &ev);
	if (!v->out->error)
		pb_view_losses(v, pb_stream_totals(&s), "# ");
	pb_stream_close(&s);
	return 0;
}
