/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What the parts of text share. */
#ifndef PB_ENGINE_TEXT_PRIV_H
#define PB_ENGINE_TEXT_PRIV_H
#include "abi/analysis_access.h"
#include "base/mem.h"
#include "engine/text.h"

static inline bool pb_window_is_patched(const struct pb_module *m, const struct pb_func *f)
{
	return memcmp((const void *)(m->bias + pb_func_window(f)),
		      pb_recipe_rest(pb_func_recipe(m->analysis, f)), pb_func_jump_len(f));
}

/* Only with via. */
static inline bool pb_hole_is_patched(const struct pb_module *m, const struct pb_func *f)
{
	const struct pb_recipe *dug = pb_func_dug(m->analysis, f);

	if (dug)
		return memcmp((const void *)(m->bias + pb_func_dig(f)), pb_recipe_rest(dug), PB_DIG_LEN);
	return memcmp((const void *)(m->bias + pb_func_hole(f)),
		      pb_recipe_hole(pb_func_recipe(m->analysis, f)), PB_JUMP_LEN);
}

/* text_ride.c: PB_FUNC_RIDES. Both have their stubs: finds the places where
 * their jumps can go, and puts jumps to the stubs there. */
bool pb_ride_make(struct pb_module *m, const struct pb_func *rider);
/* Where the jump of a carrier is to go, or 0. */
uint64_t pb_ride_target(const struct pb_module *m, const struct pb_func *carrier);
/* The function whose jump goes to pc, by way of the text; NULL: none. */
const struct pb_func *pb_ride_at(uint64_t pc, const struct pb_module **m);
void pb_ride_remove(const struct pb_module *m);

/* text_jit.c: tells debuggers about all stubs of m, or about none. Context: as
 * batches. */
void pb_jit_announce(struct pb_module *m);
void pb_jit_withdraw(struct pb_module *m);
#endif
