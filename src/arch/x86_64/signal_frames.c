/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A signal frame is a word with the restorer's address, followed by a struct ucontext. The restorer
 * (sa_restorer) is the function to which a handler returns. If the thread is in the restorer,
 * the restorer's address is just below rsp. The stack is read by process_vm_readv(2), because its
 * end isn't known, and reading beyond the end would be a fault.
 */
#include <sys/uio.h>
#include "arch/x86_64/signal_frames.h"
#include "base/base.h"
#include "base/sys.h"

#define MAX_RESTORERS	8
#define SCAN_BYTES	(1ul << 20)	/* how far a stack is searched */
#define FRAME_BYTES	256		/* bytes from a frame's start to beyond its saved PC */

/* The restorers that this process has, or had at earlier stops. */
static uint64_t restorers[MAX_RESTORERS];
static unsigned nr_restorers;
static uint64_t lowest, highest;

/* A stop looks at up to 128 Ki words of each thread. Nearly all of them are outside the range. */
static inline bool is_restorer(uint64_t word)
{
	if (pb_likely(word - lowest > highest - lowest))
		return false;
	for (unsigned k = 0; k < nr_restorers; k++)
		if (word == restorers[k])
			return true;
	return false;
}

static void add_restorer(uint64_t restorer)
{
	if (nr_restorers == MAX_RESTORERS || (nr_restorers && is_restorer(restorer)))
		return;
	if (!nr_restorers || restorer < lowest)
		lowest = restorer;
	if (restorer > highest)
		highest = restorer;
	restorers[nr_restorers++] = restorer;
}

void pb_signal_frames_begin(void)
{
	struct { uint64_t handler, flags, restorer, mask; } sa;

	for (int sig = 1; sig <= 64; sig++)
		if (!pb_sys(SYS_rt_sigaction, sig, NULL, &sa, 8) && sa.handler >= 2 && sa.restorer)
			add_restorer(sa.restorer);
}

bool pb_signal_frames(const struct user_regs_struct *regs,
		      bool (*visit)(void *arg, uint64_t *rip, uint64_t sp), void *arg)
{
	static uint64_t buf[8192];
	uint32_t self = (uint32_t)pb_sys(SYS_getpid);
	/* no stack extends beyond the thread's control block, which libc puts above the stack */
	uint64_t rsp = regs->rsp - 8, room = regs->fs_base - rsp;

	if (!nr_restorers)
		return false;
	if (room > SCAN_BYTES)
		room = SCAN_BYTES;
	/* the pieces that are read overlap by FRAME_BYTES */
	for (uint64_t done = 0; done < room; done += sizeof(buf) - FRAME_BYTES) {
		size_t size = room - done < sizeof(buf) ? room - done : sizeof(buf);
		struct iovec to = { buf, size }, from = { (void *)(rsp + done), size };
		long n = pb_sys(SYS_process_vm_readv, self, &to, 1, &from, 1, 0);

		for (long i = 0; i < n / 8; i++) {
			/* the restorer, uc_flags, uc_link, uc_stack, r8..r15, rdi rsi rbp rbx
			 * rdx rax rcx rsp, rip */
			uint64_t *frame = (uint64_t *)(rsp + done) + i, *rip = frame + 1 + 5 + 16;

			if (!is_restorer(buf[i]))
				continue;
			if (rip >= (uint64_t *)(rsp + done + (uint64_t)n))
				break;
			if (visit(arg, rip, rip[-1]))
				return true;
		}
		if (n < (long)sizeof(buf))
			break;
	}
	return false;
}
