/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Keeps a thread's state across a signal handler, for the frame that the agent puts around
 * handlers. Before the handler the state is saved; after it the thread is again on the stack that
 * it was on, and calls that the handler left open are closed. If the handler forked, the child has
 * no saved state, and begins with a new one.
 */
#include "engine/graph/interrupt.h"
#include "engine/graph/calls.h"
#include "arch/arch.h"
#include "base/mem.h"
#include "engine/latch.h"
#include "engine/graph/thread.h"
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
		.stack = t->top ? t->stack : NULL, .pid = pb_process->pid,
		.known = pb_unblocked.known,
	};

	pb_unblocked.known = 0;
	/* The PC is in the agent. Or it is in libc's few instructions by which our handler of a
	 * fault returns: only in that handler are both signals blocked although they are known
	 * not to be. */
	if (t->top && (pb_agent_holds(pb_context_pc(uc)) || (i.known && !pb_unblocked_in(uc)))) {
		i.inside = t;
		i.hit = t->w.slot;
		i.nr = pb_writer_interrupted(&t->w, pb_context_sp(uc), slot);
	}
	return i;
}

/* The thread is where it was. What the handler left open there by jumps is
 * closed. In a child of a fork in the handler nothing of it is there. */
static void go_back(const struct pb_interrupted *i, uint64_t slot)
{
	struct pb_thread *t = pb_tls;

	if (!i->stack || !t->top || i->pid != pb_process->pid || pb_latched)
		return;
	t->w.slot = slot - 8;	/* in the handler: what it interrupted isn't gone */
	if (t->stack != i->stack && !pb_stack_return(t, i->stack, i->hit))
		return;
	/* an alternate stack's addresses say nothing of what is open here */
	if (pb_stack_holds(t->stack, slot))
		pb_calls_handler_over(t, slot - 8);
}

/* A child of a fork in the handler goes on with what was interrupted, which may be code that holds
 * the address of the thread's state: that is of zeros now. So it is made here; where children
 * aren't followed, what that code writes goes nowhere. */
static void be_again(const struct pb_interrupted *i, uint64_t slot)
{
	if (i->pid == pb_process->pid || pb_tls->top)
		return;
	if ((pb_latched || !pb_thread_get(slot)) && !pb_thread_is_new())
		pb_writer_void(&pb_tls->w);
}

void pb_interrupt_end(const struct pb_interrupted *i, uint64_t slot, const ucontext_t *uc)
{
	be_again(i, slot);
	go_back(i, slot);
	/* only now, as go_back() may change chunks */
	if (i->inside) {
		pb_writer_resumed(&i->inside->w, i->nr);
		i->inside->w.slot = i->hit;
	}
	pb_unblocked.known = i->known && pb_unblocked.slot && pb_unblocked_in(uc);
}
