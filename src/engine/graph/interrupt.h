/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Keeps a thread's state while a signal handler runs. There are two cases. If the signal
 * interrupted the engine's own code, at any instruction, the agent sees the end of the handler.
 * Then it sets the thread's state back to the stack that the thread was on before, and restores
 * what is known of the thread's signal mask (pb_unblocked). If the signal interrupted the program's
 * code, the agent usually doesn't see the end of the handler. Then the next hit finds the stack by
 * the hit's slot. See doc/design/threads.md, "Signal handlers".
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
	struct pb_thread *thread;
	struct pb_stack *stack;
	uint32_t epoch;		/* the epoch of the process */
	bool known;		/* pb_unblocked.known */
	struct pb_thread *inside;	/* the thread, if the agent's code was interrupted;
					 * otherwise NULL, and nr and hit are unused */
	uint64_t nr, hit;	/* nr: the result of pb_writer_interrupted(), to be passed to
				 * pb_writer_resumed(); hit: the return slot of the hit that was
				 * being recorded */
};

/* Called before the handler runs. Saves the state, and forgets what is known of the mask. slot: the
 * handler's return slot. */
struct pb_interrupted pb_interrupt_begin(const ucontext_t *uc, uint64_t slot);
/* Called after the handler has returned. uc: the context in which the thread goes on. */
void pb_interrupt_end(const struct pb_interrupted *i, uint64_t slot, ucontext_t *uc);
/* Returns whether the signal mask in uc, which the handler's return restores, blocks neither
 * SIGSEGV nor SIGBUS. */
bool pb_unblocked_in(const ucontext_t *uc);
#endif
