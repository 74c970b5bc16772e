/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The helper, which stops the threads of the program (stop.c).
 *
 * A thread may execute a program while the helper seizes threads. The kernel then kills all other
 * threads, and waits until each of them has been reaped. A killed thread that is traced stays a
 * zombie until its tracer waits for it. Meanwhile the executing thread holds a lock that
 * PTRACE_SEIZE takes. So the helper must not just wait in PTRACE_SEIZE:
 *
 *   helper                      executing thread             a thread that is seized already
 *   ------                      ----------------             -------------------------------
 *                               takes the lock
 *                               kills the others  -------->  is a zombie
 *   PTRACE_SEIZE waits          waits for the zombie
 *   for the lock
 *   SIGALRM: wait4()  --------------------------------->     is gone
 *                               the exec goes on, and
 *   PTRACE_SEIZE returns <----  releases the lock
 *
 * So the helper has a timer, and the handler of its signal waits for zombies (reap()). The signal
 * interrupts PTRACE_SEIZE, and the kernel starts it again after the handler. The helper is a
 * process of its own, so its handler and its timer aren't those of the program.
 *
 * Circle: stop.c, which makes the helper, has the variables of arch.h that describe stops.
 */
#include <asm/errno.h>
#include <elf.h>
#include <linux/futex.h>
#include <signal.h>
#include <stdbool.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>
#include "abi/messages.h"
#include "arch/x86_64/signal_frames.h"
#include "arch/x86_64/stop_helper.h"
#include "arch/x86_64/vm_users.h"
#include "base/ptrace_right.h"
#include "base/base.h"
#include "base/dumpable.h"
#include "base/mem.h"
#include "base/sys.h"

#define MAX_TASKS	8192
#define LATE_NS		50000000ull	/* after a failed stop: the wait for late threads, in
					 * total */
#define LATE_MOST_NS	2000000000ull	/* the longest wait for late threads that are runnable */
#define REAP_US		20000		/* how long the helper waits in PTRACE_SEIZE until it looks
					 * for zombies */
#define ERESTARTNOHAND	514

#ifndef PTRACE_EVENT_STOP
#define PTRACE_EVENT_STOP 128
#endif
#ifndef SA_RESTORER
#define SA_RESTORER 0x04000000
#endif

struct task {
	uint32_t tid;
	uint32_t signal;	/* the signal that the thread was about to get; 0: none */
	bool seized, stopped, gone;
};

uint32_t pb_helper_state;
struct pb_stopped pb_stop_places[PB_STOP_PLACES];
size_t pb_stop_nr_places;
static struct task tasks[MAX_TASKS];
static unsigned nr_tasks;
static bool seizing;	/* the helper may be waiting in PTRACE_SEIZE */

static long trace(long request, uint32_t tid, void *addr, void *data)
{
	return pb_sys(SYS_ptrace, request, tid, addr, data);
}

static bool known_task(uint32_t tid)
{
	for (unsigned i = 0; i < nr_tasks; i++)
		if (tasks[i].tid == tid)
			return true;
	return false;
}

/* Threads that stay running: the agent's thread, and a thread that has to call stopped(). Usually
 * they are the same. But the thread that starts the agent's thread may not have stored
 * pb_agent_tid yet. */
static bool stays(const struct pb_stop_job *job, uint32_t tid)
{
	return tid == pb_agent_tid || (job->s->stopped && tid == job->tid);
}

/* Takes the news of a thread that the helper has seized. False: there are none. */
static bool take_news(struct task *t)
{
	int status;
	long r = pb_sys(SYS_wait4, t->tid, &status, __WALL | WNOHANG, NULL);

	if (r == 0)
		return false;
	if (r < 0 || WIFEXITED(status) || WIFSIGNALED(status)) {
		t->gone = true;
	} else if (WIFSTOPPED(status)) {
		t->stopped = true;
		/* a signal stopped it, not the helper's interrupt */
		if (status >> 16 != PTRACE_EVENT_STOP)
			t->signal = (uint32_t)WSTOPSIG(status);
	}
	return true;
}

/* The handler of SIGALRM. */
static void reap(int sig)
{
	if (!__atomic_load_n(&seizing, __ATOMIC_RELAXED))
		return;
	for (unsigned i = 0; i < nr_tasks; i++)
		if (tasks[i].seized && !tasks[i].gone)
			take_news(&tasks[i]);
}

/* The handler returns to this code. */
static __attribute__((naked)) void restorer(void)
{
	__asm__("mov	%0, %%eax\n\tsyscall" :: "i"(SYS_rt_sigreturn));
}

static void set_timer(suseconds_t us)
{
	const struct itimerval timer = { { 0, us }, { 0, us } };
	const uint64_t alarm = 1ul << (SIGALRM - 1);

	pb_sys(SYS_rt_sigprocmask, us ? SIG_UNBLOCK : SIG_BLOCK, &alarm, NULL, 8);
	pb_sys(SYS_setitimer, ITIMER_REAL, &timer, NULL);
}

static void handle_timer(void)
{
	const struct {
		void (*handler)(int sig);
		uint64_t flags;
		void (*restorer)(void);
		uint64_t mask;
	} action = { reap, SA_RESTORER, restorer, ~0ul };

	pb_sys(SYS_rt_sigaction, SIGALRM, &action, NULL, 8);
}

static void seize(struct task *t)
{
	__atomic_store_n(&seizing, true, __ATOMIC_RELAXED);
	t->seized = !trace(PTRACE_SEIZE, t->tid, NULL, NULL);
	__atomic_store_n(&seizing, false, __ATOMIC_RELAXED);
	t->gone = !t->seized;
	if (t->seized)
		trace(PTRACE_INTERRUPT, t->tid, NULL, NULL);
}

static int seize_new(const struct pb_stop_job *job, bool *any)
{
	static char buf[32768] __attribute__((aligned(8)));
	long fd = job->dirs->task, n = pb_sys(SYS_lseek, fd, 0, SEEK_SET);

	*any = false;
	if (n)
		return (int)n;
	while ((n = pb_sys(SYS_getdents64, fd, buf, sizeof(buf))) > 0) {
		for (long at = 0; at < n; at += *(uint16_t *)(buf + at + 16)) {
			const char *name = buf + at + 19;
			int64_t tid = pb_parse_u64(name, strlen(name));
			struct task *t = &tasks[nr_tasks];

			if (tid <= 0 || stays(job, (uint32_t)tid) || known_task((uint32_t)tid))
				continue;
			if (nr_tasks == MAX_TASKS)
				return -E2BIG;
			*t = (struct task){ .tid = (uint32_t)tid };
			nr_tasks++;
			*any = true;
			seize(t);
		}
	}
	return (int)n;
}

/* Returns whether a thread that could not be seized may still run. A leader that ended before the
 * other threads doesn't run: it stays as a zombie. If the state isn't known, for example because no
 * descriptor is left, the thread may run. */
static bool may_run(const struct pb_stop_job *job, uint32_t tid)
{
	char state = pb_task_state(job->dirs->task, tid);

	return state != 'X' && state != 'Z';
}

static int wait_task(struct task *t, uint64_t deadline)
{
	while (t->seized && !t->stopped && !t->gone) {
		if (take_news(t))
			continue;
		if (pb_now_ns() > deadline)
			return -EAGAIN;
		pb_sys(SYS_sched_yield);
	}
	return 0;
}

/* Waits until the thread stops, but no longer than until the deadline. If the thread is runnable at
 * the deadline, the deadline moves by STOP_NS, but not beyond `most`. A runnable thread stops as
 * soon as it gets a processor. A thread that waits in the kernel, for example for its vfork child,
 * may not stop for a long time. */
static int wait_runnable(const struct pb_stop_job *job, struct task *t, uint64_t deadline,
			 uint64_t most)
{
	int err;

	while ((err = wait_task(t, deadline)) && deadline < most &&
	       pb_task_state(job->dirs->task, t->tid) == 'R') {
		deadline = pb_now_ns() + STOP_NS;
		if (deadline > most)
			deadline = most;
	}
	return err;
}

static int wait_stopped(const struct pb_stop_job *job, uint64_t deadline, uint64_t most)
{
	int err = 0;

	for (unsigned i = 0; i < nr_tasks && !err; i++)
		err = wait_runnable(job, &tasks[i], deadline, most);
	return err;
}

static int shared(struct pb_stop_job *job)
{
	job->shared = true;
	job->why = "another process shares the memory (a vfork child?)";
	return -EAGAIN;
}

/* Returns whether the thread that requested the stop is gone, because the process was killed, has
 * ended, or has executed a program. In this case no thread answers the helper any more, and a
 * stopped thread may run another program. */
static bool caller_is_gone(const struct pb_stop_job *job)
{
	char state = pb_task_state(job->dirs->task, job->tid);

	return state == 'X' || state == 'Z';
}

static int stop_new(struct pb_stop_job *job)
{
	uint64_t start = pb_now_ns();
	bool any;

	nr_tasks = 0;
	do {
		int err = seize_new(job, &any);

		if (!err)
			err = wait_stopped(job, start + STOP_NS, start + job->most);
		job->late = err == -EAGAIN;
		if (err)
			return err;
	} while (any);
	return 0;
}

static int stop_all(struct pb_stop_job *job)
{
	int err;

	set_timer(REAP_US);
	err = stop_new(job);
	set_timer(0);
	if (err == -E2BIG)
		job->why = "it has too many threads";
	/* for a moment, a thread that ends can't be seized */
	for (unsigned i = 0; i < nr_tasks && !err; i++)
		if (!tasks[i].seized && may_run(job, tasks[i].tid)) {
			job->why = pb_ptrace_right_lack(job->dirs->task, tasks[i].tid);
			err = -EAGAIN;
		}
	return err;
}

/* Lets the stopped threads go on. Each DETACH wakes a thread, which may get the helper's processor
 * at once, and then the rest of the threads stay stopped for some milliseconds. So if the helper is
 * about to exit (at_exit), the threads without a signal are left to the kernel, which detaches all
 * of them at once. */
static void release_all(bool at_exit)
{
	for (unsigned i = 0; i < nr_tasks; i++)
		if (tasks[i].stopped && (tasks[i].signal || !at_exit))
			trace(PTRACE_DETACH, tasks[i].tid, NULL, (void *)(uint64_t)tasks[i].signal);
}

/* Returns whether pc is inside the bytes that a patch of this group replaces. The patch's first
 * byte counts as inside if `first` is set, and always if the patch is in a trampoline slot. */
static bool inside(const struct pb_stop_job *job, uint64_t pc, bool first)
{
	size_t lo = 0, hi = job->nr;

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;

		if (job->p[mid].addr < pc + (first || job->p[mid].slot))
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo && pc - job->p[lo - 1].addr < job->p[lo - 1].len;
}

static uint64_t new_pc(const struct pb_stop_job *job, uint64_t pc)
{
	return inside(job, pc, false) ? job->s->moved(pc) : 0;
}

static void note_place(const struct pb_stop_job *job, uint64_t pc, uint64_t sp)
{
	if (!job->s->ours || !job->s->ours(pc))
		return;
	if (pb_stop_nr_places < PB_STOP_PLACES)
		pb_stop_places[pb_stop_nr_places] = (struct pb_stopped){ pc, sp };
	pb_stop_nr_places++;
}

struct frames {
	const struct pb_stop_job *job;
	bool move;
};

static bool fix_frame(void *arg, const struct pb_signal_frame *frame)
{
	const struct frames *f = arg;
	uint64_t pc = *frame->rip, to;

	if (!f->move)
		return inside(f->job, pc, frame->fault);
	to = new_pc(f->job, pc);
	if (!to && frame->fault && inside(f->job, pc, true))
		to = f->job->s->moved_fault(pc);
	if (to)
		*frame->rip = to;
	note_place(f->job, *frame->rip, frame->sp);
	return false;
}

/* Moves PCs in signal frames, to which handlers will return, if they are inside bytes to be
 * replaced. If `move` is false, only returns whether there is such a PC. If an instruction has
 * raised the signal, the first of these bytes counts, too: the handler may skip the instruction
 * that begins there. */
static bool fix_frames(const struct pb_stop_job *job, const struct user_regs_struct *regs,
		       bool move)
{
	struct frames f = { job, move };

	return pb_signal_frames(regs, fix_frame, &f);
}

/* Returns whether a handler has interrupted bytes that are to be replaced. In this case it is
 * better to wait for the handler's end. The handler may read the PC in its frame, and the stop
 * would change that PC. The handler may also set the PC to an address in text that has changed
 * meanwhile. */
static bool handlers_inside(const struct pb_stop_job *job)
{
	struct user_regs_struct regs;
	struct iovec iov = { &regs, sizeof(regs) };

	for (unsigned i = 0; i < nr_tasks; i++)
		if (tasks[i].stopped &&
		    !trace(PTRACE_GETREGSET, tasks[i].tid, (void *)NT_PRSTATUS, &iov) &&
		    fix_frames(job, &regs, false))
			return true;
	return false;
}

static void fix_thread(const struct pb_stop_job *job, const struct task *t)
{
	struct user_regs_struct regs;
	struct iovec iov = { &regs, sizeof(regs) };
	uint64_t pc;
	bool changed = false;

	if (trace(PTRACE_GETREGSET, t->tid, (void *)NT_PRSTATUS, &iov))
		return;
	pc = new_pc(job, regs.rip);
	if (pc) {
		regs.rip = pc;
		changed = true;
	}
	/* epoll_wait and similar calls return EINTR after any wake-up. With ERESTARTNOHAND, its own
	 * error for "restart, unless a handler runs", the kernel restarts them. So the program
	 * doesn't notice the stop. close() is different: it has closed the descriptor although it
	 * returns EINTR. */
	if (!t->signal && (int64_t)regs.orig_rax >= 0 && regs.orig_rax != SYS_close &&
	    (int64_t)regs.rax == -EINTR) {
		regs.rax = (uint64_t)-ERESTARTNOHAND;
		changed = true;
	}
	if (changed)
		trace(PTRACE_SETREGSET, t->tid, (void *)NT_PRSTATUS, &iov);
	note_place(job, regs.rip, regs.rsp);
	/* if the stop is patient, no handler has interrupted bytes to be replaced */
	if ((job->nr && !job->patient) || job->s->ours)
		fix_frames(job, &regs, true);
}

/* Restarts system calls of threads that had not stopped when the stop was given up. The helper's
 * interrupt still ends their epoll_wait and similar calls with EINTR. So the helper waits for each
 * of these threads alone, and restarts the thread's call. */
static void mend_late(const struct pb_stop_job *job)
{
	uint64_t start = pb_now_ns();

	for (unsigned i = 0; i < nr_tasks; i++) {
		struct task *t = &tasks[i];

		if (!t->seized || t->stopped || t->gone ||
		    wait_runnable(job, t, start + LATE_NS, start + LATE_MOST_NS) || t->gone)
			continue;
		if (caller_is_gone(job))
			return;
		fix_thread(job, t);
		trace(PTRACE_DETACH, t->tid, NULL, (void *)(uint64_t)t->signal);
	}
}

/* Asks the thread that requested the stop to call stopped(), and waits until the thread has done
 * so. */
static int ask(const struct pb_stop_job *job)
{
	uint64_t look_at = pb_now_ns() + STOP_NS, now;

	if (pb_stop_nr_places > PB_STOP_PLACES)
		return -EAGAIN;
	__atomic_store_n(&pb_helper_state, PB_HELPER_ASKS, __ATOMIC_RELEASE);
	pb_sys(SYS_futex, &pb_helper_state, FUTEX_WAKE, 1, NULL, NULL, 0);
	while (__atomic_load_n(&pb_helper_state, __ATOMIC_ACQUIRE) == PB_HELPER_ASKS) {
		pb_sys(SYS_sched_yield);
		now = pb_now_ns();
		if (now < look_at)
			continue;
		if (caller_is_gone(job))
			return -ESRCH;
		look_at = now + STOP_NS;
	}
	return job->answer;
}

static int stop_and_write(struct pb_stop_job *job)
{
	int err = stop_all(job);

	if (caller_is_gone(job)) {
		release_all(true);
		return -ESRCH;
	}
	if (!err && pb_vm_users_new(job->dirs, job->pid))
		err = shared(job);
	if (!err && job->nr && job->patient && handlers_inside(job)) {
		job->why = "a signal handler has interrupted the code that is to change";
		err = -EAGAIN;
	}
	if (err)
		job->nr = 0;	/* nothing is written, but EINTR must be undone */
	pb_stop_nr_places = 0;
	for (unsigned i = 0; i < nr_tasks; i++)
		if (tasks[i].stopped)
			fix_thread(job, &tasks[i]);
	if (!err && job->s->stopped)
		err = ask(job);
	if (!err && job->nr)
		err = pb_text_poke(job->p, job->nr);
	pb_dumpable_return();	/* before a thread can fork again */
	release_all(!err);
	return err;
}

int pb_stop_helper(void *arg)
{
	struct pb_stop_job *job = arg;
	uint64_t start = pb_now_ns();

	pb_sys(SYS_prctl, PR_SET_NAME, PB_STOP_HELPER, 0, 0, 0);
	while (!__atomic_load_n(&job->go, __ATOMIC_ACQUIRE)) {
		if ((uint32_t)pb_sys(SYS_getppid) != job->parent ||
		    pb_now_ns() - start > 10 * STOP_NS)
			return 1;	/* the parent is gone, or nobody sets `go` any more */
		pb_sys(SYS_sched_yield);
	}
	pb_ptrace_right_take();
	handle_timer();
	if (pb_vm_users(job->dirs, job->pid)) {
		job->result = shared(job);
		return 0;
	}
	start = pb_now_ns();
	job->result = stop_and_write(job);
	start = pb_now_ns() - start;
	if (start > pb_stop_longest_ns)
		pb_stop_longest_ns = start;
	if (job->result)
		mend_late(job);
	return 0;
}
