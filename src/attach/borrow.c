/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A thread that waits in a system call, and that the kernel can let wait on afterwards, holds none
 * of libc's locks that pthread_create() needs. Such a thread is stopped, and calls mmap() and
 * pthread_create() on the new memory. Then it gets its registers back, and the kernel restarts its
 * system call.
 *
 * pthread_create() returns into the code by which handlers return (rt_sigreturn), with a signal
 * frame on the scratch stack that holds the thread's own state. We stop the thread before that
 * call, and restore the state ourselves. But if this process dies meanwhile, the thread takes its
 * state from the frame, and goes on.
 */
#include <asm/sigcontext.h>
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

#include "attach/borrow.h"
#include "attach/fitness.h"
#include "base/base.h"

#define STOP_NS		20000000ull	/* how long a thread may take to stop */
#define CALL_NS		2000000000ull	/* how long mmap() or pthread_create() may take */
#define TRIES		200
#define TRY_NAP_NS	5000000
#define STACK_WORDS	1024		/* how far a stack is searched for the loader's code */
#define RESTART_FIRST	512		/* ERESTARTSYS ... ERESTART_RESTARTBLOCK */
#define RESTART_LAST	516
#define MAX_THREADS	4096

/* The system calls in which a thread is borrowed. The first ones are those of idle threads. */
static const long calls[] = {
	SYS_epoll_wait, SYS_epoll_pwait, SYS_poll, SYS_ppoll, SYS_select, SYS_pselect6,
	SYS_accept, SYS_accept4, SYS_rt_sigtimedwait, SYS_pause, SYS_clock_nanosleep,
	SYS_nanosleep, SYS_wait4, SYS_waitid, SYS_read, SYS_recvfrom, SYS_recvmsg, SYS_futex,
};

/* Returns the call's place in the list, or -1. */
static int rank_of(long nr)
{
	for (size_t i = 0; i < pb_array_size(calls); i++)
		if (calls[i] == nr)
			return (int)i;
	return -1;
}

/* ---- which thread ------------------------------------------------------------ */

/* Where a thread is. nr: its system call; -1: none. */
struct place {
	long nr;
	uint64_t sp, pc;
};

/* False: the thread runs, or is gone. */
static bool where_is(pid_t pid, pid_t tid, struct place *p)
{
	char path[64], text[256];
	unsigned long a[6];

	snprintf(path, sizeof(path), "/proc/%d/task/%d/syscall", (int)pid, (int)tid);
	FILE *f = fopen(path, "re");
	if (!f)
		return false;
	bool ok = fgets(text, sizeof(text), f) &&
		  sscanf(text, "%ld %lx %lx %lx %lx %lx %lx %lx %lx", &p->nr, &a[0], &a[1], &a[2],
			 &a[3], &a[4], &a[5], &p->sp, &p->pc) == 9;
	fclose(f);
	return ok;
}

/* Whether the thread may be in the middle of the dynamic loader's work. */
static bool in_loader(int mem, const struct pb_libc *l, const struct place *p)
{
	uint64_t stack[STACK_WORDS];
	ssize_t n = pread(mem, stack, sizeof(stack), (off_t)p->sp);

	if (pb_range_holds(&l->loader, p->pc))
		return true;
	if (p->nr != SYS_futex)
		return false;
	for (ssize_t i = 0; i < n / 8; i++)
		if (pb_range_holds(&l->loader, stack[i]))
			return true;
	return false;
}

struct candidates {
	struct { pid_t tid; int rank; } list[MAX_THREADS];
	unsigned nr;
};

static int compare(const void *a, const void *b)
{
	const int *x = a, *y = b;	/* {tid, rank} */

	return x[1] != y[1] ? x[1] - y[1] : y[0] - x[0];
}

/* Lists the threads that can be borrowed, the best first. The main thread is the last of its
 * rank. */
static int list_candidates(pid_t pid, int mem, const struct pb_libc *l, struct candidates *c)
{
	char path[40];
	struct dirent *e;

	snprintf(path, sizeof(path), "/proc/%d/task", (int)pid);
	DIR *dir = opendir(path);
	if (!dir)
		return -ESRCH;
	c->nr = 0;
	while ((e = readdir(dir)) && c->nr < MAX_THREADS) {
		pid_t tid = atoi(e->d_name);
		struct place p;

		if (tid <= 0 || !where_is(pid, tid, &p) || rank_of(p.nr) < 0 ||
		    in_loader(mem, l, &p))
			continue;
		c->list[c->nr].tid = tid;
		c->list[c->nr++].rank = rank_of(p.nr);
	}
	closedir(dir);
	qsort(c->list, c->nr, sizeof(c->list[0]), compare);
	return 0;
}

/* Whether the stopped thread still waits in such a call, and no signal is about to end the
 * wait. */
static bool may_borrow(const struct pb_remote *r, const struct user_regs_struct *regs)
{
	struct pb_status s;
	int64_t error = -(int64_t)regs->rax;

	return rank_of((long)regs->orig_rax) >= 0 &&
	       (error == EINTR || (error >= RESTART_FIRST && error <= RESTART_LAST)) &&
	       !pb_status_read(r->pid, r->tid, &s) && !(s.pending & ~s.blocked);
}

/* ---- calls in the borrowed thread ----------------------------------------------- */

/* Lets the thread run until it enters (or leaves) a system call. */
static int to_syscall(const struct pb_remote *r, pid_t *made)
{
	enum pb_remote_event event;
	uint64_t value;

	for (int signal = 0;;) {
		int ret = pb_remote_go(r, PTRACE_SYSCALL, signal);

		if (!ret)
			ret = pb_remote_wait(r, CALL_NS, &event, &value);
		if (ret || event == PB_REMOTE_SYSCALL)
			return ret;
		if (event == PB_REMOTE_CLONE && made)
			*made = (pid_t)value;
		/* all signals are blocked, so this one is a fault */
		if (event == PB_REMOTE_SIGNAL)
			return -EFAULT;
		signal = 0;
	}
}

static int map_scratch(const struct pb_remote *r, const struct pb_libc *l,
		       const struct user_regs_struct *saved, uint64_t *scratch)
{
	struct user_regs_struct regs = *saved;

	regs.orig_rax = ~0ull;
	regs.rip = l->call;
	regs.rax = SYS_mmap;
	regs.rdi = 0;
	regs.rsi = PB_SCRATCH;
	regs.rdx = PROT_READ | PROT_WRITE;
	regs.r10 = MAP_PRIVATE | MAP_ANONYMOUS;
	regs.r8 = ~0ull;
	regs.r9 = 0;
	int ret = pb_remote_set_regs(r, &regs);
	for (int i = 0; i < 2 && !ret; i++)	/* the call's entry and its exit */
		ret = to_syscall(r, NULL);
	if (!ret)
		ret = pb_remote_get_regs(r, &regs);
	*scratch = regs.rax;
	return ret ? ret : (int64_t)regs.rax < 0 && (int64_t)regs.rax > -4096 ? (int)regs.rax : 0;
}

/* Fills a signal frame's context with the thread's state. The interrupted system call is made
 * again. */
static void fill_context(ucontext_t *uc, const struct pb_remote_state *s)
{
	const struct user_regs_struct *g = &s->regs;
	greg_t *r = uc->uc_mcontext.gregs;
	const unsigned long long values[][2] = {
		{ REG_R8, g->r8 }, { REG_R9, g->r9 }, { REG_R10, g->r10 }, { REG_R11, g->r11 },
		{ REG_R12, g->r12 }, { REG_R13, g->r13 }, { REG_R14, g->r14 }, { REG_R15, g->r15 },
		{ REG_RDI, g->rdi }, { REG_RSI, g->rsi }, { REG_RBP, g->rbp }, { REG_RBX, g->rbx },
		{ REG_RDX, g->rdx }, { REG_RAX, g->orig_rax }, { REG_RCX, g->rcx },
		{ REG_RSP, g->rsp }, { REG_RIP, g->rip - 2 }, { REG_EFL, g->eflags },
		{ REG_CSGSFS, 0x002b000000000033ull },
	};

	for (size_t i = 0; i < pb_array_size(values); i++)
		r[values[i][0]] = (greg_t)values[i][1];
	memcpy(&uc->uc_sigmask, &s->mask, sizeof(s->mask));
	/* with invalid flags, the kernel leaves the thread's alternate stack as it is */
	uc->uc_stack.ss_flags = 0xffff;
}

/* Runs pthread_create(&id, NULL, getpid, NULL). The new thread begins with getpid(): it makes one
 * system call, at which it can be stopped, and would return and end if nobody stopped it. */
static int make_thread(const struct pb_remote *r, const struct pb_libc *l,
		       const struct pb_remote_state *s, struct pb_borrowed *b)
{
	struct { uint64_t restore; ucontext_t uc; } frame = { .restore = l->restore };
	uint64_t sp = ((b->scratch + PB_SCRATCH - sizeof(frame) - 1024) & ~15ul) - 8;
	struct user_regs_struct regs = s->regs;

	fill_context(&frame.uc, s);
	int ret = pb_remote_write(r, sp, &frame, sizeof(frame));
	regs.orig_rax = ~0ull;
	regs.rip = l->pthread_create;
	regs.rsp = sp;
	regs.rdi = b->scratch;
	regs.rsi = 0;
	regs.rdx = l->getpid;
	regs.rcx = 0;
	regs.rax = 0;
	regs.eflags &= ~0x400ull;	/* the direction flag */
	if (!ret)
		ret = pb_remote_set_regs(r, &regs);
	do {
		ret = ret ? ret : to_syscall(r, &b->tid);
		if (!ret)
			ret = pb_remote_get_regs(r, &regs);
	} while (!ret && !(regs.orig_rax == SYS_rt_sigreturn && regs.rip == l->restore + 9));
	if (ret)
		return ret;
	/* the thread is about to make the call rt_sigreturn: it makes none instead */
	regs.orig_rax = ~0ull;
	ret = pb_remote_set_regs(r, &regs);
	if (!ret && b->tid)
		ret = pb_remote_read(r, b->scratch, &b->id, sizeof(b->id));
	return ret ? ret : b->tid ? 0 : -EAGAIN;
}

/* Takes the thread to a stop at which the kernel looks whether a system call is to be restarted,
 * and gives it its state back. */
static int give_back(const struct pb_remote *r, const struct pb_remote_state *s)
{
	enum pb_remote_event event;
	uint64_t value;
	int ret = 0;

	do {
		if (ptrace(PTRACE_INTERRUPT, r->tid, NULL, NULL))
			ret = -errno;
		if (!ret)
			ret = pb_remote_go(r, PTRACE_CONT, 0);
		if (!ret)
			ret = pb_remote_wait(r, CALL_NS, &event, &value);
	} while (!ret && event != PB_REMOTE_TRAP);
	if (!ret)
		ret = pb_remote_restore(r, s);
	pb_remote_release(r);
	return ret;
}

static int use(const struct pb_remote *r, const struct pb_libc *l, struct pb_remote_state *s,
	       struct pb_borrowed *b, const char **why)
{
	int ret = pb_remote_set_mask(r, ~0ull);

	if (!ret)
		ret = map_scratch(r, l, &s->regs, &b->scratch);
	if (ret)
		*why = "has no memory left for another mapping";
	if (!ret) {
		ret = make_thread(r, l, s, b);
		if (ret)
			*why = "can't make another thread (RLIMIT_NPROC, pids.max, or memory)";
	}
	int back = give_back(r, s);
	return ret ? ret : back;
}

/* Tries one thread. -EAGAIN: it can't be borrowed now. */
static int try(struct pb_remote *r, const struct pb_libc *l, struct pb_remote_state *s,
	       struct pb_borrowed *b, const char **why)
{
	uint64_t begun = pb_remote_now();
	int ret = pb_remote_stop(r, STOP_NS);

	if (ret)
		return ret == -EPERM ? ret : -EAGAIN;
	ret = pb_remote_save(r, s);
	if (ret || !may_borrow(r, &s->regs)) {
		pb_remote_release(r);
		return -EAGAIN;
	}
	b->from = r->tid;
	ret = use(r, l, s, b, why);
	b->stop_ns = pb_remote_now() - begun;
	return ret == -EAGAIN ? -ENOMEM : ret;
}

int pb_borrow(pid_t pid, int mem, const struct pb_libc *l, struct pb_borrowed *b, const char **why)
{
	struct pb_remote_state *s = calloc(1, sizeof(*s));
	struct candidates *c = calloc(1, sizeof(*c));
	const struct timespec nap = { 0, TRY_NAP_NS };
	int ret = s && c ? -EAGAIN : -ENOMEM;

	*b = (struct pb_borrowed){ 0 };
	*why = "none of its threads waits in a system call in which it can be borrowed; try again";
	for (int i = 0; i < TRIES && ret == -EAGAIN; i++) {
		ret = list_candidates(pid, mem, l, c);
		for (unsigned k = 0; k < c->nr && (!ret || ret == -EAGAIN) && !b->tid; k++) {
			struct pb_remote r = { .pid = pid, .tid = c->list[k].tid, .mem = mem };

			ret = try(&r, l, s, b, why);
		}
		if (!ret && !b->tid)
			ret = -EAGAIN;
		if (ret == -EAGAIN)
			nanosleep(&nap, NULL);
	}
	if (ret == -ESRCH)
		*why = "has ended meanwhile";
	free(s);
	free(c);
	return ret;
}
