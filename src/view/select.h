/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What -F, -N, -D, -t and --range choose of the calls, for every view alike.
 *
 *   -F, -N    a call is in when it, or one around it, matches -F; out likewise
 *   -D        counts visible calls, from the outermost one on
 *   -t        by a call's duration: known at its end only
 *   --range   by what part of a call lies inside
 *
 * Another stack (a signal handler's, a coroutine's) stands below the call that
 * waits for what runs there: `stack->shift` is how deep that is.
 *
 * Context: the observer, one thread.
 */
#ifndef PB_VIEW_SELECT_H
#define PB_VIEW_SELECT_H
#include "view/view.h"

/* pb_open_call.select, and of a call without a place on a stack */
#define PB_SEL_VISIBLE	1u
#define PB_SEL_IN	2u	/* inside a function of -F */
#define PB_SEL_OUT	4u	/* inside a function of -N */
#define PB_SEL_DEPTH_SHIFT 8	/* above: how many visible calls, with this one, are open
				 * on its stack */

/* Whether anything is chosen at all. */
bool pb_view_selects(const struct pb_view *v);

/* What the filters make of the event's call. To be asked for each event, in
 * order: it is kept in call->select while the call is open. */
uint32_t pb_select(const struct pb_view *v, const struct pb_event *ev);

/* How deep the call itself is shown, `stack->shift` apart. */
static inline uint32_t pb_select_depth(uint32_t select)
{
	return (select >> PB_SEL_DEPTH_SHIFT) - (select & PB_SEL_VISIBLE ? 1 : 0);
}

bool pb_select_long(const struct pb_view *v, uint64_t start, uint64_t end);
/* Cuts a time down to --range; false: nothing is left of it. */
bool pb_select_clip(const struct pb_view *v, uint64_t *start, uint64_t *end);

/* Whether a visible call that still ran at `end` counts: one that lasted. */
bool pb_select_open(const struct pb_view *v, uint32_t select, uint64_t start, uint64_t end);
#endif
