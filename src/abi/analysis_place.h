/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A place where a jump to a stub replaces code: a function's entry, or a window of exits. Both
 * kinds of place have a window, a recipe, and perhaps a slot. Code that writes text or translates
 * program counters treats both kinds alike.
 *
 * Context: any. The analysis must have passed pb_analysis_check().
 */
#ifndef PB_ABI_ANALYSIS_PLACE_H
#define PB_ABI_ANALYSIS_PLACE_H
#include <stdbool.h>
#include "abi/analysis_access.h"

struct pb_place {
	uint64_t window;		/* link-time address of the window's first byte */
	const struct pb_recipe *recipe;
	const struct pb_recipe *second;	/* recipe of the code that a slot or the second shared jump
					 * displaces; NULL: no such code */
	const struct pb_window_exit *exits; /* the window's exits, in ascending order */
	uint8_t nr_exits;
	bool shares;			/* the window's jump is the first of two shared jumps */
	int16_t via;			/* offset from the window to the slot; 0: no slot */
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

/* Only for a function that isn't refused (PB_REFUSED_NOT). If f has the first of two shared jumps,
 * the next function has the recipe of the second jump. */
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

/* Whether both shared jumps belong to this place. If so, the two jumps are one patch. */
static inline bool pb_place_with_second(const struct pb_place *p)
{
	return p->shares && p->second;
}

/* Returns the size of the jump in the window. */
static inline unsigned pb_place_jump_len(const struct pb_place *p)
{
	if (p->shares)
		return PB_JUMP_SHARED;
	return p->via ? PB_JUMP_SHORT : PB_JUMP_LEN;
}

/* Returns the size of the jump in the window. If both shared jumps belong to the place, adds the
 * second jump's size. */
static inline unsigned pb_place_patch_len(const struct pb_place *p)
{
	return pb_place_jump_len(p) + (pb_place_with_second(p) ? PB_JUMP_LEN : 0u);
}

/* Returns the link-time address of the slot. Only for a place whose via isn't 0. */
static inline uint64_t pb_place_slot(const struct pb_place *p)
{
	return p->window + (uint64_t)(int64_t)p->via;
}

/* Returns the link-time address of the code that the second recipe replaces. */
static inline uint64_t pb_place_second(const struct pb_place *p)
{
	return p->shares ? p->window + PB_JUMP_SHARED : pb_place_slot(p) - PB_JUMP_LEN;
}
#endif
