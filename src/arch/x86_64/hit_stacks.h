/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The stacks of the agent on which C code runs for hits of sites with FTRACE_FL_SMALL (frame.h).
 * The macros to_hit_stack and from_hit_stack (hot.inc) take a stack and give it back.
 *
 * Each stack has a word for its owner. One atomic operation takes the stack and names its owner,
 * and one store gives it back. At a fork, the hits of all threads may be at any instruction. So the
 * child's words always say whose the stacks are.
 *
 * In a forked child, the stacks that other threads of its parent had taken would stay taken. The
 * thread that forked frees them (pb_hit_stacks_forked() in arch/arch.h). Two kinds of stacks stay
 * taken: those of hits in the child, and those of hits that this thread itself had begun before the
 * fork. There may be such hits if a signal handler has interrupted a hit, and forks.
 *
 * One case remains. In a forked child that has no epoch yet, a thread begins a hit, and another
 * thread forks meanwhile. Then the stack of this hit stays taken in the second child. It may be the
 * first stack, which is only for processes that haven't freed stacks (frame.h).
 */
#ifndef PB_ARCH_X86_64_HIT_STACKS_H
#define PB_ARCH_X86_64_HIT_STACKS_H
#include <stdbool.h>
#include <stdint.h>
#include "arch/x86_64/frame.h"

/* At the upper end of each stack. */
struct pb_hit_stack_use {
	uint64_t slot;		/* the slot of the hit, which is on the program's stack */
} __attribute__((aligned(16)));

/* For each stack: pb_hit_stack_owner() of the hit that has taken it; 0: the stack is free. */
extern uint64_t pb_hit_stack_owners[] __attribute__((visibility("hidden")));
extern uint8_t pb_hit_stacks[] __attribute__((visibility("hidden")));

static inline struct pb_hit_stack_use *pb_hit_stack_use(unsigned i)
{
	return (struct pb_hit_stack_use *)(pb_hit_stacks + ((i + 1ul) << PB_HIT_STACK_SHIFT)) - 1;
}

/* tcb: the TCB of the hit's thread. epoch: of the process in which the hit began (struct
 * pb_process). Both lose their upper bits, which a TCB doesn't have. After 65,536 generations of
 * forks, a left-over stack may stay taken. Both may be 0: a TLS that isn't libc's may have 0 where
 * the TCB's address should be, and a child may have no epoch yet. So one bit is always set. */
static inline uint64_t pb_hit_stack_owner(uint64_t tcb, uint32_t epoch)
{
	return tcb << PB_HIT_EPOCH_BITS | (uint16_t)epoch | 1ul << PB_HIT_TAKEN_BIT;
}

/* If sp is on one of these stacks, returns true. *end gets the upper end of the part that C code
 * and handlers use, and *slot gets the hit's slot. sp must be the stack pointer of a stopped
 * thread. Context: the helper of a stop. */
bool pb_hit_stack_at(uint64_t sp, uint64_t *end, uint64_t *slot);
#endif
