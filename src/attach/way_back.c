/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Writes the ways back (way_back.h). The way back of a borrowed thread ends in a signal frame. It
 * has the layout of the frames that the kernel writes for handlers. rt_sigreturn expects the frame
 * at the stack pointer. The frame's floating-point state has the format of XSAVE, as ptrace returns
 * it, with the kernel's marks in its first 512 bytes and at its end.
 */
#include "attach/way_back.h"
#include <errno.h>
#include <signal.h>
#include <stddef.h>
#include <string.h>
#include <sys/ucontext.h>
#include "base/base.h"

/* results that make the kernel restart a system call (include/linux/errno.h) */
#define ERESTARTSYS		512
#define ERESTARTNOINTR		513
#define ERESTARTNOHAND		514
#define ERESTART_RESTARTBLOCK	516

/* the marks of a signal frame's floating-point state (asm/sigcontext.h) */
#define XSTATE_MARK_AT	464
#define XSTATE_MAGIC1	0x46505853u
#define XSTATE_MAGIC2	0x46505845u
#define XSTATE_AMX	(3ull << 17)
#define XSTATE_BEFORE_AMX 2696
/* uc_flags */
#define UC_FP_XSTATE	1
#define UC_SIGCONTEXT_SS 2
#define UC_STRICT_RESTORE_SS 4
#define INVALID_SS_FLAGS 0x40

struct xstate_mark {
	uint32_t magic1, extended_size;
	uint64_t features;
	uint32_t size, padding[7];
};

/* The kernel's struct rt_sigframe without its first word, the return address, which is gone from
 * the stack when the restorer runs. */
struct sigframe {
	struct ucontext_t uc;
	siginfo_t info;
};

void attach_way_restart(const struct user_regs_struct *saved, struct user_regs_struct *out)
{
	*out = *saved;
	/* The kernel restarts most calls by itself, but ends epoll_wait and similar calls with
	 * EINTR. With ERESTARTNOHAND, its own error for "restart, unless a handler runs", it
	 * restarts these calls, too. So the program doesn't notice the stop. close() is different:
	 * it has closed the descriptor although it returns EINTR. */
	if ((int64_t)out->orig_rax >= 0 && out->orig_rax != SYS_close &&
	    (int64_t)out->rax == -EINTR)
		out->rax = (uint64_t)-ERESTARTNOHAND;
}

static bool is_restarted(const struct user_regs_struct *r)
{
	int64_t result = (int64_t)r->rax;

	return (int64_t)r->orig_rax >= 0 &&
	       (result == -ERESTARTSYS || result == -ERESTARTNOINTR || result == -ERESTARTNOHAND ||
		result == -ERESTART_RESTARTBLOCK);
}

/* Fills the registers of a signal frame. The thread makes its system call again, with the call's
 * whole time-out, because rt_sigreturn drops the kernel's record of the remaining time. */
static void fill_registers(struct ucontext_t *uc, const struct user_regs_struct *saved)
{
	struct user_regs_struct r;
	long long *g = uc->uc_mcontext.gregs;

	attach_way_restart(saved, &r);
	if (is_restarted(&r)) {
		r.rax = r.orig_rax;
		r.rip -= ATTACH_SYSCALL_SIZE;
	}
	g[REG_R8] = (long long)r.r8;
	g[REG_R9] = (long long)r.r9;
	g[REG_R10] = (long long)r.r10;
	g[REG_R11] = (long long)r.r11;
	g[REG_R12] = (long long)r.r12;
	g[REG_R13] = (long long)r.r13;
	g[REG_R14] = (long long)r.r14;
	g[REG_R15] = (long long)r.r15;
	g[REG_RDI] = (long long)r.rdi;
	g[REG_RSI] = (long long)r.rsi;
	g[REG_RBP] = (long long)r.rbp;
	g[REG_RBX] = (long long)r.rbx;
	g[REG_RDX] = (long long)r.rdx;
	g[REG_RAX] = (long long)r.rax;
	g[REG_RCX] = (long long)r.rcx;
	g[REG_RSP] = (long long)r.rsp;
	g[REG_RIP] = (long long)r.rip;
	g[REG_EFL] = (long long)r.eflags;
	g[REG_CSGSFS] = (long long)(r.cs | r.ss << 48);
}

/* Writes the floating-point state below `top`. Returns its address, or 0. */
static uint64_t write_xstate(const struct attach_subject *s, const struct attach_state *state,
			     uint64_t top)
{
	uint8_t buf[ATTACH_XSTATE_MAX + sizeof(uint32_t)];
	struct xstate_mark mark = { .magic1 = XSTATE_MAGIC1 };
	const uint32_t magic2 = XSTATE_MAGIC2;
	size_t size = state->xstate_size;

	if (size < XSTATE_MARK_AT + sizeof(mark) || size > ATTACH_XSTATE_MAX)
		return 0;
	/* ptrace gives the processor's features where a signal frame has the mark */
	memcpy(&mark.features, state->xstate + XSTATE_MARK_AT, sizeof(mark.features));
	/* the state of AMX is left out: the kernel restores it only in the few programs that have
	 * asked for AMX */
	if (mark.features & XSTATE_AMX && size > XSTATE_BEFORE_AMX)
		size = XSTATE_BEFORE_AMX;
	mark.features &= ~XSTATE_AMX;
	mark.size = (uint32_t)size;
	mark.extended_size = (uint32_t)(size + sizeof(magic2));
	memcpy(buf, state->xstate, size);
	memcpy(buf + XSTATE_MARK_AT, &mark, sizeof(mark));
	memcpy(buf + size, &magic2, sizeof(magic2));
	uint64_t at = (top - mark.extended_size) & ~63ull;

	return attach_mem_write(s, at, buf, mark.extended_size) ? 0 : at;
}

int attach_way_of_borrowed(const struct attach_subject *s, const struct attach_libc *l,
			   const struct attach_state *state, uint64_t top, struct attach_way *way)
{
	struct {
		uint64_t pop_rdi, bad, call, restore;
		struct sigframe frame;
	} w = { l->pop_rdi, UINT64_MAX, l->call, l->restore };
	uint64_t xstate = write_xstate(s, state, top);

	if (!xstate)
		return -EFAULT;
	w.frame.uc.uc_flags = UC_FP_XSTATE | UC_SIGCONTEXT_SS | UC_STRICT_RESTORE_SS;
	/* with an invalid alternate stack here, rt_sigreturn keeps the thread's alternate stack */
	w.frame.uc.uc_stack.ss_flags = INVALID_SS_FLAGS;
	fill_registers(&w.frame.uc, &state->regs);
	w.frame.uc.uc_mcontext.fpregs = (void *)xstate;
	memcpy(&w.frame.uc.uc_sigmask, &state->mask, sizeof(state->mask));
	way->sp = ((xstate - sizeof(w)) & ~15ull) - 8;
	way->arrival_sp = way->sp + offsetof(__typeof__(w), restore);
	return attach_mem_write(s, way->sp, &w, sizeof(w));
}

int attach_way_of_new(const struct attach_subject *s, const struct attach_libc *l,
		      uint64_t start_sp, uint64_t top, struct attach_way *way)
{
	const uint64_t w[] = { l->pop_rdi, UINT64_MAX, l->call, l->pop_rsp, start_sp };

	way->sp = ((top - sizeof(w)) & ~15ull) - 8;
	way->arrival_sp = way->sp + 3 * sizeof(w[0]);
	return attach_mem_write(s, way->sp, w, sizeof(w));
}
