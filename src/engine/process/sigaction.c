/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The kernel is given pb_signal_entry() in place of each handler. The mask and the handler's stack
 * stay those of the program. So do the flags, except for SIGSEGV and SIGBUS. If the interrupted PC
 * is in the program's own code, the handler sees the context unchanged. If the PC is in a stub or
 * in the hit path's assembly, the handler sees the context as it would be without the agent.
 * Registers that the handler leaves unchanged get their real values back. If the PC is in the
 * agent's C code, the handler sees the real context.
 *
 * SIGSEGV and SIGBUS come to the agent first, even if the program has no handler: a load of the
 * agent may have faulted (uaccess.h).
 *
 * A table keeps the program's handlers. The table doesn't keep whether a disposition is SIG_DFL or
 * SIG_IGN, because a vfork child shares the table with its parent, but has dispositions of its own.
 * Instead the kernel is asked. by_default() and by_default_at_start() are the handlers that the
 * kernel gets in place of SIG_DFL. So if the kernel has one of them, the disposition is SIG_DFL for
 * the program.
 */
#include <asm/errno.h>
#include <signal.h>
#include <ucontext.h>
#include "engine/process/sigaction.h"
#include "engine/graph/calls.h"
#include "engine/text/ftrace.h"
#include "engine/process/replace.h"
#include "engine/graph/interrupt.h"
#include "engine/latch.h"
#include "engine/prog/prog.h"
#include "engine/graph/thread.h"
#include "engine/uaccess.h"
#include "abi/analysis_access.h"
#include "arch/arch.h"
#include "base/base.h"
#include "base/mem.h"
#include "base/sys.h"

#define MAX_SIGNALS 65
#define SIGRTMIN_KERNEL 32

typedef int sigaction_fn(int sig, const struct sigaction *act, struct sigaction *old);
typedef int sigaltstack_fn(const stack_t *ss, stack_t *old);
typedef void handler_fn(int sig, siginfo_t *info, void *uc);

static sigaction_fn *original_sigaction;
static sigaltstack_fn *original_sigaltstack;
uint64_t pb_signal_begin(int sig, siginfo_t *info, ucontext_t *uc, uint64_t *slot);
void *pb_original_makecontext;
void pb_note_makecontext(const ucontext_t *uc, uint64_t slot);

static handler_fn *handlers[MAX_SIGNALS];
/* The handlers that pb_sigaction_adopt() has found in the kernel. A thread that is inside our
 * sigaction() at that moment has read handlers[] already, and finds the adopted handler here. */
static handler_fn *adopted[MAX_SIGNALS];
/* Set when the program's own handlers are in the kernel again. Until then, the kernel gets the
 * agent's handler in place of each handler that the program installs: jumps into stubs may still be
 * in place, and only the agent's handler can translate a program counter in a stub. */
static bool undone;
/* The flags that the program set for SIGSEGV or SIGBUS: `flags` with a handler, `default_flags`
 * with SIG_DFL. The kernel's flags may differ from them in the bits of HANDLER_FLAGS or
 * DEFAULT_FLAGS. */
#define HANDLER_FLAGS	(SA_SIGINFO | SA_RESETHAND)
#define DEFAULT_FLAGS	(SA_SIGINFO | SA_RESETHAND | SA_ONSTACK | SA_NODEFER)
static struct shown {
	int flags, default_flags;
} shown[MAX_SIGNALS];
static bool masks_known;	/* pb_sigaction_masks_known() was called */
/* Set when a handler has set another PC than that of the interrupted code. It may be a handler that
 * switches between threads of the program's own. Then it keeps contexts, and sets them later. By
 * then, their PCs may lie in displaced bytes. So from now on the agent sees the end of each
 * handler. */
static bool handlers_set_pcs;

static bool is_ours_first(int sig)
{
	return sig == SIGSEGV || sig == SIGBUS;
}

/* Translates a PC on the hit path. If the PC is in an entry's code, the handler sees the function's
 * entry: the call isn't made yet. If it is in the code of an exit by a jump, the handler sees the
 * jump. If it is in the code of an exit by a `ret`, the handler sees the state after the return.
 * But handlers of SIGSEGV and SIGBUS see the real context, because the `ret` may have faulted. */
static bool show_hit(int sig, struct pb_context *c)
{
	struct pb_hot_place at;
	struct pb_module *m;
	uint64_t to;

	if (!pb_context_hit(c, &at))
		return false;
	if (at.of == PB_HOT_RET) {
		if (is_ours_first(sig))
			return false;
		pb_context_show_return(c);
		return true;
	}
	if (at.of == PB_HOT_JUMP) {
		to = pb_text_original_pc(at.goes_on).next;
	} else {
		m = pb_site_module(at.site);
		to = m ? m->bias + pb_func_window(pb_site_func(m, at.site)) : 0;
	}
	if (to)
		pb_context_show_jump(c, to);
	return to;
}

/* Translates a PC in a stub. */
static bool show_stub(struct pb_context *c, uint64_t pc)
{
	struct pb_original original = pb_text_original_pc(pc);

	if (original.pc)
		pb_context_show_stub(c, &original);
	return original.pc;
}

/* If an exit was interrupted, notes the state of the exit's record. Code that closes the call or
 * lists open calls needs this. */
static void note_exit(const ucontext_t *uc)
{
	struct pb_hot_exit e;

	if (pb_context_exit(uc, &e))
		pb_calls_interrupted(e.call, e.slot, e.record);
}

static bool is_ours(uint64_t pc)
{
	return pb_agent_holds(pc) || pb_text_original_pc(pc).pc;
}

static bool reports_pc(int sig)
{
	return sig == SIGILL || sig == SIGFPE || sig == SIGTRAP;
}

/* The handler of a fault may skip the instruction that faulted, at pc. Returns whether the thread
 * may then go on in the middle of a patch, because a window begins at pc. Usually a displaced
 * instruction faults in the stub. But the window may have been patched after the fault and before
 * the signal was delivered, or it may be patched while the handler runs. After the beginning of a
 * detach, a window that isn't patched stays unpatched. */
static bool may_skip(int sig, uint64_t pc)
{
	return (is_ours_first(sig) || reports_pc(sig)) && pb_text_is_window(pc) &&
	       (!__atomic_load_n(&pb_detached, __ATOMIC_RELAXED) || !pb_text_moved_fault(pc));
}

/* Parts of the hit path have copies near modules (pb_near_make()). The agent's tables of code
 * describe only the originals. So if the signal has interrupted a copy, the thread goes on at the
 * same place in the original. */
static void leave_copy(int sig, siginfo_t *info, ucontext_t *uc)
{
	uint64_t pc = pb_context_pc(uc), to = pb_text_not_near(pc);

	if (!to)
		return;
	if (info && (uint64_t)info->si_addr == pc && reports_pc(sig))
		info->si_addr = (void *)to;
	pb_context_set_pc(uc, to);
}

/* A handler has set another PC. If it lies in displaced bytes, the thread goes on in the copy. */
static void follow(ucontext_t *uc)
{
	uint64_t to = pb_text_displaced_pc(pb_context_pc(uc));

	__atomic_store_n(&handlers_set_pcs, true, __ATOMIC_RELAXED);
	if (to)
		pb_context_set_pc(uc, to);
}

static void call_plain(handler_fn *handler, int sig, siginfo_t *info, ucontext_t *uc)
{
	uint64_t pc = pb_context_pc(uc);

	handler(sig, info, uc);
	if (pb_context_pc(uc) != pc)
		follow(uc);
}

static void call_translated(handler_fn *handler, int sig, siginfo_t *info, ucontext_t *uc)
{
	uint64_t pc = pb_context_pc(uc);
	struct pb_context c;
	bool shown;

	pb_context_begin(&c, uc);
	shown = show_hit(sig, &c) || show_stub(&c, pc);
	if (shown && info && (uint64_t)info->si_addr == pc && reports_pc(sig))
		info->si_addr = (void *)pb_context_pc(uc);
	pb_context_shown(&c);
	handler(sig, info, uc);
	if (shown ? !pb_context_end(&c) : pb_context_pc(uc) != pc)
		follow(uc);
}

/* The kernel's struct sigaction. */
struct action {
	void *handler;
	uint64_t flags;
	void *restorer;
	uint64_t mask;
};

static void set_default(int sig)
{
	struct action none = { 0 };

	pb_sys(SYS_rt_sigaction, sig, &none, NULL, 8);
}

/* Whether the interrupted instruction has faulted, and will fault again when the handler returns.
 * The first three codes of both signals mean such a fault (SEGV_MAPERR, BUS_ADRERR, ...). Some of
 * the higher ones don't. */
static bool faults_again(const siginfo_t *info)
{
	return info->si_code >= 1 && info->si_code <= 3;
}

/* Ends the process as the kernel would: when the calling handler returns, the signal is delivered
 * again with the same siginfo, and no handler is installed any more. With SA_NODEFER the signal
 * isn't blocked here, and would be delivered at once, with a program counter of the agent. So it is
 * blocked; the return from the handler restores the mask. A filter hardly forbids tgkill, because
 * raise() and abort() make it; then the siginfo is lost. */
static void die(int sig, siginfo_t *info)
{
	long pid = pb_sys(SYS_getpid), tid = pb_sys(SYS_gettid);
	uint64_t mask = 1ul << (sig - 1);

	pb_sys(SYS_rt_sigprocmask, SIG_BLOCK, &mask, NULL, sizeof(mask));
	set_default(sig);
	if (!pb_calls_are_safe() ||
	    pb_sys_failed(pb_sys(SYS_rt_tgsigqueueinfo, pid, tid, sig, info)))
		pb_sys(SYS_tgkill, pid, tid, sig);
}

/* If the program has set SIG_DFL for SIGSEGV or SIGBUS, the kernel has this handler instead. */
static void by_default(int sig, siginfo_t *info, void *context)
{
	ucontext_t *uc = context;
	struct pb_context c;

	if (pb_fault_fixup(sig, info, uc))
		return;
	if (!pb_calls_are_safe() && faults_again(info)) {
		set_default(sig);
		return;
	}
	leave_copy(sig, info, uc);
	pb_context_begin(&c, uc);
	if (!show_hit(sig, &c))
		show_stub(&c, pb_context_pc(uc));
	die(sig, info);
}

/* Like by_default(), but for a signal whose disposition the program has never set. */
static void by_default_at_start(int sig, siginfo_t *info, void *context)
{
	by_default(sig, info, context);
}

/* Returns the program's handler. For SIGSEGV and SIGBUS, also carries out SA_RESETHAND. The kernel
 * doesn't get this flag, because a fault of one of the agent's loads would use it up. */
static handler_fn *take_handler(int sig)
{
	if (is_ours_first(sig) && shown[sig].flags & SA_RESETHAND)
		return __atomic_exchange_n(&handlers[sig], NULL, __ATOMIC_ACQ_REL);
	return __atomic_load_n(&handlers[sig], __ATOMIC_ACQUIRE);
}

/* Returns whether the agent must see the end of the handler. This is so if handlers set PCs. It is
 * also so if the thread's mask is known, eBPF programs may read memory, and the agent can't ask the
 * kernel for the mask after the handler. */
static bool must_see_the_end(bool known)
{
	return __atomic_load_n(&handlers_set_pcs, __ATOMIC_RELAXED) ||
	       (known && pb_ftrace_regs && !pb_calls_are_safe());
}

/* Returns the address at which the thread goes on. While a handler runs, the agent doesn't know the
 * thread's signal mask (pb_unblocked): the handler may have interrupted a sigsuspend(), which sets
 * another mask. */
uint64_t pb_signal_begin(int sig, siginfo_t *info, ucontext_t *uc, uint64_t *slot)
{
	uint64_t done = (uint64_t)pb_signal_done, pc;
	struct pb_interrupted in;
	handler_fn *handler;

	if (is_ours_first(sig) && pb_fault_fixup(sig, info, uc))
		return done;
	leave_copy(sig, info, uc);
	pc = pb_context_pc(uc);
	if (pb_unlikely(pb_prog_defer(sig, info, uc, pb_agent_holds(pc) || pb_prog_holds(pc))))
		return done;
	handler = take_handler(sig);
	if (!handler) {
		by_default(sig, info, uc);
		return done;
	}
	note_exit(uc);
	in = pb_interrupt_begin(uc, (uint64_t)slot);
	if (pb_unlikely(in.known && !pb_unblocked_in(uc))) {
		/* this signal has interrupted the agent's handler of a fault. The return from that
		 * handler unblocks the signals again */
		call_plain(handler, sig, info, uc);
		pb_interrupt_end(&in, (uint64_t)slot, uc);
		pb_unblocked.known = in.known;
		return done;
	}
	if (in.inside || is_ours(pb_context_pc(uc)) || may_skip(sig, pb_context_pc(uc))) {
		call_translated(handler, sig, info, uc);
	} else if (pb_likely(!must_see_the_end(in.known))) {
		pb_unblocked_in_handler(pb_context_sp(uc), (uint64_t)slot, pb_unblocked_in(uc));
		return (uint64_t)handler;
	} else {
		call_plain(handler, sig, info, uc);
	}
	pb_interrupt_end(&in, (uint64_t)slot, uc);
	return done;
}

static bool is_handler(const struct sigaction *a)
{
	return a->sa_handler != SIG_DFL && a->sa_handler != SIG_IGN && a->sa_handler != SIG_ERR;
}

/* Fills *ours with the action that the kernel gets in place of `act`. False: the kernel gets `act`
 * itself. */
static bool stands_in(int sig, const struct sigaction *act, struct sigaction *ours)
{
	bool first = is_ours_first(sig) && pb_reads_are_on();

	if (undone)
		return false;
	memcpy(ours, act, sizeof(*ours));
	if (is_handler(act)) {
		ours->sa_sigaction = pb_signal_entry;
		if (first)
			ours->sa_flags = (act->sa_flags & ~HANDLER_FLAGS) | SA_SIGINFO;
		return true;
	}
	ours->sa_sigaction = by_default;
	ours->sa_flags = (act->sa_flags & ~DEFAULT_FLAGS) | SA_SIGINFO;
	return first && act->sa_handler == SIG_DFL;
}

static int swap_flags(int kernels, int programs, int which)
{
	return (kernels & ~which) | (programs & which);
}

/* Changes the kernel's answer into the action that the program had set. handler and was: the
 * signal's elements of handlers[] and shown[] before the call. */
static void show_action(int sig, struct sigaction *old, handler_fn *handler,
			const struct shown *was)
{
	if (old->sa_sigaction == pb_signal_entry) {
		old->sa_sigaction = handler;	/* NULL (SIG_DFL) after SA_RESETHAND */
		if (is_ours_first(sig))
			old->sa_flags = swap_flags(old->sa_flags, was->flags, HANDLER_FLAGS);
	} else if (old->sa_sigaction == by_default) {
		old->sa_handler = SIG_DFL;
		old->sa_flags = swap_flags(old->sa_flags, was->default_flags, DEFAULT_FLAGS);
	} else if (old->sa_sigaction == by_default_at_start) {
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
		shown[sig].flags = act->sa_flags;
		__atomic_store_n(&handlers[sig], act->sa_sigaction, __ATOMIC_RELEASE);
	} else {
		shown[sig].default_flags = act->sa_flags;
	}
}

static int our_sigaction(int sig, const struct sigaction *act, struct sigaction *old)
{
	struct sigaction ours;
	handler_fn *before;
	struct shown was;
	bool in, reads = pb_reads_are_on();
	int ret;

	if (sig < 1 || sig >= MAX_SIGNALS)
		return original_sigaction(sig, act, old);
	if (act && act->sa_handler == SIG_IGN && is_ours_first(sig))
		pb_sigaction_stand_down();
	before = handlers[sig];
	was = shown[sig];
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
		shown[sig] = was;
		__atomic_store_n(&handlers[sig], before, __ATOMIC_RELEASE);
	}
	if (!ret && old)
		show_action(sig, old, before ? before : adopted[sig], &was);
	return ret;
}

/* Sets the program's own disposition in the kernel again. Doesn't call libc, because the agent's
 * thread may call this function. */
static void give_back(int sig)
{
	const struct shown *s = &shown[sig];
	struct action a;

	if (pb_sys(SYS_rt_sigaction, sig, NULL, &a, 8))
		return;
	if (a.handler == by_default_at_start) {
		a = (struct action){ 0 };
	} else if (a.handler == by_default || (a.handler == pb_signal_entry && !handlers[sig])) {
		a.flags = (uint64_t)swap_flags((int)a.flags, s->default_flags, DEFAULT_FLAGS);
		a.handler = NULL;
	} else if (a.handler == pb_signal_entry) {
		a.handler = handlers[sig];
		if (is_ours_first(sig))
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
	struct action a;

	if (pb_sys(SYS_rt_sigaction, sig, NULL, &a, 8))
		return;
	if (a.handler != pb_signal_entry || !handlers[sig])
		give_back(sig);
	else if (shown[sig].flags & SA_RESETHAND) {
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
	for (int sig = 1; sig < MAX_SIGNALS; sig++)
		if (may || !is_ours_first(sig))
			give_back(sig);
}

void pb_sigaction_masks_known(void)
{
	masks_known = true;
}

bool pb_sigaction_start(void)
{
	struct sigaction segv, bus;
	struct sigaction ours = { .sa_sigaction = by_default_at_start, .sa_flags = SA_SIGINFO };

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
	struct action a;

	if (is_of_libc(sig) || pb_sys(SYS_rt_sigaction, sig, NULL, &a, 8) ||
	    a.handler == (void *)SIG_DFL || a.handler == (void *)SIG_IGN)
		return;
	adopted[sig] = a.handler;
	shown[sig].flags = (int)a.flags;
	/* if handlers[sig] isn't NULL, a thread is just setting another handler, which must stay in
	 * the table */
	if (!handlers[sig])
		handlers[sig] = a.handler;
	a.handler = pb_signal_entry;
	pb_sys(SYS_rt_sigaction, sig, &a, NULL, 8);
}

static bool adopted_reads;	/* the result of pb_sigaction_start() in adopt() */

/* Called while the other threads are stopped; nr of them may be inside sigaction(). */
static int adopt(const struct pb_stopped *at, size_t nr)
{
	if (nr)
		return -EAGAIN;
	for (int sig = 1; sig < MAX_SIGNALS; sig++)
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
