/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What a signal interrupted, while its handler runs: the stack that the thread
 * was on, its innermost call, and what it knew of its mask. The engine's own code
 * may have been interrupted at any instruction, so when the handler returns all
 * of it is as it was. doc/design/fgraph.md, "Signal handlers".
 *
 * Context: signal handlers, hit path.
 */
#ifndef PB_ENGINE_INTERRUPT_H
#define PB_ENGINE_INTERRUPT_H
#include <stdbool.h>
#include <stdint.h>
#include <ucontext.h>
#include "engine/fgraph.h"

struct pb_interrupted {
	struct pb_stack *stack;
	struct pb_entry *cur;	/* NULL: the thread had no hit yet */
	uint32_t pid;
	bool known;		/* pb_unblocked */
	struct pb_thread *inside;	/* the agent's own code was interrupted, on this thread; */
	uint64_t nr, hit;	/* pb_writer_interrupted(), and the hit that was being recorded */
};

/* Before the handler runs: knowledge is taken away. slot is that of its return
 * address. */
struct pb_interrupted pb_interrupt_begin(const ucontext_t *uc, uint64_t slot);
/* When it returned; uc is where it goes. */
void pb_interrupt_end(const struct pb_interrupted *i, uint64_t slot, const ucontext_t *uc);
/* The handler is about to be entered at `body`, with its return address in the
 * slot: its return is hooked, and ends the interrupt. No record. False: there is
 * no entry for it. */
bool pb_interrupt_watch(const struct pb_interrupted *i, uint64_t *slot, uint64_t body,
			struct pb_target *to);
/* Such an entry has no site, and is no part of the tree. */
static inline bool pb_is_watched(const struct pb_entry *e)
{
	return !PB_ENT_SITE(e);
}
/* Its call returned; the kernel's context stands behind the slot. */
void pb_interrupt_returned(const struct pb_entry *e, uint64_t *slot);
/* Neither SIGSEGV nor SIGBUS is in the mask that will hold again. */
bool pb_unblocked_in(const ucontext_t *uc);
#endif
