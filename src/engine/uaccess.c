/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Reads of the program's memory on the hit path. A read is a plain load, and the agent's handler of
 * SIGSEGV and SIGBUS continues after a load that faults. So a load is only tried if that handler is
 * sure to run. For this, the thread must be known to block neither signal, and its stack must have
 * room for a signal frame.
 */
#include <asm/errno.h>
#include <signal.h>
#include <sys/auxv.h>
#include "engine/uaccess.h"
#include "abi/analysis_access.h"
#include "arch/arch.h"
#include "base/auxv.h"
#include "base/base.h"
#include "base/mem.h"
#include "base/sys.h"
#include "engine/text/text.h"

#define WAIT_NS		100000000ul	/* limit of the wait for reads under way. A thread that
					 * reads may have no processor for a while */
#define WAIT_YIELDS	100
#define WAIT_NAP_NS	100000
#define WAIT_PAUSES	(1u << 20)	/* some 20 ms */
#define HANDLER_ROOM	3072	/* bytes for the red zone, the slow path and the handler */
#ifndef AT_MINSIGSTKSZ
#define AT_MINSIGSTKSZ	51
#endif

__thread struct pb_unblocked pb_unblocked __attribute__((tls_model("initial-exec")));
uint64_t pb_frame_room = 16384;	/* Until pb_reads_on(): bytes for a signal frame, if the kernel
				 * doesn't report its size. No processor's frame is larger. From
				 * pb_reads_on(): the frame's size plus HANDLER_ROOM */
static bool on;				/* loads that may fault are allowed: their signals' handlers
					 * are installed. A forked child keeps them and this flag */
static PB_LASTING bool never;			/* pb_reads_off() was called */

bool pb_reads_on(void)
{
	if (never)
		return false;
	pb_frame_room = pb_auxv(AT_MINSIGSTKSZ, pb_frame_room) + HANDLER_ROOM;
	__atomic_store_n(&on, true, __ATOMIC_SEQ_CST);
	/* pb_ring_unseen has the reasons why handlers may run without the agent's knowledge
	 * (ring_map.h). The caller turns reads on only if the program can't install a handler
	 * without sigaction(). So one of the reasons, PB_UNSEEN_PROGRAM, no longer holds */
	__atomic_and_fetch(&pb_ring_unseen, (uint8_t)~PB_UNSEEN_PROGRAM, __ATOMIC_SEQ_CST);
	return true;
}

bool pb_reads_are_on(void)
{
	return __atomic_load_n(&on, __ATOMIC_SEQ_CST);
}

/* Waits a moment for reads under way. False: the calls of this function together have reached the
 * limit of the wait. */
static bool wait_for_readers(void)
{
	static uint64_t end;
	static unsigned i;
	const struct { long sec, nsec; } nap = { 0, WAIT_NAP_NS };

	if (!pb_calls_are_safe()) {
		pb_cpu_pause();
		return i++ < WAIT_PAUSES;
	}
	if (!end)
		end = pb_now_ns() + WAIT_NS;
	if (pb_now_ns() >= end)
		return false;
	if (i++ < WAIT_YIELDS)
		pb_sys(SYS_sched_yield);
	else
		pb_sys(SYS_nanosleep, &nap, NULL);
	return true;
}

bool pb_reads_off(void)
{
	never = true;
	__atomic_or_fetch(&pb_ring_unseen, PB_UNSEEN_PROGRAM, __ATOMIC_SEQ_CST);
	__atomic_store_n(&on, false, __ATOMIC_SEQ_CST);
	/* if a handler has interrupted a read and has left by a jump, the read counts as under way
	 * for ever */
	while (__atomic_load_n(&pb_process->readers, __ATOMIC_SEQ_CST))
		if (!wait_for_readers())
			return false;
	return true;
}

/* Whether the stack has room below the slot for a signal frame and the handler. The bounds of the
 * stack must be known exactly. */
static bool has_room(const struct pb_hit *h)
{
	const struct pb_stack *s = h->stack;

	return s->exact && pb_stack_holds(s, h->slot) &&
	       h->slot - s->lo >= s->guard + pb_frame_room;
}

/* Whether the thread's start routine still runs. After the routine has returned, libc blocks all
 * signals and may call the program's free(). */
static bool routine_runs(void)
{
	const struct pb_unblocked *u = &pb_unblocked;

	return u->slot == PB_MAIN_THREAD || *(const volatile uint64_t *)u->slot == u->ret;
}

/* Whether code runs on the thread's own stack if its stack pointer is sp. The alternate stack may
 * lie in a frame of the thread's own stack. */
static bool on_own_stack(uint64_t sp)
{
	const struct pb_thread *t = pb_tls;

	return pb_on_own_stack(sp) &&
	       !(t->top && t->alternate && pb_stack_holds(t->alternate, sp));
}

/* Whether code with the stack pointer sp shows that each handler is over whose end the agent
 * doesn't see. Only code on the thread's own stack shows this. On another stack, the code may be
 * called by a handler: the handler, or one that has interrupted it, may run on the alternate stack,
 * or may have changed stacks. On the own stack, a handler on another stack is over, and one on the
 * own stack is over if its slot is lower. A handler that leaves by setcontext() or swapcontext()
 * may go on later: see pb_note_setcontext(). */
static bool handlers_are_over(uint64_t sp)
{
	uint64_t handler = pb_unblocked.handler & ~PB_BLOCKS;

	return !handler || (on_own_stack(sp) && (!on_own_stack(handler) || sp > handler));
}

/* If the interrupted code doesn't show that the earlier handlers are over, their note stays. The
 * new handler is over, too, when code on the thread's own stack shows that the earlier ones are. */
void pb_unblocked_in_handler(uint64_t sp, uint64_t slot, bool open)
{
	uint64_t handler = handlers_are_over(sp) ? slot : pb_unblocked.handler;

	pb_unblocked.handler = open ? handler : handler | PB_BLOCKS;
}

bool pb_unblocked_set(bool open, uint64_t frame)
{
	bool over = handlers_are_over(frame);

	if (over)
		pb_unblocked.handler = 0;
	pb_unblocked.known = over && open && pb_unblocked.slot;
	return over;
}

/* The agent doesn't see the end of a handler. So when all handlers are over, this function asks the
 * kernel for the mask. */
static bool is_known(const struct pb_hit *h)
{
	uint64_t mask = ~0ul;

	if (pb_unblocked.known || !pb_unblocked.handler)
		return pb_unblocked.known;
	if (!pb_calls_are_safe() || !handlers_are_over(h->slot) ||
	    pb_sys(SYS_rt_sigprocmask, SIG_BLOCK, NULL, &mask, sizeof(mask)))
		return false;
	pb_unblocked_set(!(mask & PB_FAULT_SIGNALS), h->slot);
	return pb_unblocked.known;
}

/* No load is tried in functions of glibc. glibc sometimes blocks all signals without the agent's
 * knowledge, and then calls its own functions. */
bool pb_may_read(const struct pb_thread *t, const struct pb_hit *h)
{
	return on && is_known(h) && routine_runs() && has_room(h) &&
	       (h->site == PB_SITE_PROGRAM || !pb_site_is_of_libc(h->site));
}

bool pb_reads_begin(const struct pb_thread *t, const struct pb_hit *h)
{
	if (!pb_may_read(t, h))
		return false;
	__atomic_fetch_add(&pb_process->readers, 1, __ATOMIC_SEQ_CST);
	if (pb_reads_are_on())
		return true;
	pb_reads_end();
	return false;
}

void pb_reads_end(void)
{
	__atomic_fetch_sub(&pb_process->readers, 1, __ATOMIC_SEQ_CST);
}

/* Returns whether the bytes are certainly mapped. They are if they lie on the stack above the hit,
 * or in the data of a lasting module. */
static bool is_vouched_for(const struct pb_thread *t, const struct pb_hit *h, uint64_t from,
			   size_t n)
{
	const struct pb_stack *s = &t->own;

	if (s->exact && h->stack == s && from >= h->slot && from < s->hi && n <= s->hi - from)
		return true;
	return pb_data_is_lasting(from, n);
}

/* Loads whole aligned words. Such a word lies in one page, so no load touches a page that has none
 * of the bytes. */
static int copy_faulting(uint8_t *to, uint64_t from, size_t n)
{
	int err = 0;

	while (n && !err) {
		uint64_t word, skip = from & 7, part = n < 8 - skip ? n : 8 - skip;

		err = pb_fault_load(from - skip, &word);
		if (!err)
			memcpy(to, (uint8_t *)&word + skip, part);
		to += part;
		from += part;
		n -= part;
	}
	return err;
}

int pb_copy_from_user_nofault(void *to, uint64_t from, size_t n, const struct pb_thread *t,
			      const struct pb_hit *h)
{
	int err;

	if (is_vouched_for(t, h, from, n)) {
		memcpy(to, (const void *)from, n);
		return 0;
	}
	if (!pb_reads_begin(t, h))
		return -EPERM;
	err = copy_faulting(to, from, n);
	pb_reads_end();
	return err;
}
