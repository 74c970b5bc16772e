/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "engine/interrupt.h"
#include "engine/calls.h"
#include "base/mem.h"
#include "engine/latch.h"
#include "engine/sweep.h"
#include "engine/thread.h"
#include "engine/uaccess.h"

bool pb_unblocked_in(const ucontext_t *uc)
{
	uint64_t mask;

	memcpy(&mask, &uc->uc_sigmask, sizeof(mask));
	return !(mask & PB_FAULT_SIGNALS);
}

struct pb_interrupted pb_interrupt_begin(const ucontext_t *uc, uint64_t slot)
{
	const greg_t *g = uc->uc_mcontext.gregs;
	struct pb_thread *t = pb_tls;
	struct pb_interrupted i = {
		.stack = t->stack, .cur = t->cur, .pid = pb_process->pid,
		.known = pb_unblocked.known,
	};

	pb_unblocked.known = 0;
	/* The PC is in the agent. Or it is in libc's few instructions by which our handler of a
	 * fault returns: only in that handler are both signals blocked although they are known
	 * not to be. */
	if (t->cur && (pb_agent_holds((uint64_t)g[REG_RIP]) || (i.known && !pb_unblocked_in(uc)))) {
		i.inside = t;
		i.hit = t->w.slot;
		i.nr = pb_writer_interrupted(&t->w, (uint64_t)g[REG_RSP], slot);
	}
	return i;
}

/* The thread is where it was. What the handler left open there by jumps is
 * closed. In a child of a fork in the handler nothing of it is there. */
static void go_back(const struct pb_interrupted *i, uint64_t slot)
{
	struct pb_thread *t = pb_tls;
	struct pb_hit h = { slot, PB_SITE_PROGRAM, i->stack };

	if (!i->cur || !t->cur || i->pid != pb_process->pid || pb_latched)
		return;
	t->w.slot = slot - 8;	/* in the handler: what it interrupted isn't gone */
	if (t->stack != i->stack && !pb_stack_return(t, i->stack))
		return;
	if (pb_return_sites)
		pb_calls_handler_over(t, slot - 8);
	else if (t->cur != i->cur)
		pb_fgraph_pop_to(t, &h, i->cur, pb_clock());
}

void pb_interrupt_end(const struct pb_interrupted *i, uint64_t slot, const ucontext_t *uc)
{
	go_back(i, slot);
	/* only now, as go_back() may change chunks */
	if (i->inside) {
		pb_writer_resumed(&i->inside->w, i->nr);
		i->inside->w.slot = i->hit;
	}
	pb_unblocked.known = i->known && pb_unblocked.slot && pb_unblocked_in(uc);
}

bool pb_interrupt_watch(const struct pb_interrupted *i, uint64_t *slot, uint64_t body,
			struct pb_target *to)
{
	struct pb_hit h = { (uint64_t)slot, PB_SITE_PROGRAM, i->stack };
	struct pb_thread *t = pb_tls;
	struct pb_entry *e;

	if (!i->cur || pb_latched || pb_detached)
		return false;
	e = pb_claim(t, &h);
	if (!e)
		return false;
	PB_ENT_PARENT(e) = i->cur;
	PB_ENT_START(e) = (uint64_t)i->stack;
	PB_ENT_SCRATCH(e) = i->pid << 1 | i->known;
	PB_ENT_DEPTH(e) = PB_DEPTH_WATCHED + 1;
	PB_ENT_STATE(e) = PB_ENTRY_CLOSED;
	PB_ENT_SITE(e) = 0;
	PB_ENT_RET(e) = *slot;
	PB_ENT_BODY(e) = body;
	pb_barrier();
	*slot = pb_gate_of(e) + PB_GATE_RETURN;
	pb_barrier();
	PB_ENT_SLOT(e) = h.slot - 1;
	*to = (struct pb_target){ pb_gate_of(e), 1 };
	return true;
}

void pb_interrupt_returned(const struct pb_entry *e, uint64_t *slot)
{
	struct pb_interrupted i = {
		.stack = (struct pb_stack *)PB_ENT_START(e),
		.cur = PB_ENT_PARENT(e),
		.pid = PB_ENT_SCRATCH(e) >> 1,
		.known = PB_ENT_SCRATCH(e) & 1,
	};

	pb_interrupt_end(&i, (uint64_t)slot, (const ucontext_t *)(slot + 1));
}
