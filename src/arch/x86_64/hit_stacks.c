/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The stacks of the agent on which C code runs at sites with FTRACE_FL_SMALL (hit_stacks.h). */
#include "arch/x86_64/hit_stacks.h"
#include "arch/arch.h"
#include "base/base.h"

#define SIZE	(1ul << PB_HIT_STACK_SHIFT)

uint64_t pb_hit_stack_owners[PB_NR_HIT_STACKS]
	__attribute__((aligned(2 * PB_NR_HIT_STACKS * sizeof(uint64_t))));
uint8_t pb_hit_stacks[PB_NR_HIT_STACKS * SIZE] __attribute__((aligned(4096)));
/* the assembly finds the end of the owners in bit 8 of the address, and the number in the bits
 * below */
_Static_assert(sizeof(pb_hit_stack_owners) == 256, "hot.inc");
_Static_assert(PB_HIT_EPOCH_BITS == 8 * sizeof(uint16_t), "frame.h");
_Static_assert(sizeof(struct pb_hit_stack_use) == HIT_STACK_USE, "frame.h");
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
static bool is_left_over(uint64_t owner, uint32_t epoch)
{
	uint64_t own = pb_hit_stack_owner(pb_cpu_thread_pointer(), 0);
	uint16_t begun = (uint16_t)owner;

	return begun && begun != (uint16_t)epoch && owner - begun != own;
}

/* Other threads of the child may take and give back stacks meanwhile, but not these. */
void pb_hit_stacks_forked(uint32_t epoch)
{
	for (unsigned i = 0; i < PB_NR_HIT_STACKS; i++)
		if (is_left_over(__atomic_load_n(&pb_hit_stack_owners[i], __ATOMIC_RELAXED), epoch))
			__atomic_store_n(&pb_hit_stack_owners[i], 0, __ATOMIC_RELEASE);
}
