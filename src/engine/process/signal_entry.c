/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The kernel calls pb_signal_entry() in place of each handler of the program. If the interrupted PC
 * is in the program's own code, the handler sees the context unchanged. If the PC is in a stub or
 * in the hit path's assembly, the handler sees the context as it would be without the agent.
 * Registers that the handler leaves unchanged get their real values back. If the PC is in the
 * agent's C code, the handler sees the real context.
 *
 * SIGSEGV and SIGBUS come to the agent first, even if the program has no handler: a load of the
 * agent may have faulted (uaccess.h).
 */
#include <signal.h>
#include <ucontext.h>
#include "engine/process/signal_entry.h"
#include "engine/graph/calls.h"
#include "engine/text/ftrace.h"
#include "engine/text/text.h"
#include "engine/graph/interrupt.h"
#include "engine/latch.h"
#include "engine/prog/prog.h"
#include "engine/graph/thread.h"
#include "engine/uaccess.h"
#include "arch/arch.h"
#include "base/base.h"
#include "base/sys.h"

/* What pb_signal_entry() does next. `to`: the address of the next code. end: an argument for
 * pb_signal_end(), which is called after that code has returned; 0: the code is reached by a jump,
 * and its end isn't seen. */
struct next {
	uint64_t to, end;
};
#define RESTORES	1ul	/* a bit of `end`: the thread's mask was known */
struct next pb_signal_begin(int sig, siginfo_t *info, ucontext_t *uc, uint64_t *slot);
void pb_signal_end(ucontext_t *uc, uint64_t end);

pb_handler_fn *pb_handlers[PB_SIGNALS];
struct pb_handler_flags pb_handler_flags[PB_SIGNALS];
/* Set when a handler that has interrupted the agent's code has set another PC or stack pointer. It
 * may be a handler that switches between threads of the program's own. Then it keeps contexts, and
 * sets them later. By then, their PCs may lie in displaced bytes. So from now on the agent sees the
 * end of each handler. */
static bool handlers_set_pcs;
static PB_LASTING uint64_t leaves;	/* how often pb_signal_leave() was called */

/* Returns an `end` that isn't 0 and that is valid until pb_signal_leave() is called. */
static uint64_t end_word(void)
{
	return 2 * (leaves + 1);
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
		if (pb_signal_is_fault(sig))
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
	return (pb_signal_is_fault(sig) || reports_pc(sig)) && pb_text_is_window(pc) &&
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

/* If a handler has set a PC in displaced bytes, the thread goes on in the copy. */
static void leave_displaced(ucontext_t *uc)
{
	uint64_t to = pb_text_displaced_pc(pb_context_pc(uc));

	if (to)
		pb_context_set_pc(uc, to);
}

/* A handler has changed the PC or the stack pointer, or a stop has moved the PC to a stub. The
 * program never sees an address in a stub, so it sets none. */
static void follow(ucontext_t *uc)
{
	if (!pb_in_stub(pb_context_pc(uc)))
		__atomic_store_n(&handlers_set_pcs, true, __ATOMIC_RELAXED);
	leave_displaced(uc);
}

static void call_plain(pb_handler_fn *handler, int sig, siginfo_t *info, ucontext_t *uc)
{
	uint64_t pc = pb_context_pc(uc);

	handler(sig, info, uc);
	if (pb_context_pc(uc) != pc)
		follow(uc);
}

static void call_translated(pb_handler_fn *handler, int sig, siginfo_t *info, ucontext_t *uc)
{
	uint64_t pc = pb_context_pc(uc);
	struct pb_context c;
	bool shown;

	pb_context_begin(&c, uc);
	shown = show_hit(sig, &c) || show_stub(&c, pc);
	if (shown && info && (uint64_t)info->si_addr == pc && reports_pc(sig))
		info->si_addr = (void *)pb_context_pc(uc);
	pb_context_shown(&c);
	pc = pb_context_pc(uc);
	handler(sig, info, uc);
	if (shown ? !pb_context_end(&c) : pb_context_pc(uc) != pc)
		follow(uc);
}

static void set_default(int sig)
{
	struct pb_kernel_sigaction none = { 0 };

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

void pb_signal_default(int sig, siginfo_t *info, void *context)
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

void pb_signal_default_at_start(int sig, siginfo_t *info, void *context)
{
	pb_signal_default(sig, info, context);
}

/* Returns the program's handler. For SIGSEGV and SIGBUS, also carries out SA_RESETHAND. The kernel
 * doesn't get this flag, because a fault of one of the agent's loads would use it up. */
static pb_handler_fn *take_handler(int sig)
{
	if (pb_signal_is_fault(sig) && pb_handler_flags[sig].flags & SA_RESETHAND)
		return __atomic_exchange_n(&pb_handlers[sig], NULL, __ATOMIC_ACQ_REL);
	return __atomic_load_n(&pb_handlers[sig], __ATOMIC_ACQUIRE);
}

/* The program's code was interrupted. The thread's state needs no care after the handler: the next
 * hit shows which calls are over and which stack is current. If handlers set PCs, the PC is looked
 * at after the handler. The same holds if the handler may skip an instruction. If the thread's mask
 * is known, eBPF programs may read memory, and the agent can't ask the kernel for the mask after
 * the handler, then pb_signal_end() notes that the mask is known again. */
static struct next pass_on(pb_handler_fn *handler, int sig, const ucontext_t *uc, uint64_t slot,
			   bool known)
{
	struct next next = { (uint64_t)handler, 0 };
	bool restores = known && pb_ftrace_regs && !pb_calls_are_safe();

	if (!restores)
		pb_unblocked_in_handler(pb_context_sp(uc), slot, pb_unblocked_in(uc));
	if (pb_unlikely(restores || __atomic_load_n(&handlers_set_pcs, __ATOMIC_RELAXED) ||
			may_skip(sig, pb_context_pc(uc))))
		next.end = end_word() | (restores ? RESTORES : 0);
	return next;
}

/* Returns how the thread goes on. While a handler runs, the agent doesn't know the thread's signal
 * mask (pb_unblocked): the handler may have interrupted a sigsuspend(), which sets another mask. */
struct next pb_signal_begin(int sig, siginfo_t *info, ucontext_t *uc, uint64_t *slot)
{
	const struct next done = { (uint64_t)pb_signal_done, 0 };
	struct pb_interrupted in;
	pb_handler_fn *handler;
	uint64_t pc;

	if (pb_signal_is_fault(sig) && pb_fault_fixup(sig, info, uc))
		return done;
	leave_copy(sig, info, uc);
	pc = pb_context_pc(uc);
	if (pb_unlikely(pb_prog_defer(sig, info, uc, pb_agent_holds(pc) || pb_prog_holds(pc))))
		return done;
	handler = take_handler(sig);
	if (!handler) {
		pb_signal_default(sig, info, uc);
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
	if (!in.inside && !is_ours(pb_context_pc(uc)))
		return pass_on(handler, sig, uc, (uint64_t)slot, in.known);
	call_translated(handler, sig, info, uc);
	pb_interrupt_end(&in, (uint64_t)slot, uc);
	return done;
}

/* A handler that has interrupted the program's code has returned. It may have run across a detach,
 * and even across the next attach. Then the agent's memory may be about to change, and nothing of
 * it but `leaves` is touched. */
void pb_signal_end(ucontext_t *uc, uint64_t end)
{
	if ((end & ~RESTORES) != end_word())
		return;
	leave_displaced(uc);
	if (end & RESTORES)
		pb_unblocked.known = pb_unblocked.slot && pb_unblocked_in(uc);
}

void pb_signal_leave(void)
{
	leaves++;
}
