/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What a signal interrupted, while its handler runs. The engine's own code
 * may have been interrupted at any instruction, so when the handler returns all
 * is as it was: the stack that the thread was on, and what it knew of its mask. Where
 * the program's code was interrupted nothing is done at the end: the next hit
 * finds out by its slot where it is. doc/design/open-calls.md, "Threads and stacks".
 *
 * Context: signal handlers, hit path.
 */
#ifndef PB_ENGINE_GRAPH_INTERRUPT_H
#define PB_ENGINE_GRAPH_INTERRUPT_H
#include <stdbool.h>
#include <stdint.h>
#include <ucontext.h>

struct pb_stack;
struct pb_thread;

struct pb_interrupted {
	struct pb_stack *stack;
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
/* Neither SIGSEGV nor SIGBUS is in the mask that will hold again. */
bool pb_unblocked_in(const ucontext_t *uc);
#endif
