/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Where a jump to a stub replaces code: a function's entry, or a window of exits.
 * Both have a window, perhaps a slot, and a recipe; what writes text and maps
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
	const struct pb_recipe *second;	/* of what a slot displaces, or the second of two shared
					 * jumps; NULL: none */
	const struct pb_window_exit *exits; /* instructions of the window, in their order */
	uint8_t nr_exits;
	bool shares;			/* one byte: the first of two shared jumps */
	int16_t via;			/* from the window to the slot; 0: none */
};

static inline struct pb_place pb_window_place(const struct pb_analysis *a,
					      const struct pb_exit_window *w)
{
	const struct pb_func *f = pb_window_func(a, w);

	return (struct pb_place){
		.window = w->start, .recipe = pb_window_recipe(a, w),
		.second = f ? pb_func_code_recipe(a, f) : pb_window_second(a, w),
		.exits = pb_window_exits(a, w), .nr_exits = w->nr,
		.shares = f ? f->flags & PB_FUNC_SHARES : w->how == PB_EXIT_SHARED ||
		w->how == PB_EXIT_NEXT,
		.via = f ? f->via : w->via,
	};
}

/* Only for a function with PB_REFUSED_NOT. (Of two that share a jump
 * the second's recipe is in the next function.) */
static inline struct pb_place pb_func_place(const struct pb_analysis *a, const struct pb_func *f)
{
	if (f->flags & PB_FUNC_EXITS)
		return pb_window_place(a, pb_func_exits(a, f));
	return (struct pb_place){
		.window = pb_func_window(f), .recipe = pb_func_recipe(a, f),
		.second = pb_func_code_recipe(a, f),
		.shares = f->flags & PB_FUNC_SHARES, .via = f->via,
	};
}

static inline bool pb_place_in_code(const struct pb_place *p)
{
	return p->via && p->second;
}

/* Are both of two shared jumps this place's, and so one patch? */
static inline bool pb_place_with_second(const struct pb_place *p)
{
	return p->shares && p->second;
}

/* The bytes that the jump in the window takes. */
static inline unsigned pb_place_jump_len(const struct pb_place *p)
{
	if (p->shares)
		return PB_JUMP_SHARED;
	return p->via ? PB_JUMP_SHORT : PB_JUMP_LEN;
}

/* And with them the second jump's. */
static inline unsigned pb_place_patch_len(const struct pb_place *p)
{
	return pb_place_jump_len(p) + (pb_place_with_second(p) ? PB_JUMP_LEN : 0u);
}

/* The link-time address of the slot; only with via. */
static inline uint64_t pb_place_slot(const struct pb_place *p)
{
	return p->window + (uint64_t)(int64_t)p->via;
}

/* Of what the second recipe displaces. */
static inline uint64_t pb_place_second(const struct pb_place *p)
{
	return p->shares ? p->window + PB_JUMP_SHARED : pb_place_slot(p) - PB_JUMP_LEN;
}
#endif
