/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Stops all threads of the program while its text is written. The helper stops them. It is a
 * process that shares the program's memory and files (CLONE_VM without CLONE_THREAD), because a
 * thread can't ptrace its own thread group. It runs on its own stack, with raw system calls.
 *
 *   agent thread            helper                       each other thread
 *   ------------            ------                       -----------------
 *   touch the pages
 *   clone, PR_SET_PTRACER
 *   go := 1  ------------>  does another process share
 *   futex                   the memory?
 *                           SEIZE, INTERRUPT all  -----> stops
 *                           until no thread is new
 *                           move PCs
 *   stopped()  <----------  (if it isn't NULL)
 *           ------------->  write text
 *                           DETACH threads with a
 *                           signal; exit  -------------> goes on
 *   <---------------------
 *
 * If the observer started the program, the helper becomes the observer's child, too. So the
 * program's wait calls don't see the helper. The helper has a name of its own (PB_STOP_HELPER). By
 * this name, an injector that searches for the program's children recognises the helper, and leaves
 * it out. The PID of the helper's parent isn't enough for this: if the program ends while the
 * helper still runs, the helper gets another parent.
 *
 * In the first try, all threads have STOP_NS to stop. If a thread is late, the try fails before
 * anything is written. A thread that waits in the kernel may be late, for example if it waits for
 * its vfork child. A runnable thread needs only a processor to stop. So if a try fails because of a
 * late thread, the next try waits twice as long for runnable threads, up to STOP_MOST_NS. For other
 * threads, each try waits STOP_NS. The first PATIENT_TRIES tries also fail if a signal handler has
 * interrupted bytes that are about to be replaced.
 */
#include <asm/errno.h>
#include <elf.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <sched.h>
#include <stdbool.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>
#include "abi/messages.h"
#include "arch/arch.h"
#include "arch/x86_64/signal_frames.h"
#include "arch/x86_64/vm_users.h"
#include "base/ptrace_right.h"
#include "base/base.h"
#include "base/mem.h"
#include "base/sys.h"
#include "base/task.h"

#define MAX_TASKS	8192
#define STOP_NS		20000000ull
#define STOP_MOST_NS	1000000000ull	/* the longest that a try waits for runnable threads */
#define LATE_NS		50000000ull	/* after a failed stop: the wait for late threads, in
					 * total */
#define LATE_MOST_NS	2000000000ull	/* the longest wait for late threads that are runnable */
#define GROUP		20000		/* patches per stop; they take one or two milliseconds */
#define RETRIES		100
#define PATIENT_TRIES	20		/* the first PATIENT_TRIES tries also fail if a handler has
					 * interrupted bytes to be replaced */
#define RETRY_NS	1000000
#define RETRY_MOST_NS	20000000	/* the longest pause before a retry */
#define HELPER_STACK	65536
#define ERESTARTNOHAND	514
#define MAX_PLACES	4096		/* largest number of stopped PCs for stopped(); if there are
					 * more, the stop is retried */

#ifndef PTRACE_EVENT_STOP
#define PTRACE_EVENT_STOP 128
#endif

uint32_t pb_agent_tid;
uint32_t pb_observer_pid;
uint64_t pb_stop_longest_ns;
const char *pb_stop_why;
enum { GONE, RUNS, ASKS };
static uint32_t helper_state;		/* GONE: the kernel sets it when the helper has ended; ASKS:
					 * stopped() is to run */

struct task {
	uint32_t tid;
	uint32_t signal;	/* the signal that the thread was about to get; 0: none */
	bool seized, stopped, gone;
};

struct job {
	const struct pb_stop *s;
	const struct pb_patch *p;	/* the patches of this group */
	size_t nr;
	uint32_t pid, tid, go;	/* tid: the thread that requested the stop */
	uint32_t parent;	/* PID of the helper's parent */
	bool patient;		/* fail if a handler has interrupted bytes to be replaced */
	uint64_t most;		/* ns for which the stop waits for runnable threads */
	bool late;		/* the stop failed because a thread stopped too late */
	bool shared;		/* the stop failed because another process shares the memory */
	int answer;		/* the result of stopped() */
	int result;
	const char *why;
};

static struct pb_stopped places[MAX_PLACES];
static size_t nr_places;
static struct task tasks[MAX_TASKS];
static unsigned nr_tasks;
static uint8_t helper_stack[HELPER_STACK] __attribute__((aligned(16)));

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
static bool stays(const struct job *job, uint32_t tid)
{
	return tid == pb_agent_tid || (job->s->stopped && tid == job->tid);
}

static int seize_new(const struct job *job, const char *dir, bool *any)
{
	static char buf[32768] __attribute__((aligned(8)));
	long fd = pb_sys(SYS_openat, AT_FDCWD, dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0), n;

	*any = false;
	if (pb_sys_failed(fd))
		return (int)fd;
	while ((n = pb_sys(SYS_getdents64, fd, buf, sizeof(buf))) > 0) {
		for (long at = 0; at < n; at += *(uint16_t *)(buf + at + 16)) {
			const char *name = buf + at + 19;
			int64_t tid = pb_parse_u64(name, strlen(name));
			struct task *t = &tasks[nr_tasks];

			if (tid <= 0 || stays(job, (uint32_t)tid) || known_task((uint32_t)tid))
				continue;
			if (nr_tasks == MAX_TASKS) {
				pb_sys(SYS_close, fd);
				return -E2BIG;
			}
			*t = (struct task){ .tid = (uint32_t)tid };
			nr_tasks++;
			*any = true;
			t->seized = !trace(PTRACE_SEIZE, t->tid, NULL, NULL);
			t->gone = !t->seized;
			if (t->seized)
				trace(PTRACE_INTERRUPT, t->tid, NULL, NULL);
		}
	}
	pb_sys(SYS_close, fd);
	return (int)n;
}

/* Returns whether a thread that could not be seized still runs. A leader that ended before the
 * other threads doesn't run: it stays as a zombie. */
static bool still_runs(const char *dir, uint32_t tid)
{
	char state = pb_task_state(dir, tid);

	return state && state != 'X' && state != 'Z';
}

static int wait_task(struct task *t, uint64_t deadline)
{
	int status;
	long r;

	while (t->seized && !t->stopped && !t->gone) {
		r = pb_sys(SYS_wait4, t->tid, &status, __WALL | WNOHANG, NULL);
		if (r == 0) {
			if (pb_now_ns() > deadline)
				return -EAGAIN;
			pb_sys(SYS_sched_yield);
		} else if (r < 0 || WIFEXITED(status) || WIFSIGNALED(status)) {
			t->gone = true;
		} else if (WIFSTOPPED(status)) {
			t->stopped = true;
			/* a signal stopped it, not the helper's interrupt */
			if (status >> 16 != PTRACE_EVENT_STOP)
				t->signal = (uint32_t)WSTOPSIG(status);
		}
	}
	return 0;
}

/* Waits until the thread stops, but no longer than until the deadline. If the thread is runnable at
 * the deadline, the deadline moves by STOP_NS, but not beyond `most`. A runnable thread stops as
 * soon as it gets a processor. A thread that waits in the kernel, for example for its vfork child,
 * may not stop for a long time. */
static int wait_runnable(const char *dir, struct task *t, uint64_t deadline, uint64_t most)
{
	int err;

	while ((err = wait_task(t, deadline)) && deadline < most &&
	       pb_task_state(dir, t->tid) == 'R') {
		deadline = pb_now_ns() + STOP_NS;
		if (deadline > most)
			deadline = most;
	}
	return err;
}

static int wait_stopped(const char *dir, uint64_t deadline, uint64_t most)
{
	int err = 0;

	for (unsigned i = 0; i < nr_tasks && !err; i++)
		err = wait_runnable(dir, &tasks[i], deadline, most);
	return err;
}

static int shared(struct job *job)
{
	job->shared = true;
	job->why = "another process shares the memory (a vfork child?)";
	return -EAGAIN;
}

static int stop_all(struct job *job)
{
	uint64_t start = pb_now_ns();
	char dir[64];
	bool any;

	pb_task_dir(dir, sizeof(dir), job->pid);
	nr_tasks = 0;
	do {
		int err = seize_new(job, dir, &any);

		if (!err)
			err = wait_stopped(dir, start + STOP_NS, start + job->most);
		job->late = err == -EAGAIN;
		if (err)
			return err;
	} while (any);
	/* for a moment, a thread that ends can't be seized */
	for (unsigned i = 0; i < nr_tasks; i++)
		if (!tasks[i].seized && still_runs(dir, tasks[i].tid)) {
			job->why = pb_ptrace_right_lack(dir, tasks[i].tid);
			return -EAGAIN;
		}
	return 0;
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
static bool inside(const struct job *job, uint64_t pc, bool first)
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

static uint64_t new_pc(const struct job *job, uint64_t pc)
{
	return inside(job, pc, false) ? job->s->moved(pc) : 0;
}

static void note_place(const struct job *job, uint64_t pc, uint64_t sp)
{
	if (!job->s->ours || !job->s->ours(pc))
		return;
	if (nr_places < MAX_PLACES)
		places[nr_places] = (struct pb_stopped){ pc, sp };
	nr_places++;
}

struct frames {
	const struct job *job;
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
static bool fix_frames(const struct job *job, const struct user_regs_struct *regs, bool move)
{
	struct frames f = { job, move };

	return pb_signal_frames(regs, fix_frame, &f);
}

/* Returns whether a handler has interrupted bytes that are to be replaced. In this case it is
 * better to wait for the handler's end. The handler may read the PC in its frame, and the stop
 * would change that PC. The handler may also set the PC to an address in text that has changed
 * meanwhile. */
static bool handlers_inside(const struct job *job)
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

static void fix_thread(const struct job *job, const struct task *t)
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
static void mend_late(const struct job *job)
{
	uint64_t start = pb_now_ns();
	char dir[64];

	pb_task_dir(dir, sizeof(dir), job->pid);
	for (unsigned i = 0; i < nr_tasks; i++) {
		struct task *t = &tasks[i];

		if (!t->seized || t->stopped || t->gone ||
		    wait_runnable(dir, t, start + LATE_NS, start + LATE_MOST_NS) || t->gone)
			continue;
		fix_thread(job, t);
		trace(PTRACE_DETACH, t->tid, NULL, (void *)(uint64_t)t->signal);
	}
}

/* Returns whether the thread that requested the stop is gone, because the process was killed or has
 * ended. In this case no thread answers the helper any more. */
static bool caller_is_gone(const struct job *job)
{
	char dir[64], state;

	pb_task_dir(dir, sizeof(dir), job->pid);
	state = pb_task_state(dir, job->tid);
	return state == 'X' || state == 'Z';
}

/* Asks the thread that requested the stop to call stopped(), and waits until the thread has done
 * so. */
static int ask(const struct job *job)
{
	uint64_t look_at = pb_now_ns() + STOP_NS, now;

	if (nr_places > MAX_PLACES)
		return -EAGAIN;
	__atomic_store_n(&helper_state, ASKS, __ATOMIC_RELEASE);
	pb_sys(SYS_futex, &helper_state, FUTEX_WAKE, 1, NULL, NULL, 0);
	while (__atomic_load_n(&helper_state, __ATOMIC_ACQUIRE) == ASKS) {
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

static int stop_and_write(struct job *job)
{
	int err = stop_all(job);

	if (!err && pb_vm_users_new(job->pid))
		err = shared(job);
	if (!err && job->nr && job->patient && handlers_inside(job)) {
		job->why = "a signal handler has interrupted the code that is to change";
		err = -EAGAIN;
	}
	if (err)
		job->nr = 0;	/* nothing is written, but EINTR must be undone */
	nr_places = 0;
	for (unsigned i = 0; i < nr_tasks; i++)
		if (tasks[i].stopped)
			fix_thread(job, &tasks[i]);
	if (!err && job->s->stopped)
		err = ask(job);
	if (!err && job->nr)
		err = pb_text_poke(job->p, job->nr);
	release_all(!err);
	return err;
}

static int helper(void *arg)
{
	struct job *job = arg;
	uint64_t start = pb_now_ns();

	pb_sys(SYS_prctl, PR_SET_NAME, PB_STOP_HELPER, 0, 0, 0);
	while (!__atomic_load_n(&job->go, __ATOMIC_ACQUIRE)) {
		if ((uint32_t)pb_sys(SYS_getppid) != job->parent ||
		    pb_now_ns() - start > 10 * STOP_NS)
			return 1;	/* the parent is gone, or nobody sets `go` any more */
		pb_sys(SYS_sched_yield);
	}
	pb_ptrace_right_take();
	if (pb_vm_users(job->pid)) {
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

/* Returns whether Yama's ptrace_scope is 1. With this value, a tracer must be an ancestor of the
 * process, or the process must have named the tracer with PR_SET_PTRACER. With another value, a
 * stop leaves the PR_SET_PTRACER setting alone, because the program itself may have made it. */
static bool yama_restricts(void)
{
	char scope = '0';
	long fd = pb_sys(SYS_openat, AT_FDCWD, "/proc/sys/kernel/yama/ptrace_scope",
			 O_RDONLY | O_CLOEXEC, 0);

	if (pb_sys_failed(fd))
		return false;
	pb_sys(SYS_read, fd, &scope, 1);
	pb_sys(SYS_close, fd);
	return scope == '1';
}

/* Waits until the helper is gone. Calls stopped() when the helper asks for it. */
static void wait_for_helper(struct job *job)
{
	uint32_t state;

	while ((state = __atomic_load_n(&helper_state, __ATOMIC_ACQUIRE)) != GONE) {
		if (state == ASKS) {
			job->answer = job->s->stopped(places, nr_places);
			/* without patches, nothing is left to do after stopped() */
			if (!job->nr)
				job->result = job->answer;
			/* if the helper was killed meanwhile, GONE must stay */
			__atomic_compare_exchange_n(&helper_state, &state, RUNS, false,
						    __ATOMIC_RELEASE, __ATOMIC_RELAXED);
		} else {
			pb_sys(SYS_futex, &helper_state, FUTEX_WAIT, RUNS, NULL, NULL, 0);
		}
	}
}

static int one_stop(struct job *job)
{
	int dumpable = (int)pb_sys(SYS_prctl, PR_GET_DUMPABLE, 0, 0, 0, 0), status;
	bool hidden = dumpable == 0 || dumpable == 2, yama = yama_restricts();
	/* make the helper a child of the observer, if the observer is there to reap it */
	bool sibling = pb_observer_pid && pb_sys(SYS_getppid) == pb_observer_pid;
	long pid;

	job->go = 0;
	job->parent = sibling ? pb_observer_pid : job->pid;
	job->result = -EAGAIN;
	helper_state = RUNS;
	pid = pb_clone(CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_UNTRACED | CLONE_CHILD_CLEARTID |
		       (sibling ? CLONE_PARENT : 0),
		       helper_stack + sizeof(helper_stack), helper, job, &helper_state);
	if (pb_sys_failed(pid))
		return (int)pid;
	if (hidden)
		pb_sys(SYS_prctl, PR_SET_DUMPABLE, 1, 0, 0, 0);
	if (yama)
		pb_sys(SYS_prctl, PR_SET_PTRACER, pid, 0, 0, 0);
	__atomic_store_n(&job->go, 1, __ATOMIC_RELEASE);
	wait_for_helper(job);
	while (!sibling && pb_sys(SYS_wait4, pid, &status, __WALL, NULL) == -EINTR)
		;
	if (yama)
		pb_sys(SYS_prctl, PR_SET_PTRACER, 0, 0, 0, 0);
	/* prctl() can't set 2 (only root may trace the process). 0 also forbids a core */
	if (hidden)
		pb_sys(SYS_prctl, PR_SET_DUMPABLE, 0, 0, 0, 0);
	return job->result;
}

/* Stops the threads for one group of patches, and tries again while the error is -EAGAIN. A vfork
 * child on a busy machine may take long until it executes a program. So the agent's own thread, for
 * which no thread of the program waits, makes longer and longer pauses. */
static int stop_for_group(const struct pb_stop *s, size_t nr)
{
	struct { long sec, nsec; } pause = { 0, RETRY_NS };
	uint64_t most = STOP_NS;
	int err = 0;

	pb_text_prepare(s->p + s->done, nr);
	for (int tries = 0; tries < RETRIES; tries++) {
		struct job job = {
			.s = s, .p = s->p + s->done, .nr = nr, .patient = tries < PATIENT_TRIES,
			.pid = (uint32_t)pb_sys(SYS_getpid), .tid = (uint32_t)pb_sys(SYS_gettid),
			.most = most,
			.why = "a thread could not be stopped",
		};

		pb_signal_frames_begin();
		err = one_stop(&job);
		if (err != -EAGAIN)
			break;
		pb_stop_why = job.why;
		if (job.late)
			most = 2 * most < STOP_MOST_NS ? 2 * most : STOP_MOST_NS;
		if (job.shared && job.tid == pb_agent_tid)
			pause.nsec = 2 * pause.nsec < RETRY_MOST_NS ? 2 * pause.nsec :
				     RETRY_MOST_NS;
		pb_sys(SYS_nanosleep, &pause, NULL);
	}
	return err;
}

int pb_stop_world(struct pb_stop *s)
{
	int err;

	s->done = 0;
	do {
		size_t left = s->nr - s->done, nr = left < GROUP ? left : GROUP;

		err = stop_for_group(s, nr);
		/* -EAGAIN: no patch of the group was written. Any other error: some patches may
		 * have been written, so the group counts as done */
		if (err != -EAGAIN)
			s->done += nr;
	} while (!err && s->done < s->nr);
	return err;
}
