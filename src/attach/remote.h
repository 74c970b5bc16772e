/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Controls one thread of another process by ptrace: stops it, changes its registers, and runs it
 * until it arrives at a place. The thread stops only at system calls and by PTRACE_INTERRUPT.
 * Breakpoints and single steps are never used: if the thread blocks SIGTRAP, the SIGTRAP of such a
 * stop resets the program's handler.
 *
 * Context: the thread that seized the other thread. Functions return 0 or -errno. -ESRCH means that
 * the seized thread has died, or has executed a new program.
 */
#ifndef PB_ATTACH_REMOTE_H
#define PB_ATTACH_REMOTE_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/user.h>
#include "base/sys.h"

#define ATTACH_MS 1000000ull
#define ATTACH_XSTATE_MAX 16384

struct attach_remote {
	pid_t pid, tid;		/* tid is 0 if no thread is traced */
	pid_t child;		/* a thread that this thread has created; 0: none. The new thread is
				 * traced, too, but its first stop wasn't waited for yet */
	bool running;		/* the thread isn't known to be in a ptrace stop */
	int signal;		/* the signal to deliver when the thread is resumed; 0: none */
};

/* The state that a borrowed thread gets back. */
struct attach_state {
	struct user_regs_struct regs;
	uint64_t mask;		/* the blocked signals. In a call like ppoll(), the mask that the
				 * thread has after the call */
	size_t xstate_size;
	uint8_t xstate[ATTACH_XSTATE_MAX] __attribute__((aligned(64)));
};

/* Seizes a running thread of the process `pid` and stops it. If the thread hasn't stopped by the
 * time `deadline`, returns -ETIMEDOUT. The thread then stays traced until the calling thread ends.
 * After an error the caller must release nothing. -ESRCH also means that the thread is no longer
 * traced, so another thread may be seized. */
int attach_remote_stop(struct attach_remote *t, pid_t pid, pid_t tid, uint64_t deadline);
/* Makes the kernel trace the threads, too, that the stopped thread makes from now on. If
 * attach_remote_stop() did this, a thread that the program makes just before that stop would stay
 * stopped for good. */
int attach_remote_follow(const struct attach_remote *t);
/* Waits for the first stop of a new thread, which the kernel has traced from its start, because its
 * creator is traced. */
int attach_remote_adopt(struct attach_remote *t, pid_t pid, pid_t tid, uint64_t deadline);
/* Moves a thread, stopped or running, to a stop by PTRACE_INTERRUPT, like its first stop. After the
 * release from such a stop, the kernel restarts an interrupted system call. */
int attach_remote_trap(struct attach_remote *t, uint64_t deadline);
/* Lets the thread go, from any state; does nothing if no thread is traced. A running thread is
 * stopped first. If the thread has died, waits until the calling process no longer traces it.
 * Returns -ETIMEDOUT if the thread is still traced after `patience_ns`. */
int attach_remote_release(struct attach_remote *t, uint64_t patience_ns);

/* Bounds the waits of the calling thread, besides their own deadlines. They end at the time
 * `until`, and at the time *limit, which another thread may change meanwhile. NULL: there is no
 * such limit. Waits without a deadline (UINT64_MAX) aren't bounded. */
void attach_remote_bound(uint64_t until, const _Atomic uint64_t *limit);
/* Whether these times have come. */
bool attach_remote_is_late(void);

int attach_remote_regs(const struct attach_remote *t, struct user_regs_struct *regs);
int attach_remote_set_regs(const struct attach_remote *t, const struct user_regs_struct *regs);
int attach_remote_set_mask(const struct attach_remote *t, uint64_t mask);
int attach_remote_save(const struct attach_remote *t, struct attach_state *state);
/* Restores all of the state except the general registers. */
int attach_remote_restore_mask(const struct attach_remote *t, const struct attach_state *state);

/* Reads the thread's seccomp filter with this index; the newest has the index 0. `to` has room for
 * BPF_MAXINSNS instructions. Returns the number of instructions, or -errno. -ENOENT: there is no
 * such filter. -EACCES: only root may read it. */
struct sock_filter;
int attach_remote_filter(const struct attach_remote *t, unsigned index, struct sock_filter *to);

/* Finds the thread's area of restartable sequences. Returns 0 if the thread has none, or if the
 * kernel can't report it. */
uint64_t attach_remote_rseq(const struct attach_remote *t);

/* A function that is called after each system call of a thread that runs. */
struct attach_watch {
	void (*called)(void *arg, const struct user_regs_struct *regs);
	void *arg;
};

/* Resumes the thread until it begins the system call whose instruction ends at `ip`, with the stack
 * pointer `sp`. Stores the number of the call. The thread is then stopped just before the call.
 * `watch` may be NULL. */
int attach_remote_run(struct attach_remote *t, uint64_t ip, uint64_t sp, uint64_t deadline,
		      const struct attach_watch *watch, uint64_t *number);
/* Resumes the thread t until it begins the system call whose instruction ends at `ip`, with the
 * stack pointer `sp`, and stores the number of the call. If t creates a thread, the new thread
 * runs meanwhile, until it begins a system call at the same instruction. *child_err gets 0 or
 * the new thread's error. The result is 0 or the error of t. */
int attach_remote_run_both(struct attach_remote *t, uint64_t sp, struct attach_remote *child,
			   uint64_t ip, uint64_t deadline, uint64_t *number, int *child_err);
/* Resumes the thread until it has made the system call whose instruction ends at `ip`. If ip is 0,
 * the thread must be stopped just before the call. Stores the call's result. */
int attach_remote_finish(struct attach_remote *t, uint64_t ip, uint64_t deadline,
			 int64_t *result);
/* Lets the thread run, without stops at its system calls, until is_done(arg) returns true. Then
 * stops the thread, wherever it is. is_done is called every half millisecond. */
int attach_remote_until(struct attach_remote *t, bool (*is_done)(const void *arg), const void *arg,
			uint64_t deadline);
#endif
