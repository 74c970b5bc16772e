/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Sums by function. One pass; a record costs an array access, no hashing.
 *
 * A call's total counts unless the same function is open around it on its
 * stack. For that, each function has the number of its open calls on the
 * stack of the last event (`active`); when the stack changes, the calls of the
 * old one are taken out and those of the new one put in. A stack that makes
 * this too costly (deep, and changed to at each record) is only counted in its
 * innermost part: `stack->counted` is where that begins.
 *
 * A call that a fork child inherited is counted in its parent; in the child
 * its time runs from the fork (`call->aux`).
 *
 * Where the user chose among the calls (view/select.h), those that aren't
 * visible are sums of number 0, which belongs to no function: the times of their callees
 * count in the visible call around them.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/base.h"
#include "view/select.h"
#include "view/site_numbers.h"

#define BUDGET		(1ll << 26)	/* steps of changing stacks that are free */
#define BUDGET_RECORD	64		/* and for each record */
#define SHORT_DEPTH	64

struct sum {
	uint64_t calls, timed;
	uint64_t total, self, sum, min, max;	/* clock */
	uint32_t active, pad;
};
_Static_assert(sizeof(struct sum) == 64, "a cache line");

struct maker {
	const struct pb_view *view;
	bool selects;
	uint64_t latest;	/* time of all events; where the user chose */
	struct sum *sums;
	struct pb_sites sites;
	struct pb_call_stack *stack;
	int64_t budget;
};

/* The event has already changed the stack that it is about: `depth` is how
 * deep that was before. */
static void change_stack(struct maker *m, struct pb_call_stack *to, uint32_t depth)
{
	struct pb_call_stack *from = m->stack;

	if (from) {
		for (uint32_t i = from->counted; i < from->depth; i++)
			m->sums[from->calls[i].view].active--;
		m->budget -= from->depth - from->counted;
	}
	m->stack = to;
	to->counted = 0;
	if (m->budget < depth && depth > SHORT_DEPTH)
		to->counted = depth - SHORT_DEPTH;
	for (uint32_t i = to->counted; i < depth; i++)
		m->sums[to->calls[i].view].active++;
	m->budget -= depth - to->counted;
}

static uint32_t depth_before(const struct pb_event *ev)
{
	uint32_t depth = ev->stack->depth;

	if (!ev->call)
		return depth;
	return ev->kind == PB_EV_ENTRY || ev->kind == PB_EV_OPEN ? depth - 1 : depth + 1;
}

static inline void add_time(struct sum *s, uint64_t duration, uint64_t child)
{
	s->timed++;
	s->sum += duration;
	s->self += duration > child ? duration - child : 0;
	if (!s->active)
		s->total += duration;
	if (duration < s->min || s->timed == 1)
		s->min = duration;
	if (duration > s->max)
		s->max = duration;
}

static inline void add_to_parent(const struct pb_event *ev, uint64_t duration)
{
	if (ev->stack->depth)
		ev->stack->calls[ev->stack->depth - 1].child += duration;
}

/* The call leaves its stack. What it was open as. */
static struct sum *leave(struct maker *m, const struct pb_event *ev)
{
	struct sum *s = &m->sums[ev->call->view];

	if (ev->stack->depth < ev->stack->counted)
		ev->stack->counted = ev->stack->depth;
	else
		s->active--;
	return s;
}

/* When the call began, as far as it counts here; 0: how long it took isn't known. */
static uint64_t known_start(const struct pb_event *ev)
{
	uint64_t start = ev->call->aux ? ev->call->aux : ev->start;

	return ev->kind == PB_EV_EXIT && ev->time >= start ? start : 0;
}

static void on_end(struct maker *m, const struct pb_event *ev)
{
	struct sum *s;
	uint64_t start;

	if (!ev->call) {
		m->sums[pb_sites_number(&m->sites, ev->image, ev->site)].calls +=
			!(ev->flags & PB_EV_COUNTED);
		return;
	}
	s = leave(m, ev);
	s->calls += pb_open_call_counts(ev->call);
	start = known_start(ev);
	if (start) {
		add_time(s, ev->time - start, ev->call->child);
		add_to_parent(ev, ev->time - start);
	} else {
		/* only what its callees took */
		add_to_parent(ev, ev->call->child);
	}
}

static void on_begin(struct maker *m, const struct pb_event *ev, uint32_t number)
{
	if (!ev->call)
		return;
	ev->call->view = number;
	m->sums[number].active++;
	if (pb_unlikely(ev->flags & PB_EV_INHERITED))
		ev->call->aux = ev->time | !ev->time;	/* not 0 without a clock, either */
}

static inline void on_event(struct maker *m, const struct pb_event *ev)
{
	struct sum *s;

	switch (ev->kind) {
	case PB_EV_LEAF:
		s = &m->sums[pb_sites_number(&m->sites, ev->image, ev->site)];
		s->calls++;
		add_time(s, ev->time - ev->start, 0);
		add_to_parent(ev, ev->time - ev->start);
		break;
	case PB_EV_ENTRY: case PB_EV_OPEN:
		on_begin(m, ev, pb_sites_number(&m->sites, ev->image, ev->site));
		break;
	case PB_EV_EXIT: case PB_EV_END:
		on_end(m, ev);
		break;
	case PB_EV_CALL: case PB_EV_FUNC:
		m->sums[pb_sites_number(&m->sites, ev->image, ev->site)].calls++;
		break;
	default:
		break;
	}
}

/* --- the same for a part of the calls ------------------------------------ */

static void on_end_selected(struct maker *m, const struct pb_event *ev)
{
	struct sum *s = leave(m, ev);
	uint64_t start = known_start(ev), from = start ? start : ev->start, to = ev->time;

	if (!ev->call->view || (m->view->min_ns && !start) || !pb_select_long(m->view, from, to) ||
	    !pb_select_clip(m->view, &from, &to)) {
		add_to_parent(ev, ev->call->child);
		return;
	}
	s->calls += pb_open_call_counts(ev->call);
	if (start)
		add_time(s, to - from, ev->call->child);
	add_to_parent(ev, start ? to - from : ev->call->child);
}

static void on_event_selected(struct maker *m, const struct pb_event *ev)
{
	bool visible = pb_select(m->view, ev) & PB_SEL_VISIBLE;
	uint32_t number = visible ? pb_sites_number(&m->sites, ev->image, ev->site) : 0;
	uint64_t start = ev->start ? ev->start : ev->time, end = ev->time;

	if (ev->time > m->latest)
		m->latest = ev->time;
	switch (ev->kind) {
	case PB_EV_ENTRY: case PB_EV_OPEN:
		on_begin(m, ev, number);
		return;
	case PB_EV_EXIT: case PB_EV_END:
		if (ev->call) {
			on_end_selected(m, ev);
			return;
		}
		break;
	case PB_EV_LEAF:
		if (!visible || !pb_select_long(m->view, start, end) ||
		    !pb_select_clip(m->view, &start, &end))
			return;
		m->sums[number].calls++;
		add_time(&m->sums[number], end - start, 0);
		add_to_parent(ev, end - start);
		return;
	case PB_EV_LOST: case PB_EV_NONE: case PB_EV_LEAF_OPEN:
		return;
	default:
		break;
	}
	m->sums[number].calls += !m->view->min_ns && !(ev->flags & PB_EV_COUNTED) &&
				 pb_select_clip(m->view, &start, &end);
}

static int make_rows(struct maker *m, struct pb_report *r, const struct pb_clock *clock)
{
	uint32_t total = m->sites.total;
	size_t nr = 0;

	for (uint32_t i = 0; (i = pb_sites_next(&m->sites, i)) < total; i++)
		nr += m->sums[i].calls != 0;
	r->rows = calloc(nr + 1, sizeof(*r->rows));
	if (!r->rows)
		return -ENOMEM;
	for (uint32_t i = 0; (i = pb_sites_next(&m->sites, i)) < total; i++) {
		const struct sum *s = &m->sums[i];
		struct pb_function f;

		if (!s->calls)
			continue;
		f = pb_sites_function(&m->sites, i);
		r->calls += s->calls;
		r->rows[r->nr++] = (struct pb_report_row){
			.name = f.name, .module = f.module, .raw = f.raw, .id = f.id,
			.calls = s->calls, .timed = s->timed,
			.total = pb_clock_span(clock, s->total),
			.self = pb_clock_span(clock, s->self),
			.sum = pb_clock_span(clock, s->sum),
			.min = pb_clock_span(clock, s->min),
			.max = pb_clock_span(clock, s->max),
		};
	}
	return 0;
}

static bool open_counts(const struct maker *m, uint32_t select, uint64_t start)
{
	return !m->selects || pb_select_open(m->view, select, start, m->latest);
}

/* The calls that were still open count as calls without a known time. */
static void add_open(struct maker *m, struct pb_report *r, struct pb_stream *stream)
{
	struct pb_call_stack *s;

	for (size_t i = 0; (s = pb_stacks_nth(stream->stacks, i)); i++) {
		for (uint32_t n = 0; n < s->depth; n++)
			if (open_counts(m, s->calls[n].select, s->calls[n].start)) {
				m->sums[s->calls[n].view].calls +=
					pb_open_call_counts(&s->calls[n]);
				r->open++;
			}
		if (!s->leaf_site || !open_counts(m, s->leaf_select, s->leaf_start))
			continue;
		m->sums[pb_sites_number(&m->sites, s->image, s->leaf_site)].calls +=
			!s->leaf_inherited;
		r->open++;
	}
}

static int make(const struct pb_view *v, struct pb_report *r, struct maker *m, bool by_time)
{
	struct pb_stream s;
	struct pb_event ev;
	int ret = pb_stream_open(&s, v->data, by_time, v->tids, v->nr_tids);

	if (ret)
		return ret;
	while (pb_stream_next(&s, &ev) && (by_time || !s.shared)) {
		if (pb_unlikely(ev.stack != m->stack))
			change_stack(m, ev.stack, depth_before(&ev));
		if (pb_unlikely(m->selects))
			on_event_selected(m, &ev);
		else
			on_event(m, &ev);
		m->budget += BUDGET_RECORD;
	}
	if (s.shared && !by_time) {
		pb_stream_close(&s);
		return -EAGAIN;
	}
	add_open(m, r, &s);
	if (m->selects)
		m->sums[0] = (struct sum){ 0 };
	r->totals = *pb_stream_totals(&s);
	r->by_time = by_time;
	pb_stream_close(&s);
	return make_rows(m, r, &v->data->clock);
}

int pb_report_make(const struct pb_view *v, struct pb_report *r)
{
	struct maker m = { .view = v, .selects = pb_view_selects(v) };
	size_t size;
	int ret;

	memset(r, 0, sizeof(*r));
	ret = pb_sites_init(&m.sites, v->data);
	if (ret)
		return ret;
	/* mostly never touched */
	size = (size_t)m.sites.total * sizeof(*m.sums);
	for (int by_time = 0; by_time < 2; by_time++) {
		m.stack = NULL;
		m.budget = BUDGET;
		m.sums = mmap(NULL, size, PROT_READ | PROT_WRITE,
			      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
		if (m.sums == MAP_FAILED) {
			ret = -ENOMEM;
			break;
		}
		ret = make(v, r, &m, by_time);
		munmap(m.sums, size);
		if (ret != -EAGAIN)
			break;
	}
	pb_sites_free(&m.sites);
	return ret;
}

void pb_report_free(struct pb_report *r)
{
	free(r->rows);
	memset(r, 0, sizeof(*r));
}
