/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A thread of the agent makes its descriptor table by close_range(CLOSE_RANGE_UNSHARE):
 * the kernel copies only descriptors that aren't to be closed. So the new table
 * never keeps a pipe open that the program has closed.
 */
#include <asm/errno.h>
#include <linux/close_range.h>
#include <linux/futex.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>
#include "engine/process/aside.h"
#include "arch/arch.h"
#include "base/pages.h"
#include "base/sys.h"

#define STACK_SIZE	(64ul << 10)
#define GONE_ITERATIONS	100000		/* how often it is checked whether a thread has left the
					 * process */
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

static void wait_while(uint32_t *word, uint32_t value)
{
	while (__atomic_load_n(word, __ATOMIC_ACQUIRE) == value)
		pb_sys(SYS_futex, word, FUTEX_WAIT, value, NULL, NULL, 0);
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

static long start(struct start *s, uint8_t *top, unsigned long flags)
{
	uint64_t all = ~0ul, old;
	long tid;

	pb_sys(SYS_rt_sigprocmask, SIG_SETMASK, &all, &old, 8);
	tid = pb_clone(CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD |
		       CLONE_SYSVSEM | flags, top, thread, s, &alive);
	pb_sys(SYS_rt_sigprocmask, SIG_SETMASK, &old, NULL, 8);
	return tid;
}

/* When `alive` is cleared, the thread may still count as a thread of the process. As long as it
 * counts, the kernel refuses system calls that only a single-threaded process may make. */
static void wait_until_gone(long tid)
{
	long pid = pb_sys(SYS_getpid);

	for (int i = 0; i < GONE_ITERATIONS && !pb_sys(SYS_tgkill, pid, tid, 0); i++)
		pb_sys(SYS_sched_yield);
}

bool pb_aside(void (*fn)(void *arg), void *arg)
{
	struct start s = { .once = fn, .arg = arg, .fd = -1 };
	long tid;

	alive = 1;
	tid = start(&s, stack + sizeof(stack), CLONE_CHILD_CLEARTID);
	if (pb_sys_failed(tid))
		return false;
	wait_while(&alive, 1);
	wait_until_gone(tid);
	return s.state == OWN_TABLE;
}

long pb_aside_stay(int (*fn)(void *arg), void *arg, int fd)
{
	struct start s = { .stay = fn, .arg = arg, .fd = fd };
	long own_stack = pb_pages_map(0, STACK_SIZE, PROT_READ | PROT_WRITE,
				      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	long tid;

	if (pb_sys_failed(own_stack))
		return own_stack;
	tid = start(&s, (uint8_t *)own_stack + STACK_SIZE, 0);
	if (pb_sys_failed(tid)) {
		pb_pages_unmap((uint64_t)own_stack, STACK_SIZE);
		return tid;
	}
	wait_while(&s.state, STARTS);
	return s.state == OWN_TABLE ? tid : -ENOSYS;
}
