/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Sums up calls by function (sums.h). Each record costs an array access and no hashing.
 *
 * A call's time is added to its function's total only if the stack has no outer call of the same
 * function. Otherwise the time is noted in the next outer call of the function (`nested`). If the
 * duration of that call stays unknown, the noted time counts in its place.
 *
 * To find the outer call, each function's sum has in `last` the function's innermost open call on
 * the current stack, which is the stack of the last event. If the next event is on another stack,
 * `last` is cleared for the calls on the old stack, and set for those on the new stack. If almost
 * every event switches to another deep stack, these updates cost too much. In that case `last` is
 * set only for the stack's innermost calls: those from index `stack->counted` on.
 *
 * There may be several sums (top.h), and a stack may move from thread to thread. A stack is the
 * current stack of at most one of the sums: those of its last event (`stack->sums`). When an event
 * on the stack belongs to other sums, `last` is cleared in the former sums, which then have no
 * current stack.
 *
 * If a child inherits a call by fork, the call is counted in the parent. In the child, the call's
 * time begins at the fork (`call->aux`).
 *
 * If the user selected calls (view/select.h), sums[0] is for invisible calls. No function has
 * number 0. The callees of an invisible call count as callees of the next visible outer call.
 */
#include "view/sums.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>

#include "base/base.h"
#include "view/select.h"

#define BUDGET		(1ll << 26)	/* number of updates of `last` that changes of the stack
					 * may make */
#define BUDGET_RECORD	64		/* number of further updates that each record allows */
#define SHORT_DEPTH	64		/* when no updates are left, `last` is set only for this
					 * many of a stack's calls */

/* Makes the call with this index the innermost open call of its function. */
static inline void make_last(struct pb_sums *m, struct pb_call_stack *s, uint32_t index)
{
	struct pb_open_call *call = &s->calls[index];
	struct pb_sum *sum = &m->sums[call->view];

	call->outer = sum->last;
	sum->last = index + 1;
}

/* Clears `last` for the calls on the current stack, whose depth is `depth`. The sums then have no
 * current stack. */
static void leave_stack(struct pb_sums *m, uint32_t depth)
{
	struct pb_call_stack *from = m->stack;

	for (uint32_t i = from->counted; i < depth; i++)
		m->sums[from->calls[i].view].last = 0;
	if (from->counted < depth)
		m->budget -= depth - from->counted;
	from->sums = NULL;
	m->stack = NULL;
}

/* Makes `to` the current stack. The event has already changed `to`. `depth` is the depth that `to`
 * had before the event. If the event has popped a call, the call is still in to->calls. */
static void change_stack(struct pb_sums *m, struct pb_call_stack *to, uint32_t depth)
{
	if (m->stack)
		leave_stack(m, m->stack->depth);
	if (to->sums)
		leave_stack(to->sums, depth);
	m->stack = to;
	to->sums = m;
	to->counted = 0;
	if (m->budget < depth && depth > SHORT_DEPTH)
		to->counted = depth - SHORT_DEPTH;
	for (uint32_t i = to->counted; i < depth; i++)
		make_last(m, to, i);
	m->budget -= depth - to->counted;
}

static uint32_t depth_before(const struct pb_event *ev)
{
	uint32_t depth = ev->stack->depth;

	if (!ev->call)
		return depth;
	return ev->kind == PB_EV_ENTRY || ev->kind == PB_EV_OPEN ? depth - 1 : depth + 1;
}

/* Adds a time with a weight to a sum. The product may need more than 64 bits. */
static inline void add_weighted(uint64_t *sum, uint16_t *rest, uint64_t ticks, uint64_t weight)
{
	unsigned __int128 units;

	if (pb_likely(weight == PB_SAMPLE_UNIT)) {
		*sum += ticks;
		return;
	}
	units = (unsigned __int128)ticks * weight + *rest;
	*sum += (uint64_t)(units / PB_SAMPLE_UNIT);
	*rest = (uint16_t)(units % PB_SAMPLE_UNIT);
}

/* Adds the time to the function's total, or to the next outer call of the function. */
static inline void add_total(struct pb_sum *s, struct pb_call_stack *stack, uint64_t duration,
			     uint64_t weight)
{
	if (s->last && s->last <= stack->depth)
		stack->calls[s->last - 1].nested += duration;
	else
		add_weighted(&s->total, &s->total_rest, duration, weight);
}

/* Adds a duration to a function's sum. `child` is the time of the callees. If `whole` is false, the
 * duration is that of a part of a call, and the call counts elsewhere, for example in the process
 * that has forked this one. */
static inline void add_time(struct pb_sum *s, struct pb_call_stack *stack, uint64_t duration,
			    uint64_t child, uint64_t weight, bool whole)
{
	if (duration > child)
		add_weighted(&s->self, &s->self_rest, duration - child, weight);
	add_total(s, stack, duration, weight);
	if (!whole)
		return;
	s->timed++;
	s->sum += duration;
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

/* Undoes make_last() for a call that has left its stack. Returns the sum of the call's function. */
static struct pb_sum *leave(struct pb_sums *m, const struct pb_event *ev)
{
	struct pb_sum *s = &m->sums[ev->call->view];

	if (ev->stack->depth < ev->stack->counted)
		ev->stack->counted = ev->stack->depth;
	else
		s->last = ev->call->outer;
	return s;
}

/* Returns the time when the call began in this process, or 0 if the call's duration isn't known. */
static uint64_t known_start(const struct pb_event *ev)
{
	uint64_t start = ev->call->aux ? ev->call->aux : ev->start;

	return ev->kind == PB_EV_EXIT && ev->time >= start ? start : 0;
}

static void on_end(struct pb_sums *m, const struct pb_event *ev, unsigned calls)
{
	struct pb_sum *s;
	uint64_t start, duration;

	if (!ev->call) {
		m->sums[pb_sites_number(&m->sites, ev->image, ev->site)].calls += calls * m->weight;
		return;
	}
	s = leave(m, ev);
	s->calls += calls * m->weight;
	start = known_start(ev);
	if (start) {
		duration = pb_clock_ticks_between(m->clock, start, ev->time);
		add_time(s, ev->stack, duration, ev->call->child, m->time_weight, calls);
		add_to_parent(ev, duration);
	} else {
		/* only the time of the call's callees is known */
		add_total(s, ev->stack, ev->call->nested, m->time_weight);
		add_to_parent(ev, ev->call->child);
	}
}

static void on_begin(struct pb_sums *m, const struct pb_event *ev, uint32_t number)
{
	if (!ev->call)
		return;
	ev->call->view = number;
	make_last(m, ev->stack, ev->stack->depth - 1);
}

static inline void on_event(struct pb_sums *m, const struct pb_event *ev, unsigned calls)
{
	struct pb_sum *s;
	uint64_t duration;

	switch (ev->kind) {
	case PB_EV_LEAF:
		s = &m->sums[pb_sites_number(&m->sites, ev->image, ev->site)];
		s->calls += calls * m->weight;
		duration = pb_clock_ticks_between(m->clock, ev->start, ev->time);
		add_time(s, ev->stack, duration, 0, m->time_weight, true);
		add_to_parent(ev, duration);
		break;
	case PB_EV_ENTRY: case PB_EV_OPEN:
		on_begin(m, ev, pb_sites_number(&m->sites, ev->image, ev->site));
		break;
	case PB_EV_EXIT: case PB_EV_END:
		on_end(m, ev, calls);
		break;
	case PB_EV_CALL: case PB_EV_FUNC:
		m->sums[pb_sites_number(&m->sites, ev->image, ev->site)].calls += calls * m->weight;
		break;
	default:
		break;
	}
}

/* --- sums of selected calls ----------------------------------------------- */

static void on_end_selected(struct pb_sums *m, const struct pb_event *ev, unsigned calls)
{
	struct pb_sum *s = leave(m, ev);
	uint64_t start = known_start(ev), from = start ? start : ev->start, to = ev->time;
	uint64_t duration;

	if (!ev->call->view || (m->view->min_ns && !start) || !pb_select_long(m->view, from, to) ||
	    !pb_select_clip(m->view, &from, &to)) {
		add_total(s, ev->stack, ev->call->nested, m->time_weight);
		add_to_parent(ev, ev->call->child);
		return;
	}
	s->calls += calls * m->weight;
	if (!start) {
		add_total(s, ev->stack, ev->call->nested, m->time_weight);
		add_to_parent(ev, ev->call->child);
		return;
	}
	duration = pb_clock_ticks_between(m->clock, from, to);
	add_time(s, ev->stack, duration, ev->call->child, m->time_weight, calls);
	add_to_parent(ev, duration);
}

static void on_event_selected(struct pb_sums *m, const struct pb_event *ev, unsigned calls)
{
	bool visible = pb_select(m->view, ev) & PB_SEL_VISIBLE;
	uint32_t number = visible ? pb_sites_number(&m->sites, ev->image, ev->site) : 0;
	uint64_t start = ev->start ? ev->start : ev->time, end = ev->time, duration;

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
		m->sums[number].calls += calls * m->weight;
		duration = pb_clock_ticks_between(m->clock, start, end);
		add_time(&m->sums[number], ev->stack, duration, 0, m->time_weight, true);
		add_to_parent(ev, duration);
		return;
	case PB_EV_LOST: case PB_EV_NONE: case PB_EV_LEAF_OPEN:
		return;
	default:
		break;
	}
	m->sums[number].calls += !m->view->min_ns && calls &&
				 pb_select_clip(m->view, &start, &end);
}

bool pb_sums_event(void *arg, const struct pb_event *ev, unsigned calls)
{
	struct pb_sums *m = arg;

	if (pb_unlikely(ev->stack != m->stack))
		change_stack(m, ev->stack, depth_before(ev));
	if (pb_unlikely(m->selects))
		on_event_selected(m, ev, calls);
	else
		on_event(m, ev, calls);
	m->budget += BUDGET_RECORD;
	return true;
}

static uint64_t run_time(const struct pb_sums *m, uint64_t start, uint64_t time)
{
	return time > start ? pb_clock_ticks_between(m->clock, start, time) : 0;
}

/* Adds the time of each open call, from the innermost to the outermost, as if the calls returned.
 * Then makes `last` refer to the open calls again. */
void pb_sums_settle(struct pb_sums *m, struct pb_call_stack *s, uint32_t leaf, uint64_t leaf_start,
		    uint64_t time)
{
	uint64_t inner = leaf ? run_time(m, leaf_start, time) : 0;

	if (s != m->stack)
		change_stack(m, s, s->depth);
	if (inner)
		add_time(&m->sums[leaf], s, inner, 0, m->time_weight, true);
	for (uint32_t i = s->depth; i--;) {
		struct pb_open_call *call = &s->calls[i];
		struct pb_sum *sum = &m->sums[call->view];
		uint64_t start = call->aux > 1 ? call->aux : call->start;
		uint64_t duration = start ? run_time(m, start, time) : 0;

		if (i >= s->counted)
			sum->last = call->outer;
		sum->calls += pb_open_call_counts(call) * m->weight;
		add_time(sum, s, duration, call->child + inner, m->time_weight, true);
		inner = duration;
		call->child = call->nested = 0;
		/* the call doesn't count again, and known_start() finds no start */
		call->aux = UINT64_MAX;
	}
	for (uint32_t i = s->counted; i < s->depth; i++)
		make_last(m, s, i);
}

void pb_sums_open(void *arg, struct pb_call_stack *s, const struct pb_open_call *call,
		     unsigned calls)
{
	struct pb_sums *m = arg;
	uint32_t select = call ? call->select : s->leaf_select;
	uint64_t start = call ? call->start : s->leaf_start;
	uint32_t number;

	if (call)
		m->sums[call->view].total += call->nested;
	if (m->selects && !pb_select_open(m->view, select, start, m->latest))
		return;
	number = call ? call->view : pb_sites_number(&m->sites, s->image, s->leaf_site);
	m->sums[number].calls += calls;
	m->open++;
}

int pb_sums_init(struct pb_sums *m, const struct pb_view *v)
{
	int ret;

	*m = (struct pb_sums){ .view = v, .clock = &v->data->clock, .selects = pb_view_selects(v),
				.budget = BUDGET, .weight = 1, .time_weight = PB_SAMPLE_UNIT };
	ret = pb_sites_init(&m->sites, v->data);
	if (ret)
		return ret;
	/* a large array; most of its pages are never touched */
	m->size = (size_t)m->sites.total * sizeof(*m->sums);
	m->sums = mmap(NULL, m->size, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (m->sums != MAP_FAILED)
		return 0;
	pb_sites_free(&m->sites);
	m->sums = NULL;
	return -ENOMEM;
}

void pb_sums_free(struct pb_sums *m)
{
	if (!m->sums)
		return;
	munmap(m->sums, m->size);
	pb_sites_free(&m->sites);
	m->sums = NULL;
}
