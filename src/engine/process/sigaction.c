/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Replaces sigaction(). The kernel is given pb_signal_entry() in place of each handler. The mask
 * and the handler's stack stay those of the program. So do the flags, except for SIGSEGV and
 * SIGBUS.
 *
 * A table keeps the program's handlers. The table doesn't keep whether a disposition is SIG_DFL or
 * SIG_IGN, because a vfork child shares the table with its parent, but has dispositions of its own.
 * Instead the kernel is asked. pb_signal_default() and pb_signal_default_at_start() are the
 * handlers that the kernel gets in place of SIG_DFL. So if the kernel has one of them, the
 * disposition is SIG_DFL for the program.
 */
#include <asm/errno.h>
#include <signal.h>
#include <ucontext.h>
#include "engine/process/sigaction.h"
#include "engine/process/replace.h"
#include "engine/process/signal_entry.h"
#include "engine/graph/calls.h"
#include "engine/graph/thread.h"
#include "engine/text/ftrace.h"
#include "engine/uaccess.h"
#include "abi/analysis_access.h"
#include "arch/arch.h"
#include "base/base.h"
#include "base/mem.h"
#include "base/sys.h"

#define SIGRTMIN_KERNEL 32

typedef int sigaction_fn(int sig, const struct sigaction *act, struct sigaction *old);
typedef int sigaltstack_fn(const stack_t *ss, stack_t *old);

static sigaction_fn *original_sigaction;
static sigaltstack_fn *original_sigaltstack;
void *pb_original_makecontext;
void pb_note_makecontext(const ucontext_t *uc, uint64_t slot);

/* The handlers that pb_sigaction_adopt() has found in the kernel. A thread that is inside our
 * sigaction() at that moment has read pb_handlers[] already, and finds the adopted handler here. */
static pb_handler_fn *adopted[PB_SIGNALS];
/* Set when the program's own handlers are in the kernel again. Until then, the kernel gets the
 * agent's handler in place of each handler that the program installs: jumps into stubs may still be
 * in place, and only the agent's handler can translate a program counter in a stub. */
static bool undone;
/* The kernel's flags for SIGSEGV and SIGBUS may differ from the program's in the bits of
 * HANDLER_FLAGS (with a handler) or DEFAULT_FLAGS (with SIG_DFL). */
#define HANDLER_FLAGS	(SA_SIGINFO | SA_RESETHAND)
#define DEFAULT_FLAGS	(SA_SIGINFO | SA_RESETHAND | SA_ONSTACK | SA_NODEFER)
static bool masks_known;	/* pb_sigaction_masks_known() was called */

static bool is_handler(const struct sigaction *a)
{
	return a->sa_handler != SIG_DFL && a->sa_handler != SIG_IGN && a->sa_handler != SIG_ERR;
}

/* Fills *ours with the action that the kernel gets in place of `act`. False: the kernel gets `act`
 * itself. */
static bool stands_in(int sig, const struct sigaction *act, struct sigaction *ours)
{
	bool first = pb_signal_is_fault(sig) && pb_reads_are_on();

	if (undone)
		return false;
	memcpy(ours, act, sizeof(*ours));
	if (is_handler(act)) {
		ours->sa_sigaction = pb_signal_entry;
		if (first)
			ours->sa_flags = (act->sa_flags & ~HANDLER_FLAGS) | SA_SIGINFO;
		return true;
	}
	ours->sa_sigaction = pb_signal_default;
	ours->sa_flags = (act->sa_flags & ~DEFAULT_FLAGS) | SA_SIGINFO;
	return first && act->sa_handler == SIG_DFL;
}

static int swap_flags(int kernels, int programs, int which)
{
	return (kernels & ~which) | (programs & which);
}

/* Changes the kernel's answer into the action that the program had set. handler and was: the
 * signal's elements of pb_handlers[] and pb_handler_flags[] before the call. */
static void show_action(int sig, struct sigaction *old, pb_handler_fn *handler,
			const struct pb_handler_flags *was)
{
	if (old->sa_sigaction == pb_signal_entry) {
		old->sa_sigaction = handler;	/* NULL (SIG_DFL) after SA_RESETHAND */
		if (pb_signal_is_fault(sig))
			old->sa_flags = swap_flags(old->sa_flags, was->flags, HANDLER_FLAGS);
	} else if (old->sa_sigaction == pb_signal_default) {
		old->sa_handler = SIG_DFL;
		old->sa_flags = swap_flags(old->sa_flags, was->default_flags, DEFAULT_FLAGS);
	} else if (old->sa_sigaction == pb_signal_default_at_start) {
		old->sa_handler = SIG_DFL;
		old->sa_flags = 0;
		old->sa_restorer = NULL;
	}
}

/* Notes the handler that the program sets. The program may have read its handler from the kernel
 * while sigaction() wasn't replaced yet, and may now set it again. Then `act` has
 * pb_signal_entry(), and the handler that is already in the table stays. */
static void remember(int sig, const struct sigaction *act)
{
	if (act->sa_sigaction == pb_signal_entry)
		return;
	if (is_handler(act)) {
		pb_handler_flags[sig].flags = act->sa_flags;
		__atomic_store_n(&pb_handlers[sig], act->sa_sigaction, __ATOMIC_RELEASE);
	} else {
		pb_handler_flags[sig].default_flags = act->sa_flags;
	}
}

static int our_sigaction(int sig, const struct sigaction *act, struct sigaction *old)
{
	struct sigaction ours;
	pb_handler_fn *before;
	struct pb_handler_flags was;
	bool in, reads = pb_reads_are_on();
	int ret;

	if (sig < 1 || sig >= PB_SIGNALS)
		return original_sigaction(sig, act, old);
	if (act && act->sa_handler == SIG_IGN && pb_signal_is_fault(sig))
		pb_sigaction_stand_down();
	before = pb_handlers[sig];
	was = pb_handler_flags[sig];
	in = act && stands_in(sig, act, &ours);
	if (in)
		remember(sig, act);
	ret = original_sigaction(sig, in ? &ours : act, old);
	/* reads were turned on or off meanwhile, so the kernel may need another action */
	if (!ret && act && pb_reads_are_on() != reads && stands_in(sig, act, &ours)) {
		remember(sig, act);
		original_sigaction(sig, &ours, NULL);
	}
	if (ret && in) {
		pb_handler_flags[sig] = was;
		__atomic_store_n(&pb_handlers[sig], before, __ATOMIC_RELEASE);
	}
	if (!ret && old)
		show_action(sig, old, before ? before : adopted[sig], &was);
	return ret;
}

/* Sets the program's own disposition in the kernel again. Doesn't call libc, because the agent's
 * thread may call this function. */
static void give_back(int sig)
{
	const struct pb_handler_flags *s = &pb_handler_flags[sig];
	struct pb_kernel_sigaction a;

	if (pb_sys(SYS_rt_sigaction, sig, NULL, &a, 8))
		return;
	if (a.handler == pb_signal_default_at_start) {
		a = (struct pb_kernel_sigaction){ 0 };
	} else if (a.handler == pb_signal_default ||
		   (a.handler == pb_signal_entry && !pb_handlers[sig])) {
		a.flags = (uint64_t)swap_flags((int)a.flags, s->default_flags, DEFAULT_FLAGS);
		a.handler = NULL;
	} else if (a.handler == pb_signal_entry) {
		a.handler = pb_handlers[sig];
		if (pb_signal_is_fault(sig))
			a.flags = (uint64_t)swap_flags((int)a.flags, s->flags, HANDLER_FLAGS);
	} else {
		return;
	}
	pb_sys(SYS_rt_sigaction, sig, &a, NULL, 8);
}

/* Called for SIGSEGV and SIGBUS, when no load of the agent may fault any more. If the program has
 * no handler, sets the program's own disposition in the kernel again. If the program has a handler,
 * the kernel keeps pb_signal_entry(), because PCs in stubs and on the hit path must still be
 * translated. If the program has set SA_RESETHAND, the kernel now gets this flag. Until now, only
 * take_handler() carried it out. */
static void stand_down(int sig)
{
	struct pb_kernel_sigaction a;

	if (pb_sys(SYS_rt_sigaction, sig, NULL, &a, 8))
		return;
	if (a.handler != pb_signal_entry || !pb_handlers[sig])
		give_back(sig);
	else if (pb_handler_flags[sig].flags & SA_RESETHAND) {
		a.flags |= SA_RESETHAND;
		pb_sys(SYS_rt_sigaction, sig, &a, NULL, 8);
	}
}

void pb_sigaction_stand_down(void)
{
	bool was_on = pb_reads_are_on();

	/* a read that may still be under way needs the agent's handlers of these signals */
	if (!pb_reads_off() || !was_on)
		return;
	stand_down(SIGSEGV);
	stand_down(SIGBUS);
}

void pb_sigaction_undo(void)
{
	bool may = pb_reads_off();

	undone = true;
	pb_signal_leave();
	for (int sig = 1; sig < PB_SIGNALS; sig++)
		if (may || !pb_signal_is_fault(sig))
			give_back(sig);
}

void pb_sigaction_masks_known(void)
{
	masks_known = true;
}

bool pb_sigaction_start(void)
{
	struct sigaction segv, bus;
	struct sigaction ours = { .sa_sigaction = pb_signal_default_at_start,
				  .sa_flags = SA_SIGINFO };

	if (!masks_known || original_sigaction(SIGSEGV, NULL, &segv) ||
	    original_sigaction(SIGBUS, NULL, &bus) || segv.sa_handler != SIG_DFL ||
	    bus.sa_handler != SIG_DFL || !pb_reads_on())
		return false;
	original_sigaction(SIGSEGV, &ours, NULL);
	original_sigaction(SIGBUS, &ours, NULL);
	pb_unblocked.slot = PB_MAIN_THREAD;
	return true;
}

/* ---- handlers that were installed before an attach --------------------------- */

/* Also true in each function of libc that makes the system call rt_sigaction itself, and in each
 * stub: the stub may be that of sigaction(), with the copy of its first instructions. */
bool pb_in_sigaction(uint64_t pc)
{
	const struct pb_module *m = pb_module_at(pc);
	const struct pb_func *f;

	if (pb_in_stub(pc))
		return true;
	if (!m || !m->libc)
		return false;
	f = pb_analysis_find(m->analysis, pc - m->bias);
	return f && (pb_function_has_name(m, f, "sigaction") ||
		     pb_code_calls((const uint8_t *)(m->bias + f->addr), f->size,
				   SYS_rt_sigaction));
}

/* libc's own handlers (SIGCANCEL, SIGSETXID) never pass through sigaction(), so they aren't taken
 * over. */
static bool is_of_libc(int sig)
{
	return sig == SIGRTMIN_KERNEL || sig == SIGRTMIN_KERNEL + 1;
}

static void take_over(int sig)
{
	struct pb_kernel_sigaction a;

	if (is_of_libc(sig) || pb_sys(SYS_rt_sigaction, sig, NULL, &a, 8) ||
	    a.handler == (void *)SIG_DFL || a.handler == (void *)SIG_IGN)
		return;
	adopted[sig] = a.handler;
	pb_handler_flags[sig].flags = (int)a.flags;
	/* if pb_handlers[sig] isn't NULL, a thread is just setting another handler, which must stay
	 * in the table */
	if (!pb_handlers[sig])
		pb_handlers[sig] = a.handler;
	a.handler = pb_signal_entry;
	pb_sys(SYS_rt_sigaction, sig, &a, NULL, 8);
}

static bool adopted_reads;	/* the result of pb_sigaction_start() in adopt() */

/* Called while the other threads are stopped; nr of them may be inside sigaction(). */
static int adopt(const struct pb_stopped *at, size_t nr)
{
	if (nr)
		return -EAGAIN;
	for (int sig = 1; sig < PB_SIGNALS; sig++)
		take_over(sig);
	adopted_reads = pb_sigaction_start();
	return 0;
}

int pb_sigaction_adopt(bool *reads)
{
	struct pb_stop stop = { .ours = pb_in_sigaction, .stopped = adopt };
	int err = original_sigaction ? pb_stop_world(&stop) : 0;

	*reads = !err && adopted_reads;
	return err;
}

static int our_sigaltstack(const stack_t *ss, stack_t *old)
{
	int ret = original_sigaltstack(ss, old);

	if (ret || !ss)
		return ret;
	if (ss->ss_flags & SS_DISABLE) {
		pb_stack_disabled();
		return ret;
	}
	pb_stack_reported((uint64_t)__builtin_frame_address(0) + 8, (uint64_t)ss->ss_sp,
			  ss->ss_size, true);
	if (ss->ss_size < pb_frame_room)
		pb_unblocked = (struct pb_unblocked){ 0 };
	return ret;
}

void pb_note_makecontext(const ucontext_t *uc, uint64_t slot)
{
	if (uc)
		pb_stack_reported(slot, (uint64_t)uc->uc_stack.ss_sp, uc->uc_stack.ss_size, false);
}

bool pb_sigaction_hook(struct pb_module *m)
{
	if (original_sigaction)
		return false;
	pb_replace(m, "sigaction", our_sigaction, &original_sigaction);
	if (!original_sigaction)
		return false;
	pb_replace(m, "sigaltstack", our_sigaltstack, &original_sigaltstack);
	pb_replace_passing(m, "makecontext", pb_our_makecontext, &pb_original_makecontext);
	return original_sigaltstack;
}
