/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Sums up calls by function, in one pass, or in two if stacks move between threads. Each record
 * costs an array access and no hashing.
 *
 * A call's time is added to its function's total only if the stack has no outer call of the same
 * function. To find this out, `active` counts the function's open calls on the stack of the last
 * event. If the next event is on another stack, the calls of the old stack are subtracted and the
 * calls of the new stack are added. If almost every event switches to another deep stack, these
 * updates cost too much. In that case `active` counts only the stack's innermost calls: the calls
 * from index `stack->counted` on.
 *
 * If a child inherits a call by fork, the call is counted in the parent. In the child, the call's
 * time begins at the fork (`call->aux`).
 *
 * If the user selected calls (view/select.h), sums[0] is for invisible calls. No function has
 * number 0. The callees of an invisible call count as callees of the next visible outer call.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/base.h"
#include "reader/call_walk.h"
#include "view/select.h"
#include "view/site_numbers.h"

#define BUDGET		(1ll << 26)	/* number of updates of `active` that changes of the stack
					 * may make */
#define BUDGET_RECORD	64		/* number of further updates that each record allows */
#define SHORT_DEPTH	64

struct sum {
	uint64_t calls, timed;
	uint64_t total, self, sum, min, max;	/* ticks of the clock */
	uint32_t active, pad;
};
_Static_assert(sizeof(struct sum) == 64, "a cache line");

struct maker {
	const struct pb_view *view;
	struct pb_report *report;
	bool selects;
	uint64_t latest;	/* time of the latest event; set only if `selects` is true */
	struct sum *sums;
	struct pb_sites sites;
	struct pb_call_stack *stack;
	int64_t budget;
};

/* Makes `to` the current stack. The event has already changed `to`. `depth` is the depth that `to`
 * had before the event. */
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

/* Updates the counts for a call that has left its stack. Returns the sum in which the call was
 * active. */
static struct sum *leave(struct maker *m, const struct pb_event *ev)
{
	struct sum *s = &m->sums[ev->call->view];

	if (ev->stack->depth < ev->stack->counted)
		ev->stack->counted = ev->stack->depth;
	else
		s->active--;
	return s;
}

/* Returns the time when the call began in this process, or 0 if the call's duration isn't known. */
static uint64_t known_start(const struct pb_event *ev)
{
	uint64_t start = ev->call->aux ? ev->call->aux : ev->start;

	return ev->kind == PB_EV_EXIT && ev->time >= start ? start : 0;
}

static void on_end(struct maker *m, const struct pb_event *ev, unsigned calls)
{
	struct sum *s;
	uint64_t start;

	if (!ev->call) {
		m->sums[pb_sites_number(&m->sites, ev->image, ev->site)].calls += calls;
		return;
	}
	s = leave(m, ev);
	s->calls += calls;
	start = known_start(ev);
	if (start) {
		add_time(s, ev->time - start, ev->call->child);
		add_to_parent(ev, ev->time - start);
	} else {
		/* only the time of the call's callees is known */
		add_to_parent(ev, ev->call->child);
	}
}

static void on_begin(struct maker *m, const struct pb_event *ev, uint32_t number)
{
	if (!ev->call)
		return;
	ev->call->view = number;
	m->sums[number].active++;
}

static inline void on_event(struct maker *m, const struct pb_event *ev, unsigned calls)
{
	struct sum *s;

	switch (ev->kind) {
	case PB_EV_LEAF:
		s = &m->sums[pb_sites_number(&m->sites, ev->image, ev->site)];
		s->calls += calls;
		add_time(s, ev->time - ev->start, 0);
		add_to_parent(ev, ev->time - ev->start);
		break;
	case PB_EV_ENTRY: case PB_EV_OPEN:
		on_begin(m, ev, pb_sites_number(&m->sites, ev->image, ev->site));
		break;
	case PB_EV_EXIT: case PB_EV_END:
		on_end(m, ev, calls);
		break;
	case PB_EV_CALL: case PB_EV_FUNC:
		m->sums[pb_sites_number(&m->sites, ev->image, ev->site)].calls += calls;
		break;
	default:
		break;
	}
}

/* --- sums of selected calls ----------------------------------------------- */

static void on_end_selected(struct maker *m, const struct pb_event *ev, unsigned calls)
{
	struct sum *s = leave(m, ev);
	uint64_t start = known_start(ev), from = start ? start : ev->start, to = ev->time;

	if (!ev->call->view || (m->view->min_ns && !start) || !pb_select_long(m->view, from, to) ||
	    !pb_select_clip(m->view, &from, &to)) {
		add_to_parent(ev, ev->call->child);
		return;
	}
	s->calls += calls;
	if (start)
		add_time(s, to - from, ev->call->child);
	add_to_parent(ev, start ? to - from : ev->call->child);
}

static void on_event_selected(struct maker *m, const struct pb_event *ev, unsigned calls)
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
			on_end_selected(m, ev, calls);
			return;
		}
		break;
	case PB_EV_LEAF:
		if (!visible || !pb_select_long(m->view, start, end) ||
		    !pb_select_clip(m->view, &start, &end))
			return;
		m->sums[number].calls += calls;
		add_time(&m->sums[number], end - start, 0);
		add_to_parent(ev, end - start);
		return;
	case PB_EV_LOST: case PB_EV_NONE: case PB_EV_LEAF_OPEN:
		return;
	default:
		break;
	}
	m->sums[number].calls += !m->view->min_ns && calls &&
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

static bool add_event(void *arg, const struct pb_event *ev, unsigned calls)
{
	struct maker *m = arg;

	if (pb_unlikely(ev->stack != m->stack))
		change_stack(m, ev->stack, depth_before(ev));
	if (pb_unlikely(m->selects))
		on_event_selected(m, ev, calls);
	else
		on_event(m, ev, calls);
	m->budget += BUDGET_RECORD;
	return true;
}

/* Counts a call that is still open at the end of the data. The call's time isn't known. */
static void add_open(void *arg, struct pb_call_stack *s, const struct pb_open_call *call,
		     unsigned calls)
{
	struct maker *m = arg;
	uint32_t select = call ? call->select : s->leaf_select;
	uint64_t start = call ? call->start : s->leaf_start;
	uint32_t number;

	if (m->selects && !pb_select_open(m->view, select, start, m->latest))
		return;
	number = call ? call->view : pb_sites_number(&m->sites, s->image, s->leaf_site);
	m->sums[number].calls += calls;
	m->report->open++;
}

static int make(struct maker *m, bool by_time)
{
	const struct pb_view *v = m->view;
	struct pb_report *r = m->report;
	struct pb_call_walk w = { .data = v->data, .tids = v->tids, .nr_tids = v->nr_tids,
				  .by_time = by_time, .arg = m, .event = add_event,
				  .open = add_open };
	int ret = pb_call_walk(&w);

	if (ret)
		return ret;
	if (m->selects)
		m->sums[0] = (struct sum){ 0 };
	r->totals = w.totals;
	r->by_time = by_time;
	return make_rows(m, r, &v->data->clock);
}

int pb_report_make(const struct pb_view *v, struct pb_report *r)
{
	struct maker m = { .view = v, .report = r, .selects = pb_view_selects(v) };
	size_t size;
	int ret;

	memset(r, 0, sizeof(*r));
	ret = pb_sites_init(&m.sites, v->data);
	if (ret)
		return ret;
	/* a large array; most of its pages are never touched */
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
		ret = make(&m, by_time);
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
