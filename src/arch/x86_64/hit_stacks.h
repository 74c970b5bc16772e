/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef PB_ARCH_X86_64_HIT_STACKS_H
#define PB_ARCH_X86_64_HIT_STACKS_H
#include <stdbool.h>
#include <stdint.h>
#include "arch/x86_64/frame.h"

extern uint32_t pb_hit_stacks_used __attribute__((visibility("hidden")));
extern uint8_t pb_hit_stacks[] __attribute__((visibility("hidden")));

/* The agent's own stacks, on which C code runs for hits of sites with FTRACE_FL_SMALL (frame.h). If
 * sp is on one of them, returns true. *end gets the end of the part that C code and
 * handlers use, and *slot gets the slot of the hit, which is on the program's stack. */
bool pb_hit_stack_at(uint64_t sp, uint64_t *end, uint64_t *slot);
#endif
