/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Decides for each call whether views show it. The result depends on the results for its outer
 * calls. */
#include "view/select.h"

#include "view/filter.h"

#define DEPTH_MAX 256	/* s->base adds at most this number to the depth */

bool pb_view_selects(const struct pb_view *v)
{
	return v->filters || v->max_depth || v->min_ns || v->from || v->to != UINT64_MAX;
}

/* Returns the selection that the outermost call of a stack inherits. PB_SEL_IN and PB_SEL_OUT are
 * those that place_stack() found. The depth is s->base, the number of outer calls that aren't in
 * s->calls, but at most DEPTH_MAX. */
static uint32_t outside(const struct pb_call_stack *s)
{
	uint32_t base = s->base < DEPTH_MAX ? s->base : DEPTH_MAX;

	return s->inherited | base << PB_SEL_DEPTH_SHIFT;
}

/* Called when a thread has switched to the stack. The stack's calls are shown below the call that
 * waits for the stack: the innermost call of s->from. If s->from has no open call, the stack
 * inherits what s->from itself has inherited. */
static void place_stack(struct pb_call_stack *s)
{
	const struct pb_call_stack *f = s->from;
	uint32_t around = f->depth ? f->calls[f->depth - 1].select : outside(f);

	s->entered = false;
	s->inherited = around & (PB_SEL_IN | PB_SEL_OUT);
	s->shift = f->shift + (around >> PB_SEL_DEPTH_SHIFT);
}

/* Returns the selection of the event's call. `below` is the number of outer calls on the call's
 * stack. */
static uint32_t selection(const struct pb_view *v, const struct pb_event *ev, uint32_t below)
{
	uint32_t around = below ? ev->stack->calls[below - 1].select : outside(ev->stack);
	uint32_t select = around & (PB_SEL_IN | PB_SEL_OUT), depth = around >> PB_SEL_DEPTH_SHIFT;

	if (v->filters) {
		unsigned match = pb_filters_match(v->filters, ev->image, ev->site);

		if (match & PB_FILTER_IN || !pb_filters_has_in(v->filters))
			select |= PB_SEL_IN;
		if (match & PB_FILTER_OUT)
			select |= PB_SEL_OUT;
	} else {
		select |= PB_SEL_IN;
	}
	if (select & PB_SEL_IN && !(select & PB_SEL_OUT) &&
	    (!v->max_depth || ev->stack->shift + depth < v->max_depth)) {
		select |= PB_SEL_VISIBLE;
		depth++;
	}
	return select | depth << PB_SEL_DEPTH_SHIFT;
}

uint32_t pb_select(const struct pb_view *v, const struct pb_event *ev)
{
	struct pb_call_stack *s = ev->stack;

	if (s->entered)
		place_stack(s);
	switch (ev->kind) {
	case PB_EV_ENTRY: case PB_EV_OPEN:
		return ev->call ? ev->call->select = selection(v, ev, s->depth - 1) : 0;
	case PB_EV_EXIT: case PB_EV_END:
		return ev->call ? ev->call->select : selection(v, ev, s->depth);
	case PB_EV_LEAF_OPEN:
		return s->leaf_select = selection(v, ev, s->depth);
	case PB_EV_LOST: case PB_EV_NONE:
		return 0;
	default:
		return selection(v, ev, s->depth);
	}
}

static bool is_long(const struct pb_view *v, uint64_t start, uint64_t end)
{
	const struct pb_clock *c = &v->data->clock;

	return end > start &&
	       pb_clock_span(c, pb_clock_ticks_between(c, start, end)) >= v->min_ns;
}

bool pb_select_long(const struct pb_view *v, uint64_t start, uint64_t end)
{
	return !v->min_ns || is_long(v, start, end);
}

bool pb_select_clip(const struct pb_view *v, uint64_t *start, uint64_t *end)
{
	if (*start > v->to || *end < v->from)
		return false;
	if (*start < v->from)
		*start = v->from;
	if (*end > v->to)
		*end = v->to;
	return true;
}

bool pb_select_open(const struct pb_view *v, uint32_t select, uint64_t start, uint64_t end)
{
	return select & PB_SEL_VISIBLE && start <= v->to && pb_select_long(v, start, end);
}
