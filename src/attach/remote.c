/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The ptrace requests that the injection needs. waitpid() has no time limit, so a wait asks again
 * and again, first without a pause: a thread that only has to come to its next stop takes some
 * microseconds, and the program waits for it.
 */
#include <elf.h>
#include <errno.h>
#include <sched.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "attach/remote.h"

#define SPINS		2000
#define NAP_NS		50000
#define LATE		1000		/* how much longer than its limit a stop is waited for */
#define ERESTARTNOHAND	514

#ifndef PTRACE_EVENT_STOP
#define PTRACE_EVENT_STOP 128
#endif

uint64_t pb_remote_now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

static int trace(int request, pid_t tid, void *addr, void *data)
{
	return ptrace((enum __ptrace_request)request, tid, addr, data) < 0 ? -errno : 0;
}

int pb_remote_read(const struct pb_remote *r, uint64_t at, void *to, size_t size)
{
	ssize_t n = pread(r->mem, to, size, (off_t)at);

	return n == (ssize_t)size ? 0 : n < 0 ? -errno : -EFAULT;
}

int pb_remote_write(const struct pb_remote *r, uint64_t at, const void *from, size_t size)
{
	ssize_t n = pwrite(r->mem, from, size, (off_t)at);

	return n == (ssize_t)size ? 0 : n < 0 ? -errno : -EFAULT;
}

int pb_remote_read_string(const struct pb_remote *r, uint64_t at, char *to, size_t size)
{
	size_t n = 0;
	int ret = 0;

	while (n + 1 < size && !(ret = pb_remote_read(r, at + n, to + n, 1)) && to[n])
		n++;
	to[n] = 0;
	return n ? 0 : ret;
}

int pb_remote_get_regs(const struct pb_remote *r, struct user_regs_struct *regs)
{
	struct iovec v = { regs, sizeof(*regs) };

	return trace(PTRACE_GETREGSET, r->tid, (void *)NT_PRSTATUS, &v);
}

int pb_remote_set_regs(const struct pb_remote *r, const struct user_regs_struct *regs)
{
	struct iovec v = { (void *)regs, sizeof(*regs) };

	return trace(PTRACE_SETREGSET, r->tid, (void *)NT_PRSTATUS, &v);
}

int pb_remote_set_mask(const struct pb_remote *r, uint64_t mask)
{
	return trace(PTRACE_SETSIGMASK, r->tid, (void *)sizeof(mask), &mask);
}

int pb_remote_save(const struct pb_remote *r, struct pb_remote_state *s)
{
	struct iovec v = { s->xstate, sizeof(s->xstate) };
	int ret = pb_remote_get_regs(r, &s->regs);

	if (!ret)
		ret = trace(PTRACE_GETSIGMASK, r->tid, (void *)sizeof(s->mask), &s->mask);
	if (!ret)
		ret = trace(PTRACE_GETREGSET, r->tid, (void *)NT_X86_XSTATE, &v);
	s->xstate_size = v.iov_len;
	return ret;
}

int pb_remote_restore(const struct pb_remote *r, const struct pb_remote_state *s)
{
	struct iovec v = { (void *)s->xstate, s->xstate_size };
	int ret = trace(PTRACE_SETREGSET, r->tid, (void *)NT_X86_XSTATE, &v);
	int regs = pb_remote_set_regs(r, &s->regs), mask = pb_remote_set_mask(r, s->mask);

	return ret ? ret : regs ? regs : mask;
}

static bool is_stop_signal(int sig)
{
	return sig == SIGSTOP || sig == SIGTSTP || sig == SIGTTIN || sig == SIGTTOU;
}

static int event_of(const struct pb_remote *r, int status, enum pb_remote_event *event,
		    uint64_t *value)
{
	int sig = WSTOPSIG(status), which = status >> 16;
	unsigned long message = 0;

	*value = (uint64_t)sig;
	if (which == PTRACE_EVENT_STOP) {
		*event = is_stop_signal(sig) ? PB_REMOTE_GROUP_STOP : PB_REMOTE_TRAP;
	} else if (which == PTRACE_EVENT_CLONE) {
		*event = PB_REMOTE_CLONE;
		int ret = trace(PTRACE_GETEVENTMSG, r->tid, NULL, &message);
		*value = message;
		return ret;
	} else {
		*event = sig == (SIGTRAP | 0x80) ? PB_REMOTE_SYSCALL : PB_REMOTE_SIGNAL;
	}
	return 0;
}

int pb_remote_wait(const struct pb_remote *r, uint64_t ns, enum pb_remote_event *event,
		   uint64_t *value)
{
	uint64_t end = pb_remote_now() + ns;
	struct timespec nap = { 0, NAP_NS };

	for (unsigned i = 0;; i++) {
		int status;
		pid_t got = waitpid(r->tid, &status, __WALL | WNOHANG);

		if (got < 0 && errno != EINTR)
			return -ESRCH;
		if (got > 0)
			return WIFSTOPPED(status) ? event_of(r, status, event, value) : -ESRCH;
		if (i < SPINS) {
			sched_yield();
			continue;
		}
		if (pb_remote_now() > end)
			return -ETIMEDOUT;
		nanosleep(&nap, NULL);
	}
}

int pb_remote_go(const struct pb_remote *r, int request, int signal)
{
	return trace(request, r->tid, NULL, (void *)(long)signal);
}

void pb_remote_release(const struct pb_remote *r)
{
	struct user_regs_struct regs;

	/* epoll_wait() and similar calls return EINTR after any wake-up. ERESTARTNOHAND, the
	 * kernel's own error for "restart, unless a handler runs", hides the stop. */
	if (!pb_remote_get_regs(r, &regs) && (int64_t)regs.orig_rax >= 0 &&
	    (int64_t)regs.rax == -EINTR) {
		regs.rax = (uint64_t)-ERESTARTNOHAND;
		pb_remote_set_regs(r, &regs);
	}
	trace(PTRACE_DETACH, r->tid, NULL, NULL);
}

int pb_remote_stop(struct pb_remote *r, uint64_t ns)
{
	long options = PTRACE_O_TRACESYSGOOD | PTRACE_O_TRACECLONE;
	enum pb_remote_event event;
	uint64_t value;
	int ret = trace(PTRACE_SEIZE, r->tid, NULL, (void *)options);

	if (ret)
		return ret;
	trace(PTRACE_INTERRUPT, r->tid, NULL, NULL);
	ret = pb_remote_wait(r, ns, &event, &value);
	bool late = ret == -ETIMEDOUT;
	if (late)	/* it can be released only when it has stopped */
		ret = pb_remote_wait(r, LATE * ns, &event, &value);
	if (ret || (!late && event == PB_REMOTE_TRAP))
		return ret;
	if (event == PB_REMOTE_SIGNAL)
		trace(PTRACE_DETACH, r->tid, NULL, (void *)value);
	else
		pb_remote_release(r);
	return -EAGAIN;
}
