/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Finds two things on a stack: signal frames, and the return address with which pb_signal_entry()
 * calls pb_signal_begin().
 *
 * A signal frame is a word with the restorer's address, followed by a struct ucontext and a
 * siginfo. The restorer (sa_restorer) is the function to which a handler returns. If the thread is
 * in the restorer, the restorer's address is just below rsp. The end of the stack isn't known, and
 * a load beyond it would fault. So the stack is read by process_vm_readv(2).
 *
 * While pb_signal_begin() calls a handler, the signal frame may have a PC of the program, which the
 * agent has put there for the handler. So the frame doesn't show that the handler returns to code
 * of the agent. But if the return address in pb_signal_entry() is on the stack, such a handler may
 * be running. A handler that pb_signal_entry() itself calls isn't looked for: it has interrupted
 * the program's code, and its return does no harm after a detach (pb_signal_end()).
 */
#include <signal.h>
#include <sys/uio.h>
#include "arch/x86_64/hit_stacks.h"
#include "arch/x86_64/signal_frames.h"
#include "base/base.h"
#include "base/sys.h"

#define MAX_RESTORERS	8
#define SCAN_BYTES	(1ul << 20)	/* how far a stack is searched */
#define RIP_WORD	(1 + 5 + 16)	/* in a frame, after: the restorer, uc_flags, uc_link,
					 * uc_stack; r8..r15, rdi rsi rbp rbx rdx rax rcx rsp */
#define SIGNO_WORD	(1 + 38)	/* in a frame, after: the restorer, the kernel's struct
					 * ucontext */
#define FRAME_WORDS	(SIGNO_WORD + 1)
#define FRAME_BYTES	(FRAME_WORDS * 8ul)

extern const uint8_t pb_signal_called[] __attribute__((visibility("hidden")));

/* The restorers that this process has, or had at earlier stops. */
static uint64_t restorers[MAX_RESTORERS];
static unsigned nr_restorers;
static uint64_t lowest, highest;	/* of restorers and pb_signal_called */

static bool is_restorer(uint64_t word)
{
	for (unsigned k = 0; k < nr_restorers; k++)
		if (word == restorers[k])
			return true;
	return false;
}

static void widen(uint64_t word)
{
	if (word < lowest)
		lowest = word;
	if (word > highest)
		highest = word;
}

static void add_restorer(uint64_t restorer)
{
	if (nr_restorers == MAX_RESTORERS || is_restorer(restorer))
		return;
	widen(restorer);
	restorers[nr_restorers++] = restorer;
}

void pb_signal_frames_begin(void)
{
	struct { uint64_t handler, flags, restorer, mask; } sa;

	if (!nr_restorers)
		lowest = highest = (uint64_t)pb_signal_called;
	for (int sig = 1; sig <= 64; sig++)
		if (!pb_sys(SYS_rt_sigaction, sig, NULL, &sa, 8) && sa.handler >= 2 && sa.restorer)
			add_restorer(sa.restorer);
}

static bool is_fault(uint64_t signo)
{
	switch ((uint32_t)signo) {
	case SIGSEGV:
	case SIGBUS:
	case SIGILL:
	case SIGFPE:
	case SIGTRAP:
		return true;
	}
	return false;
}

/* buf is a copy of the n words at `at`. Calls visit() for each signal frame in them, and for the
 * return address pb_signal_called, until visit() returns true. */
static bool visit_words(const uint64_t *buf, uint64_t *at, size_t n,
			bool (*visit)(void *arg, const struct pb_signal_frame *f), void *arg)
{
	for (size_t i = 0; i < n; i++) {
		struct pb_signal_frame f = { .rip = at + i, .sp = (uint64_t)(at + i + 1) };

		/* up to 128 Ki words of each thread; nearly all of them are outside the range */
		if (pb_likely(buf[i] - lowest > highest - lowest))
			continue;
		if (is_restorer(buf[i])) {
			if (n - i < FRAME_WORDS)
				return false;
			f.rip += RIP_WORD;
			f.sp = f.rip[-1];
			f.fault = is_fault(buf[i + SIGNO_WORD]);
		} else if (buf[i] != (uint64_t)pb_signal_called) {
			continue;
		}
		if (visit(arg, &f))
			return true;
	}
	return false;
}

/* Calls visit() for the frames in the `room` bytes from rsp on, but in at most SCAN_BYTES. */
static bool visit_stack(uint64_t rsp, uint64_t room,
			bool (*visit)(void *arg, const struct pb_signal_frame *f), void *arg)
{
	static uint64_t buf[8192];
	uint32_t self = (uint32_t)pb_sys(SYS_getpid);

	if (room > SCAN_BYTES)
		room = SCAN_BYTES;
	/* the pieces that are read overlap by FRAME_BYTES */
	for (uint64_t done = 0; done < room; done += sizeof(buf) - FRAME_BYTES) {
		size_t size = room - done < sizeof(buf) ? room - done : sizeof(buf);
		struct iovec to = { buf, size }, from = { (void *)(rsp + done), size };
		long n = pb_sys(SYS_process_vm_readv, self, &to, 1, &from, 1, 0);

		if (n > 0 && visit_words(buf, (uint64_t *)(rsp + done), (size_t)n / 8, visit, arg))
			return true;
		if (n < (long)sizeof(buf))
			break;
	}
	return false;
}

bool pb_signal_frames(const struct user_regs_struct *regs,
		      bool (*visit)(void *arg, const struct pb_signal_frame *f), void *arg)
{
	uint64_t rsp = regs->rsp - 8, end, slot;

	if (!nr_restorers)
		return false;
	if (pb_hit_stack_at(rsp, &end, &slot)) {
		if (visit_stack(rsp, end - rsp, visit, arg))
			return true;
		rsp = slot;
	}
	/* libc puts the control block of a thread that it makes at the upper end of the stack. The
	 * main thread's is below its stack. Then the difference is huge, and SCAN_BYTES is the
	 * limit. */
	return visit_stack(rsp, regs->fs_base - rsp, visit, arg);
}
