/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The kernel is given a trampoline in place of each handler; flags, mask and
 * the handler's stack stay the program's. Where the interrupted PC is the
 * program's own, the trampoline jumps to the handler and is not seen. Else it
 * calls it: the handler sees the context as it would be without us, and what
 * it leaves unchanged is put back.
 *
 * Only real handlers are remembered: SIG_DFL and SIG_IGN come from the kernel,
 * also in a vfork child that shares this table with its parent.
 */
#include <linux/seccomp.h>
#include <signal.h>
#include <sys/prctl.h>
#include <ucontext.h>
#include "engine/sigaction.h"
#include "engine/creds.h"
#include "engine/fgraph.h"
#include "engine/ftrace.h"
#include "engine/latch.h"
#include "engine/thread.h"
#include "arch/x86_64/hot.h"
#include "base/base.h"
#include "base/mem.h"
#include "base/sys.h"

#define MAX_SIGNALS 65

typedef int sigaction_fn(int sig, const struct sigaction *act, struct sigaction *old);
typedef int sigaltstack_fn(const stack_t *ss, stack_t *old);
typedef int prctl_fn(int op, unsigned long a, unsigned long b, unsigned long c, unsigned long d);
typedef void handler_fn(int sig, siginfo_t *info, void *uc);

static sigaction_fn *original_sigaction;
static sigaltstack_fn *original_sigaltstack;
static prctl_fn *original_prctl;
void *pb_original_makecontext;
void pb_our_makecontext(void);
void pb_note_makecontext(const ucontext_t *uc);

static handler_fn *handlers[MAX_SIGNALS];

static uint64_t frame(const greg_t *g, int offset)
{
	return *(uint64_t *)((uint64_t)g[REG_RSP] + (uint64_t)(int64_t)offset);
}

static void set_flags(greg_t *g, uint32_t saved)
{
	/* lahf in ah, seto in al */
	uint64_t flags = (uint64_t)g[REG_EFL] & ~0x8d5ul;

	g[REG_EFL] = (greg_t)(flags | (saved >> 8 & 0xd5) | (saved & 1) << 11);
}

/* In the hit path before the call is made: as at the function's entry. */
static bool show_entry(greg_t *g)
{
	for (const struct pb_hot_range *r = __start_pb_hot_ranges; r < __stop_pb_hot_ranges; r++) {
		uint64_t off = (uint64_t)g[REG_RIP] - ((uint64_t)r + (uint64_t)(int64_t)r->start);
		const struct pb_site *s = (const struct pb_site *)g[REG_R11];
		struct pb_module *m;

		if (off >= r->end)
			continue;
		m = pb_site_module(s);
		if (!m)
			return false;
		if (off || off >= r->saved)
			g[REG_RAX] = (greg_t)frame(g, F_RAX);
		if (off >= r->saved) {
			g[REG_RCX] = (greg_t)frame(g, F_RCX);
			g[REG_RDX] = (greg_t)frame(g, F_RDX);
			if (r->rdi_rsi) {
				g[REG_RDI] = (greg_t)frame(g, F_RDI);
				g[REG_RSI] = (greg_t)frame(g, F_RSI);
			}
			set_flags(g, (uint32_t)frame(g, F_FLAGS));
		}
		g[REG_R11] = (greg_t)frame(g, F_R11);
		g[REG_RIP] = (greg_t)(m->bias + pb_site_func(m, s)->addr +
				      pb_site_func(m, s)->window);
		return true;
	}
	return false;
}

static bool show_stub(greg_t *g)
{
	bool own;
	uint64_t pc = (uint64_t)g[REG_RIP], original = pb_text_original_pc(pc, &own);

	if (!original)
		return false;
	/* behind the lea, r11 is the site (layout.h) */
	if (own && *(const uint8_t *)pc != 0x4c)
		g[REG_R11] = (greg_t)frame(g, F_R11);
	else if (own && ((const uint8_t *)pc)[1] == 0x8b)
		g[REG_R11] = (greg_t)frame(g, F_R11);
	g[REG_RIP] = (greg_t)original;
	return true;
}

static bool is_ours(uint64_t pc)
{
	bool own;

	return pb_hot_holds(pc) || pb_text_original_pc(pc, &own);
}

static void call_translated(handler_fn *handler, int sig, siginfo_t *info, ucontext_t *uc)
{
	greg_t *g = uc->uc_mcontext.gregs, real[NGREG], shown[NGREG];
	bool moved;

	memcpy(real, g, sizeof(real));
	if (!show_entry(g) && !show_stub(g)) {
		handler(sig, info, uc);
		return;
	}
	if (info && (uint64_t)info->si_addr == (uint64_t)real[REG_RIP] &&
	    (sig == SIGILL || sig == SIGFPE || sig == SIGTRAP))
		info->si_addr = (void *)g[REG_RIP];
	memcpy(shown, g, sizeof(shown));
	handler(sig, info, uc);
	moved = g[REG_RIP] != shown[REG_RIP] || g[REG_RSP] != shown[REG_RSP];
	if (moved) {
		/* it goes on elsewhere: not into bytes that we displaced */
		uint64_t to = pb_text_moved_pc((uint64_t)g[REG_RIP]);

		if (to)
			g[REG_RIP] = (greg_t)to;
		return;
	}
	for (int i = 0; i < NGREG; i++)
		if (g[i] == shown[i])
			g[i] = real[i];
}

static void trampoline(int sig, siginfo_t *info, void *context)
{
	ucontext_t *uc = context;
	handler_fn *handler = __atomic_load_n(&handlers[sig], __ATOMIC_ACQUIRE);

	if (pb_likely(!is_ours((uint64_t)uc->uc_mcontext.gregs[REG_RIP])))
		handler(sig, info, context);	/* a jump */
	else
		call_translated(handler, sig, info, uc);
}

static bool is_handler(const struct sigaction *a)
{
	return a->sa_handler != SIG_DFL && a->sa_handler != SIG_IGN && a->sa_handler != SIG_ERR;
}

static int our_sigaction(int sig, const struct sigaction *act, struct sigaction *old)
{
	struct sigaction ours;
	handler_fn *before;
	int ret;

	if (sig < 1 || sig >= MAX_SIGNALS)
		return original_sigaction(sig, act, old);
	before = handlers[sig];
	if (act && is_handler(act) && !pb_detached) {
		memcpy(&ours, act, sizeof(ours));
		ours.sa_sigaction = trampoline;
		__atomic_store_n(&handlers[sig], act->sa_sigaction, __ATOMIC_RELEASE);
		act = &ours;
	}
	ret = original_sigaction(sig, act, old);
	if (ret && act == &ours)
		__atomic_store_n(&handlers[sig], before, __ATOMIC_RELEASE);
	if (!ret && old && old->sa_sigaction == trampoline)
		old->sa_sigaction = before;
	return ret;
}

void pb_sigaction_undo(void)
{
	for (int sig = 1; sig < MAX_SIGNALS; sig++) {
		struct { uint64_t handler, flags, restorer, mask; } sa;

		if (pb_sys(SYS_rt_sigaction, sig, NULL, &sa, 8) || sa.handler != (uint64_t)trampoline)
			continue;
		sa.handler = (uint64_t)handlers[sig];
		pb_sys(SYS_rt_sigaction, sig, &sa, NULL, 8);
	}
}

static int our_sigaltstack(const stack_t *ss, stack_t *old)
{
	int ret = original_sigaltstack(ss, old);

	if (!ret && ss && !(ss->ss_flags & SS_DISABLE) && pb_process->pid)
		pb_stack_told((uint64_t)ss->ss_sp, ss->ss_size);
	return ret;
}

/* Both make reading the TSC a fault. */
static int our_prctl(int op, unsigned long a, unsigned long b, unsigned long c, unsigned long d)
{
	int ret;

	if ((op == PR_SET_SECCOMP && a == SECCOMP_MODE_STRICT) ||
	    (op == PR_SET_TSC && a == PR_TSC_SIGSEGV))
		pb_clock_freeze();
	ret = original_prctl(op, a, b, c, d);
	if (!ret)
		pb_creds_prctl(op, a, b, c, d);
	return ret;
}

void pb_note_makecontext(const ucontext_t *uc)
{
	if (uc && pb_process->pid)
		pb_stack_told((uint64_t)uc->uc_stack.ss_sp, uc->uc_stack.ss_size);
}

static void replace(struct pb_module *m, const char *name, void *ours, void *original)
{
	uint64_t old = pb_ftrace_replace(m, name, ours);

	if (old)
		__atomic_store_n((uint64_t *)original, old, __ATOMIC_RELEASE);
}

void pb_sigaction_hook(struct pb_module *m)
{
	if (original_sigaction)
		return;
	replace(m, "sigaction", our_sigaction, &original_sigaction);
	if (!original_sigaction)
		return;
	replace(m, "sigaltstack", our_sigaltstack, &original_sigaltstack);
	replace(m, "prctl", our_prctl, &original_prctl);
	replace(m, "makecontext", pb_our_makecontext, &pb_original_makecontext);
}
