/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Selects calls by -F, -N, -D, -t and --range, in the same way for every view.
 *
 *   -F, -N    a call is "in" if it, or a call around it, matches -F. It is "out" if it,
 *             or a call around it, matches -N
 *   -D        limits the depth; only visible calls count, from the outermost one inwards
 *   -t        selects by a call's duration, which is known only at its end
 *   --range   cuts a call to the part that is inside the range
 *
 * Calls on another stack (a signal handler's, a coroutine's) are shown below the call
 * that waits for that stack: `stack->shift` is their depth there.
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
#define PB_SEL_DEPTH_SHIFT 8	/* higher bits: number of visible calls, including this one, that
				 * are open on its stack */

/* Whether any option selects calls. */
bool pb_view_selects(const struct pb_view *v);

/* Returns the selection of the event's call, by the filters. Must be called for each event, in
 * order, because it keeps the result in call->select while the call is open. */
uint32_t pb_select(const struct pb_view *v, const struct pb_event *ev);

/* The depth at which the call itself is shown, without `stack->shift`. */
static inline uint32_t pb_select_depth(uint32_t select)
{
	return (select >> PB_SEL_DEPTH_SHIFT) - (select & PB_SEL_VISIBLE ? 1 : 0);
}

bool pb_select_long(const struct pb_view *v, uint64_t start, uint64_t end);
/* Cuts a span of time to --range; false: nothing is left. */
bool pb_select_clip(const struct pb_view *v, uint64_t *start, uint64_t *end);

/* Whether a call that is still open at `end` is selected: it is visible, began before the end of
 * --range, and has lasted at least -t. */
bool pb_select_open(const struct pb_view *v, uint32_t select, uint64_t start, uint64_t end);
#endif
