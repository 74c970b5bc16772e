/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Trace Event JSON, for chrome://tracing and Perfetto. A call is one complete
 * event ("X"), written when it ends; one that is open at the end only begins
 * ("B"). Lost records are instant events.
 */
#include "view/filter.h"
#include "view/view.h"

typedef unsigned long long ull;

struct chrome {
	const struct pb_view *v;
	struct pb_out *o;
	bool any;
};

static void print_us(struct chrome *c, const char *name, uint64_t ns)
{
	pb_out_fmt(c->o, ",\"%s\":%llu.%03llu", name, (ull)(ns / 1000), (ull)(ns % 1000));
}

static void begin(struct chrome *c, char phase, uint32_t pid, uint32_t tid)
{
	pb_out_str(c->o, c->any ? ",\n{" : "{");
	c->any = true;
	pb_out_fmt(c->o, "\"ph\":\"%c\",\"pid\":%u,\"tid\":%u", phase, pid, tid);
}

static void print_function(struct chrome *c, size_t image, uint32_t site)
{
	struct pb_function f = pb_symbols_site(c->v->data->symbols, image, site);

	pb_out_str(c->o, ",\"name\":");
	pb_out_json(c->o, f.name);
	pb_out_str(c->o, ",\"cat\":");
	pb_out_json(c->o, f.module);
}

static bool wanted(struct chrome *c, const struct pb_event *ev, uint64_t ns)
{
	const struct pb_view *v = c->v;

	if (!pb_view_in_range(v, ev->start) || (v->max_depth && ev->depth >= v->max_depth) ||
	    ns < v->min_ns)
		return false;
	if (v->filters) {
		unsigned match = pb_filters_match(v->filters, ev->image, ev->site);

		return !(match & PB_FILTER_OUT) &&
		       (match & PB_FILTER_IN || !pb_filters_has_in(v->filters));
	}
	return true;
}

static void call(struct chrome *c, const struct pb_event *ev, bool no_return)
{
	const struct pb_clock *clock = &c->v->data->clock;
	uint64_t start = pb_clock_ns(clock, ev->start), end = pb_clock_ns(clock, ev->time);

	if (end < start)
		end = start;
	if (!wanted(c, ev, end - start))
		return;
	begin(c, 'X', ev->pid, ev->tid);
	print_us(c, "ts", start);
	print_us(c, "dur", end - start);
	print_function(c, ev->image, ev->site);
	if (no_return)
		pb_out_str(c->o, ",\"args\":{\"no_return\":true}");
	pb_out_char(c->o, '}');
}

static void lost(struct chrome *c, const struct pb_event *ev)
{
	begin(c, 'i', ev->pid, ev->tid);
	print_us(c, "ts", pb_clock_ns(&c->v->data->clock, ev->time));
	pb_out_fmt(c->o, ",\"s\":\"t\",\"name\":\"lost records\",\"args\":{\"count\":%llu}}",
		   (ull)ev->value);
}

static void on_event(struct chrome *c, const struct pb_event *ev)
{
	struct pb_event copy;

	switch (ev->kind) {
	case PB_EV_LEAF:
		call(c, ev, false);
		break;
	case PB_EV_CALL: case PB_EV_FUNC:
		call(c, ev, ev->kind == PB_EV_CALL);
		break;
	case PB_EV_EXIT: case PB_EV_END:
		copy = *ev;
		if (!copy.start)
			copy.start = ev->time;
		call(c, &copy, ev->kind == PB_EV_END);
		break;
	case PB_EV_LOST:
		lost(c, ev);
		break;
	default:
		break;
	}
}

static void open_call(struct chrome *c, const struct pb_call_stack *s, uint32_t site, uint64_t start)
{
	if (!pb_view_in_range(c->v, start))
		return;
	begin(c, 'B', s->pid, s->tid);
	print_us(c, "ts", pb_clock_ns(&c->v->data->clock, start));
	print_function(c, s->image, site);
	pb_out_char(c->o, '}');
}

static void open_calls(struct chrome *c, struct pb_stream *stream)
{
	struct pb_call_stack *s;

	for (size_t i = 0; (s = pb_stacks_nth(stream->stacks, i)); i++) {
		for (uint32_t n = 0; n < s->depth; n++)
			open_call(c, s, s->calls[n].site, s->calls[n].start);
		if (s->leaf_site)
			open_call(c, s, s->leaf_site, s->leaf_start);
	}
}

int pb_view_chrome(const struct pb_view *v)
{
	struct chrome c = { .v = v, .o = v->out };
	const struct pb_data *d = v->data;
	struct pb_stream s;
	struct pb_event ev;
	int ret = pb_stream_open(&s, v->data, true, v->tids, v->nr_tids);

	if (ret)
		return ret;
	pb_out_str(v->out, "{\"displayTimeUnit\":\"ns\",\"traceEvents\":[\n");
	for (size_t i = 0; i < d->nr_threads; i++) {
		begin(&c, 'M', d->threads[i].pid, d->threads[i].tid);
		pb_out_str(v->out, ",\"name\":\"thread_name\",\"args\":{\"name\":");
		pb_out_json(v->out, pb_view_comm(&d->threads[i]));
		pb_out_str(v->out, "}}");
	}
	while (!v->out->error && pb_stream_next(&s, &ev))
		on_event(&c, &ev);
	open_calls(&c, &s);
	pb_out_str(v->out, "\n],\"otherData\":{");
	pb_out_fmt(v->out, "\"lost\":\"%llu\",\"no_return\":\"%llu\",\"clock\":",
		   (ull)pb_stream_totals(&s)->lost, (ull)pb_stream_totals(&s)->no_return);
	pb_out_json(v->out, d->clock.name);
	pb_out_str(v->out, "}}\n");
	pb_stream_close(&s);
	return 0;
}
