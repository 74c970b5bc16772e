/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The stacks of the agent on which C code runs for hits of sites with FTRACE_FL_SMALL (frame.h).
 * The macros to_hit_stack and from_hit_stack (hot.inc) take a stack and give it back. */
#ifndef PB_ARCH_X86_64_HIT_STACKS_H
#define PB_ARCH_X86_64_HIT_STACKS_H
#include <stdbool.h>
#include <stdint.h>
#include "arch/x86_64/frame.h"

extern uint32_t pb_hit_stacks_used __attribute__((visibility("hidden")));
extern uint8_t pb_hit_stacks[] __attribute__((visibility("hidden")));

/* If sp is on one of these stacks, returns true. *end gets the upper end of the part that C code
 * and handlers use, and *slot gets the slot of the hit, which is on the program's stack. sp must be
 * the stack pointer of a stopped thread. Context: the helper of a stop. */
bool pb_hit_stack_at(uint64_t sp, uint64_t *end, uint64_t *slot);
#endif
