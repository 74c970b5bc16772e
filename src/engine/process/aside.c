/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Starts threads of the agent (aside.h). Such a thread gets its own descriptor table by
 * close_range(CLOSE_RANGE_UNSHARE). The kernel copies no descriptor above the one that the thread
 * needs, and the thread closes those below it at once. So if the program closes a pipe, the new
 * table doesn't keep the pipe open.
 */
#include <asm/errno.h>
#include <linux/close_range.h>
#include <linux/futex.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>
#include "engine/process/aside.h"
#include "arch/arch.h"
#include "base/pages.h"
#include "base/sys.h"
#include "engine/graph/thread_state.h"

#define STACK_SIZE	(64ul << 10)
#define GONE_NS		2000000000ul	/* how long to wait for a thread to leave the process */
#define GONE_YIELDS	100		/* number of checks with a yield, before checks sleep */
#define GONE_SLEEP_NS	100000
#define FORK_CHECK_NS	100000000	/* how often a wait checks whether it is in a child */
#ifndef SYS_close_range
#define SYS_close_range 436
#endif

enum { STARTS, OWN_TABLE, NO_TABLE };

struct start {
	void (*once)(void *arg);
	int (*stay)(void *arg);
	void *arg;
	int fd;			/* the descriptor to keep open; -1: none */
	uint32_t state;		/* state of the descriptor table: STARTS, ... */
};

static uint8_t stack[STACK_SIZE] __attribute__((aligned(16)));
static uint32_t alive;		/* the kernel clears it when the thread has ended */

static bool own_table(int fd)
{
	if (pb_sys(SYS_close_range, fd + 1, ~0u, CLOSE_RANGE_UNSHARE))
		return false;
	return fd <= 0 || !pb_sys(SYS_close_range, 0, fd - 1, 0);
}

static void set_state(struct start *s, uint32_t state)
{
	__atomic_store_n(&s->state, state, __ATOMIC_RELEASE);
	pb_sys(SYS_futex, &s->state, FUTEX_WAKE, 1, NULL, NULL, 0);
}

/* The process that waits. If a signal handler forks, the child waits, too, but doesn't have the
 * thread that would end the wait. So a waiter checks whether it is in a child. A child in a PID
 * namespace of its own may have its parent's PID, but has another epoch. */
struct waiter {
	long pid;
	uint32_t epoch;
};

static bool is_child(const struct waiter *w)
{
	return *(volatile uint32_t *)&pb_process->epoch != w->epoch ||
	       pb_sys(SYS_getpid) != w->pid;
}

/* Waits as long as the word has this value. Returns 0, or -EINTR in a forked child. Each wait in
 * the kernel has a time limit. Without a limit, the kernel would restart the wait after some
 * handlers, and a child would wait forever. */
static int wait_while(uint32_t *word, uint32_t value, const struct waiter *w)
{
	const struct { long sec, nsec; } limit = { 0, FORK_CHECK_NS };

	while (__atomic_load_n(word, __ATOMIC_ACQUIRE) == value) {
		if (is_child(w))
			return -EINTR;
		pb_sys(SYS_futex, word, FUTEX_WAIT, value, &limit, NULL, 0);
	}
	return 0;
}

static int thread(void *arg)
{
	struct start *s = arg;
	int (*stay)(void *) = s->stay;
	void *stay_arg = s->arg;
	bool own = own_table(s->fd);

	if (stay) {
		set_state(s, own ? OWN_TABLE : NO_TABLE);
		return own ? stay(stay_arg) : 0;
	}
	if (own)
		s->once(s->arg);
	s->state = own ? OWN_TABLE : NO_TABLE;
	return 0;
}

/* Returns the thread's TID, or -errno. -EINTR: this is a forked child, and its agent's state hasn't
 * been made so far. The flags leave out CLONE_UNTRACED, so that a debugger of the program also
 * traces the thread. The debugger sets a breakpoint in a function that the thread calls
 * (base/debugger.c). In an untraced thread, the breakpoint's signal would kill the program. */
static long start(struct start *s, uint8_t *top, unsigned long flags, struct waiter *w)
{
	uint64_t all = ~0ul, old;
	long tid = -EINTR;

	pb_sys(SYS_rt_sigprocmask, SIG_SETMASK, &all, &old, 8);
	/* all signals are blocked, so no handler forks between this and the clone() */
	*w = (struct waiter){ pb_sys(SYS_getpid), pb_process->epoch };
	if (w->epoch)
		tid = pb_clone(CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD |
			       CLONE_SYSVSEM | flags, top, thread, s, &alive);
	pb_sys(SYS_rt_sigprocmask, SIG_SETMASK, &old, NULL, 8);
	return tid;
}

/* Waits, for GONE_NS at most, until the thread doesn't count as a thread of the process any more.
 * It may still count when `alive` is cleared. As long as it counts, the kernel refuses unshare()
 * and setns() with namespaces that only a single-threaded process may change. Under ptrace, the
 * thread counts until the ptracer has waited for it. */
static int wait_until_gone(long tid, const struct waiter *w)
{
	const struct { long sec, nsec; } nap = { 0, GONE_SLEEP_NS };
	uint64_t end = pb_now_ns() + GONE_NS, action[4];

	for (int i = 0; !pb_sys(SYS_tgkill, w->pid, tid, 0) && pb_now_ns() < end; i++) {
		if (is_child(w))
			return -EINTR;
		if (i < GONE_YIELDS)
			pb_sys(SYS_sched_yield);
		else
			pb_sys(SYS_nanosleep, &nap, NULL);
	}
	/* The TID is freed first, then the thread stops counting. The kernel does both under the
	 * lock of the signal dispositions. This call takes that lock, so it returns after both. */
	pb_sys(SYS_rt_sigaction, SIGHUP, NULL, action, 8);
	return is_child(w) ? -EINTR : 0;
}

int pb_aside(void (*fn)(void *arg), void *arg)
{
	struct start s = { .once = fn, .arg = arg, .fd = -1 };
	struct waiter w;
	long tid;
	int err;

	alive = 1;
	tid = start(&s, stack + sizeof(stack), CLONE_CHILD_CLEARTID, &w);
	if (pb_sys_failed(tid))
		return is_child(&w) ? -EINTR : (int)tid;
	err = wait_while(&alive, 1, &w);
	if (!err)
		err = wait_until_gone(tid, &w);
	if (err)
		return err;
	return s.state == OWN_TABLE ? 0 : -ENOSYS;
}

long pb_aside_stay(int (*fn)(void *arg), void *arg, int fd)
{
	struct start s = { .stay = fn, .arg = arg, .fd = fd };
	struct waiter w;
	long own_stack = pb_pages_map(0, STACK_SIZE, PROT_READ | PROT_WRITE,
				      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	long tid;

	if (pb_sys_failed(own_stack))
		return own_stack;
	tid = start(&s, (uint8_t *)own_stack + STACK_SIZE, 0, &w);
	if (pb_sys_failed(tid)) {
		pb_pages_unmap((uint64_t)own_stack, STACK_SIZE);
		return tid;
	}
	if (wait_while(&s.state, STARTS, &w))
		return -EINTR;
	return s.state == OWN_TABLE ? tid : -ENOSYS;
}
