/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The stacks of the agent on which C code runs at sites with FTRACE_FL_SMALL (frame.h). */
#include "arch/x86_64/hit_stacks.h"
#include "base/base.h"

#define SIZE	(1ul << PB_HIT_STACK_SHIFT)

/* A bit for each stack: it is taken. Only the assembly changes it (hot.inc). */
uint32_t pb_hit_stacks_used;
uint8_t pb_hit_stacks[PB_NR_HIT_STACKS * SIZE] __attribute__((aligned(4096)));
_Static_assert(PB_NR_HIT_STACKS == 8 * sizeof(pb_hit_stacks_used), "frame.h");

bool pb_hit_stack_at(uint64_t sp, uint64_t *end, uint64_t *slot)
{
	uint64_t at = sp - (uint64_t)pb_hit_stacks;

	if (at >= sizeof(pb_hit_stacks))
		return false;
	*end = (uint64_t)pb_hit_stacks + pb_align_up(at + 1, SIZE) - 8;
	*slot = *(uint64_t *)*end;
	return true;
}
