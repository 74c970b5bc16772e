/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Keeps a thread's state across a signal handler, for the frame that the agent puts around
 * handlers. Before the handler, the state is saved. After the handler, the state is set back to the
 * stack that the thread was on, and the calls that the handler left open are closed. If the handler
 * forked, the child has no saved state, and begins with a new state.
 */
#include "engine/graph/interrupt.h"
#include "engine/graph/calls.h"
#include "arch/arch.h"
#include "base/mem.h"
#include "engine/latch.h"
#include "engine/graph/thread.h"
#include "engine/graph/thread_words.h"
#include "engine/uaccess.h"

bool pb_unblocked_in(const ucontext_t *uc)
{
	uint64_t mask;

	memcpy(&mask, &uc->uc_sigmask, sizeof(mask));
	return !(mask & PB_FAULT_SIGNALS);
}

struct pb_interrupted pb_interrupt_begin(const ucontext_t *uc, uint64_t slot)
{
	struct pb_thread *t = pb_tls;
	struct pb_interrupted i = {
		.thread = t, .stack = t->top ? t->stack : NULL, .epoch = pb_process->epoch,
		.known = pb_unblocked.known,
	};

	pb_unblocked.known = 0;
	if (t->top)
		t->expected = slot;
	/* There are two cases in which the interrupted code counts as the agent's. In the first,
	 * its PC is in the agent's code. In the second, its PC is in the few instructions of libc
	 * by which the agent's handler of a fault returns. The mask shows the second case: SIGSEGV
	 * or SIGBUS is blocked now, although the thread itself is known to block neither. */
	if (t->top && (pb_agent_holds(pb_context_pc(uc)) || (i.known && !pb_unblocked_in(uc)))) {
		i.inside = t;
		i.hit = t->w.slot;
		i.nr = pb_writer_interrupted(&t->w, pb_context_sp(uc), slot);
	}
	return i;
}

/* Returns whether this process was forked while the handler ran. The handler itself, or
 * another handler that interrupted it, may have forked. */
static bool is_child(const struct pb_interrupted *i)
{
	return i->epoch != pb_process->epoch;
}

/* Returns whether the handler ends in another thread than it began in, and the saved stack belongs
 * to the state of the first thread. The handler has switched to another context, and the present
 * thread has continued it. If it also used that stack, two threads would use one chain of calls. */
static bool is_of_another(const struct pb_interrupted *i, const struct pb_thread *t)
{
	return t != i->thread && (i->stack == &i->thread->own || i->stack == &i->thread->nowhere);
}

/* Sets the thread's state back to the stack that the thread was on before the handler. Closes the
 * calls that jumps inside the handler left open on that stack. In a child that the handler forked,
 * nothing is done, because the child has no saved state. */
static void go_back(const struct pb_interrupted *i, uint64_t slot)
{
	struct pb_thread *t = pb_tls;

	if (!i->stack || !t->top || is_child(i) || pb_latched || !pb_ring_map.ring ||
	    is_of_another(i, t))
		return;
	t->w.slot = slot - 8;	/* below the handler's return slot: after a hit at or above that
				 * slot, the writer would assume that the interrupted code never
				 * resumes */
	if (t->stack != i->stack && !pb_stack_return(t, i->stack, i->hit))
		return;
	/* if the handler ran on an alternate stack, its slot doesn't show which calls of t's stack
	 * are over */
	if (pb_stack_holds(t->stack, slot))
		pb_calls_handler_over(t, slot - 8);
}

/* A child that the handler forked goes on with the interrupted code. That code may hold the address
 * of the thread's state, but the fork has filled the child's copy of this state with zeros. So this
 * function fills the state again. If the state can't be made, or if children aren't followed, the
 * records that the code writes are discarded. pb_own_resume() prevents the code from storing into
 * the parent's chunks. */
static void be_again(const struct pb_interrupted *i, uint64_t slot, ucontext_t *uc)
{
	if (!is_child(i))
		return;
	if (!pb_tls->top && (pb_latched || !pb_thread_get(slot)) && !pb_thread_is_new()) {
		pb_writer_void(&pb_tls->w);
		pb_thread_words_copy(pb_tls);
	}
	pb_own_resume(uc, (uint64_t)pb_ring_map.ring, pb_ring_map.size);
}

void pb_interrupt_end(const struct pb_interrupted *i, uint64_t slot, ucontext_t *uc)
{
	be_again(i, slot, uc);
	go_back(i, slot);
	/* this comes after go_back(), which may change chunks */
	if (i->inside) {
		pb_writer_resumed(&i->inside->w, i->nr);
		i->inside->w.slot = i->hit;
	}
	pb_unblocked.known = i->known && pb_unblocked.slot && pb_unblocked_in(uc);
}
