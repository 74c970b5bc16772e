/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Where a jump to a stub replaces code: a function's entry, or a window of exits.
 * Both have a window, perhaps a hole, and a recipe; what writes text and maps
 * program counters needs no more.
 *
 * Context: any, of an analysis that pb_analysis_check() has passed.
 */
#ifndef PB_ABI_ANALYSIS_PLACE_H
#define PB_ABI_ANALYSIS_PLACE_H
#include <stdbool.h>
#include "abi/analysis_access.h"

struct pb_place {
	uint64_t window;		/* link-time address of its first byte */
	const struct pb_recipe *recipe;
	const struct pb_recipe *second;	/* of what is dug away, or of the carrier; NULL: none */
	const struct pb_window_exit *exits; /* instructions of the window, in their order */
	uint8_t nr_exits;
	bool rides;			/* one byte, whose jump goes on in the carrier's */
	int16_t via;			/* from the window to the hole; 0: none */
};

static inline struct pb_place pb_window_place(const struct pb_analysis *a,
					      const struct pb_exit_window *w)
{
	const struct pb_func *f = pb_window_func(a, w);

	return (struct pb_place){
		.window = w->start, .recipe = pb_window_recipe(a, w),
		.second = f ? pb_func_dug(a, f) : pb_window_second(a, w),
		.exits = pb_window_exits(a, w), .nr_exits = w->nr,
		.rides = f ? f->flags & PB_FUNC_RIDES : w->how == PB_EXIT_RIDES ||
		w->how == PB_EXIT_NEXT,
		.via = f ? f->via : w->via,
	};
}

/* Only for a function with PB_REFUSED_NOT. (One that rides has its carrier's
 * recipe in the next function.) */
static inline struct pb_place pb_func_place(const struct pb_analysis *a, const struct pb_func *f)
{
	if (f->flags & PB_FUNC_EXITS)
		return pb_window_place(a, pb_func_exits(a, f));
	return (struct pb_place){
		.window = pb_func_window(f), .recipe = pb_func_recipe(a, f),
		.second = pb_func_dug(a, f), .rides = f->flags & PB_FUNC_RIDES, .via = f->via,
	};
}

static inline bool pb_place_dug(const struct pb_place *p)
{
	return p->via && p->second;
}

/* The carrier of a window of exits, which is patched together with it. */
static inline bool pb_place_carries(const struct pb_place *p)
{
	return p->rides && p->second;
}

/* The bytes that the jump in the window takes. */
static inline unsigned pb_place_jump_len(const struct pb_place *p)
{
	if (p->rides)
		return PB_JUMP_RIDE;
	return p->via ? PB_JUMP_SHORT : PB_JUMP_LEN;
}

/* And with them the carrier's. */
static inline unsigned pb_place_patch_len(const struct pb_place *p)
{
	return pb_place_jump_len(p) + (pb_place_carries(p) ? PB_JUMP_LEN : 0u);
}

/* The link-time address of the hole; only with via. */
static inline uint64_t pb_place_hole(const struct pb_place *p)
{
	return p->window + (uint64_t)(int64_t)p->via;
}

/* Of what the second recipe displaces. */
static inline uint64_t pb_place_second(const struct pb_place *p)
{
	return p->rides ? p->window + PB_JUMP_RIDE : pb_place_hole(p) - PB_JUMP_LEN;
}
#endif
