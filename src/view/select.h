/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Selects calls by -F, -N, -D, -t and --range. The selection is the same for every view.
 *
 *   -F, -N    a call is "in" if there is no -F, or if the call or an outer call matches -F. A call
 *             is "out" if the call or an outer call matches -N. Visible calls are in and not out
 *   -D        limits the depth. A call's depth is the number of visible calls from the outermost
 *             call to this call
 *   -t        selects by a call's duration, which is known only at its end
 *   --range   cuts a call to the part inside the range
 *
 * Calls on another stack (a signal handler's, a coroutine's) are shown below the call that waits
 * for the other stack. `stack->shift` is added to their depth.
 *
 * Context: the observer, one thread.
 */
#ifndef PB_VIEW_SELECT_H
#define PB_VIEW_SELECT_H
#include "view/view.h"

/* Bits of pb_open_call.select, and of the result of pb_select() */
#define PB_SEL_VISIBLE	1u
#define PB_SEL_IN	2u	/* inside a function of -F */
#define PB_SEL_OUT	4u	/* inside a function of -N */
#define PB_SEL_DEPTH_SHIFT 8	/* the higher bits count the stack's visible open calls, from the
				 * outermost to this call */

/* Returns whether any option selects calls. */
bool pb_view_selects(const struct pb_view *v);

/* Returns the selection of the event's call, by the filters. Must be called for each event, in
 * order, because the selection depends on the selections of the outer calls. While a call is open,
 * call->select keeps its selection. */
uint32_t pb_select(const struct pb_view *v, const struct pb_event *ev);

/* Returns the depth at which a call with this selection is shown, without `stack->shift`. */
static inline uint32_t pb_select_depth(uint32_t select)
{
	return (select >> PB_SEL_DEPTH_SHIFT) - (select & PB_SEL_VISIBLE ? 1 : 0);
}

/* Returns whether the time from start to end is at least the time of -t. True without -t. */
bool pb_select_long(const struct pb_view *v, uint64_t start, uint64_t end);
/* Cuts a span of time to --range. Returns false if nothing is left. */
bool pb_select_clip(const struct pb_view *v, uint64_t *start, uint64_t *end);

/* Returns whether a call that is still open at `end` is selected. A selected call is visible, began
 * before the end of --range, and has lasted at least -t. */
bool pb_select_open(const struct pb_view *v, uint32_t select, uint64_t start, uint64_t end);
#endif
