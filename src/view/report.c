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
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/base.h"
#include "view/sites.h"
#include "view/view.h"

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

static void on_end(struct maker *m, const struct pb_event *ev)
{
	const struct pb_open_call *call = ev->call;
	struct sum *s;
	uint64_t start;

	if (!call) {
		m->sums[pb_sites_number(&m->sites, ev->image, ev->site)].calls++;
		return;
	}
	s = &m->sums[call->view];
	s->calls += !call->aux;
	if (ev->stack->depth < ev->stack->counted)
		ev->stack->counted = ev->stack->depth;
	else
		s->active--;
	start = call->aux ? call->aux : ev->start;
	if (ev->kind == PB_EV_EXIT && start && ev->time >= start) {
		add_time(s, ev->time - start, call->child);
		add_to_parent(ev, ev->time - start);
	} else {
		/* how long it took isn't known, only what its callees took */
		add_to_parent(ev, call->child);
	}
}

static inline void on_event(struct maker *m, const struct pb_event *ev)
{
	struct sum *s;

	if (pb_unlikely(ev->stack != m->stack))
		change_stack(m, ev->stack, depth_before(ev));
	switch (ev->kind) {
	case PB_EV_LEAF:
		s = &m->sums[pb_sites_number(&m->sites, ev->image, ev->site)];
		s->calls++;
		add_time(s, ev->time - ev->start, 0);
		add_to_parent(ev, ev->time - ev->start);
		break;
	case PB_EV_ENTRY: case PB_EV_OPEN:
		if (!ev->call)
			break;
		ev->call->view = pb_sites_number(&m->sites, ev->image, ev->site);
		m->sums[ev->call->view].active++;
		if (pb_unlikely(ev->flags & PB_EV_INHERITED))
			ev->call->aux = ev->time;
		break;
	case PB_EV_EXIT: case PB_EV_END:
		on_end(m, ev);
		break;
	case PB_EV_CALL: case PB_EV_FUNC: case PB_EV_LEAF_OPEN:
		m->sums[pb_sites_number(&m->sites, ev->image, ev->site)].calls++;
		break;
	default:
		break;
	}
}

static int make_rows(struct maker *m, struct pb_report *r, const struct pb_clock *clock)
{
	size_t nr = 0;

	for (uint32_t i = 0; i < m->sites.total; i++)
		nr += m->sums[i].calls != 0;
	r->rows = calloc(nr + 1, sizeof(*r->rows));
	if (!r->rows)
		return -ENOMEM;
	for (uint32_t i = 0; i < m->sites.total; i++) {
		const struct sum *s = &m->sums[i];
		struct pb_function f;

		if (!s->calls)
			continue;
		f = pb_sites_function(&m->sites, i);
		r->calls += s->calls;
		r->rows[r->nr++] = (struct pb_report_row){
			.name = f.name, .module = f.module, .id = f.id,
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

/* The calls that were still open count as calls without a known time. */
static void add_open(struct maker *m, struct pb_report *r, struct pb_stream *stream)
{
	struct pb_call_stack *s;

	for (size_t i = 0; (s = pb_stacks_nth(stream->stacks, i)); i++) {
		for (uint32_t n = 0; n < s->depth; n++)
			m->sums[s->calls[n].view].calls += !s->calls[n].aux;
		r->open += s->depth + (s->leaf_site != 0);
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
		on_event(m, &ev);
		m->budget += BUDGET_RECORD;
	}
	if (s.shared && !by_time) {
		pb_stream_close(&s);
		return -EAGAIN;
	}
	add_open(m, r, &s);
	r->totals = *pb_stream_totals(&s);
	r->by_time = by_time;
	pb_stream_close(&s);
	return make_rows(m, r, &v->data->clock);
}

int pb_report_make(const struct pb_view *v, struct pb_report *r)
{
	struct maker m = { .budget = BUDGET };
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
