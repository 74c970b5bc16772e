/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The stacks of the agent on which C code runs at sites with FTRACE_FL_SMALL (hit_stacks.h). */
#include "arch/x86_64/hit_stacks.h"
#include "arch/arch.h"
#include "base/base.h"

#define SIZE	(1ul << PB_HIT_STACK_SHIFT)

/* A bit for each stack: it is taken. The assembly sets and clears bits (hot.inc). */
uint32_t pb_hit_stacks_used;
uint8_t pb_hit_stacks[PB_NR_HIT_STACKS * SIZE] __attribute__((aligned(4096)));
_Static_assert(PB_NR_HIT_STACKS == 8 * sizeof(pb_hit_stacks_used), "frame.h");
_Static_assert(sizeof(struct pb_hit_stack_use) == HIT_STACK_USE, "frame.h");
_Static_assert(offsetof(struct pb_hit_stack_use, epoch) == U_EPOCH, "frame.h");
_Static_assert(offsetof(struct pb_hit_stack_use, owner) == U_OWNER, "frame.h");
_Static_assert(offsetof(struct pb_hit_stack_use, slot) == U_SLOT, "frame.h");

bool pb_hit_stack_at(uint64_t sp, uint64_t *end, uint64_t *slot)
{
	uint64_t at = sp - (uint64_t)pb_hit_stacks;

	if (at >= sizeof(pb_hit_stacks))
		return false;
	*end = (uint64_t)pb_hit_stack_use((unsigned)(at / SIZE));
	*slot = ((const struct pb_hit_stack_use *)*end)->slot;
	return true;
}

/* Whether a thread that the fork has ended had taken the stack. A hit of the child has the epoch 0
 * until the child gets its own epoch. */
static bool is_left_over(const struct pb_hit_stack_use *use, uint32_t epoch)
{
	uint64_t owner = __atomic_load_n(&use->owner, __ATOMIC_ACQUIRE);
	uint32_t begun = __atomic_load_n(&use->epoch, __ATOMIC_RELAXED);

	return owner && owner != pb_cpu_thread_pointer() && begun && begun != epoch;
}

/* Other threads of the child may take and give back stacks meanwhile. */
void pb_hit_stacks_forked(uint32_t epoch)
{
	for (unsigned i = 0; i < PB_NR_HIT_STACKS; i++) {
		struct pb_hit_stack_use *use = pb_hit_stack_use(i);
		uint32_t bit = 1u << i;

		if (!(__atomic_load_n(&pb_hit_stacks_used, __ATOMIC_ACQUIRE) & bit) ||
		    !is_left_over(use, epoch))
			continue;
		__atomic_store_n(&use->owner, 0, __ATOMIC_RELAXED);
		__atomic_fetch_and(&pb_hit_stacks_used, ~bit, __ATOMIC_RELEASE);
	}
}
