/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The stacks of the agent on which C code runs for hits of sites with FTRACE_FL_SMALL (frame.h).
 * The macros to_hit_stack and from_hit_stack (hot.inc) take a stack and give it back.
 *
 * In a forked child, the stacks that other threads of its parent had taken would stay taken. The
 * thread that forked frees them (pb_hit_stacks_forked() in arch/arch.h). Two kinds of stacks stay
 * taken: those of hits in the child, and those of hits that this thread itself had begun before the
 * fork. There may be such hits if a signal handler has interrupted a hit, and forks.
 */
#ifndef PB_ARCH_X86_64_HIT_STACKS_H
#define PB_ARCH_X86_64_HIT_STACKS_H
#include <stdbool.h>
#include <stdint.h>
#include "arch/x86_64/frame.h"

/* At the upper end of each stack: the hit that has taken it. */
struct pb_hit_stack_use {
	uint32_t epoch;		/* of the process in which the hit began (struct pb_process) */
	uint64_t owner;		/* the TCB of the hit's thread. It is stored last and cleared first.
				 * 0: the stack is free, or is being taken or given back */
	uint64_t slot;		/* the slot of the hit, which is on the program's stack */
} __attribute__((aligned(16)));

extern uint32_t pb_hit_stacks_used __attribute__((visibility("hidden")));
extern uint8_t pb_hit_stacks[] __attribute__((visibility("hidden")));

static inline struct pb_hit_stack_use *pb_hit_stack_use(unsigned i)
{
	return (struct pb_hit_stack_use *)(pb_hit_stacks + ((i + 1ul) << PB_HIT_STACK_SHIFT)) - 1;
}

/* If sp is on one of these stacks, returns true. *end gets the upper end of the part that C code
 * and handlers use, and *slot gets the hit's slot. sp must be the stack pointer of a stopped
 * thread. Context: the helper of a stop. */
bool pb_hit_stack_at(uint64_t sp, uint64_t *end, uint64_t *slot);
#endif
