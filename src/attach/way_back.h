/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A way back is a chain of return addresses. The injector writes it to a thread's stack before it
 * makes the thread call a function. When the function returns, the chain leads to a system call
 * whose number is the function's result. At this call the injector stops the thread, and reads the
 * result. If the injector is gone, the call fails, and the thread follows the chain to its end: a
 * borrowed thread goes on as before, and a new thread ends (doc/design/injection.md). Context: the
 * injector's thread; the other thread is stopped.
 */
#ifndef PB_ATTACH_WAY_BACK_H
#define PB_ATTACH_WAY_BACK_H
#include "attach/libc_map.h"
#include "attach/remote.h"

struct attach_way {
	uint64_t sp;		/* the stack pointer at the function's entry */
	uint64_t arrival_sp;	/* the stack pointer when the thread arrives at the instruction
				 * `syscall` in libc's getppid() (the member `call` of struct
				 * attach_libc) */
};

/* Writes the way back of a borrowed thread below the address `top`. It ends in a signal frame that
 * restores the state and repeats the interrupted system call. `state` is from attach_remote_save().
 * Returns 0 or -EFAULT. */
int attach_way_of_borrowed(const struct attach_subject *s, const struct attach_libc *l,
			   const struct attach_state *state, uint64_t top, struct attach_way *way);
/* Writes the way back of a new thread below the address `top`. At the end of the way the thread
 * returns from its start routine; `start_sp` was its stack pointer in the start routine. */
int attach_way_of_new(const struct attach_subject *s, const struct attach_libc *l,
		      uint64_t start_sp, uint64_t top, struct attach_way *way);

/* For a thread that attach_remote_trap() has stopped in a system call. Stores in *out the registers
 * with which the thread must go on, so that the kernel restarts this call: those in *saved, but
 * with an error after which the kernel restarts calls in place of EINTR. */
void attach_way_restart(const struct user_regs_struct *saved, struct user_regs_struct *out);
#endif
