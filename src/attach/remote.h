/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Another process under ptrace: memory, registers, stops and calls of functions. All functions that
 * return int return 0 or -errno. Context: the thread that seized the tracee. */
#ifndef PB_ATTACH_REMOTE_H
#define PB_ATTACH_REMOTE_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/user.h>

#define PB_REMOTE_XSTATE 16384	/* room for the vector registers of any processor */

/* A thread that is stopped. */
struct pb_remote {
	pid_t pid, tid;
	int mem;		/* descriptor of /proc/PID/mem */
};

/* The state of a thread, to be restored exactly. */
struct pb_remote_state {
	struct user_regs_struct regs;
	uint64_t mask;
	size_t xstate_size;
	uint8_t xstate[PB_REMOTE_XSTATE] __attribute__((aligned(64)));
};

/* What a stopped thread reports. */
enum pb_remote_event {
	PB_REMOTE_TRAP,		/* PTRACE_INTERRUPT, or the first stop of a new thread */
	PB_REMOTE_SYSCALL,	/* the entry or the exit of a system call */
	PB_REMOTE_CLONE,	/* it has made a thread, whose TID is the value */
	PB_REMOTE_SIGNAL,	/* it is about to get a signal; the value is the signal's number */
	PB_REMOTE_GROUP_STOP,	/* the process is being stopped, as by SIGSTOP */
};

int pb_remote_read(const struct pb_remote *r, uint64_t at, void *to, size_t size);
int pb_remote_write(const struct pb_remote *r, uint64_t at, const void *from, size_t size);
/* Reads a string that ends within `size` bytes; cuts a longer one. */
int pb_remote_read_string(const struct pb_remote *r, uint64_t at, char *to, size_t size);

int pb_remote_get_regs(const struct pb_remote *r, struct user_regs_struct *regs);
int pb_remote_set_regs(const struct pb_remote *r, const struct user_regs_struct *regs);
int pb_remote_save(const struct pb_remote *r, struct pb_remote_state *s);
int pb_remote_restore(const struct pb_remote *r, const struct pb_remote_state *s);
int pb_remote_set_mask(const struct pb_remote *r, uint64_t mask);

/* Waits for the thread's next stop. -ESRCH: the thread has ended. -ETIMEDOUT: it hasn't stopped
 * within ns nanoseconds. */
int pb_remote_wait(const struct pb_remote *r, uint64_t ns, enum pb_remote_event *event,
		   uint64_t *value);
/* Lets the thread go on: request is PTRACE_CONT or PTRACE_SYSCALL; signal: 0, or the signal that it
 * gets. */
int pb_remote_go(const struct pb_remote *r, int request, int signal);
/* Seizes the thread, interrupts it, and waits until it has stopped. -EAGAIN: it was about to get a
 * signal or is stopped by one; it runs on, and isn't traced any more. */
int pb_remote_stop(struct pb_remote *r, uint64_t ns);
/* Lets the thread run untraced. If the stop has ended a system call with EINTR, the call is made
 * again. */
void pb_remote_release(const struct pb_remote *r);
uint64_t pb_remote_now(void);
#endif
