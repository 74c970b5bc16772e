/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Stops, registers and waits of a traced thread (remote.h). waitpid() has no time limit. A signal
 * could interrupt it, but signal handlers belong to the whole process, so this code sets none. So
 * each wait polls. At first it yields the processor between two looks, because most stops come
 * within microseconds; later it sleeps.
 */
#include "attach/remote.h"
#include <elf.h>
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ptrace.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include "recorder/proc.h"

#define YIELD_NS	(300 * 1000ull)
#define CROWDED_NS	(100 * 1000ull)		/* a longer yield shows that other threads wait for
						 * processors */
#define SOON_NS		(10 * ATTACH_MS)	/* most stops come until then, even on a busy
						 * machine. A longer sleep between two looks would
						 * make the stop of the borrowed thread longer */
#define SLEEP_NS	(20 * 1000)
#define SLEEP_MAX_NS	(2 * 1000 * 1000)
#define SEIZE_TRIES	3
#define LOOK_NS		(500 * 1000ull)
#define REAP_NS		(5000 * ATTACH_MS)
#define SYSCALL_STOP	(SIGTRAP | 0x80)
#ifndef PTRACE_GET_RSEQ_CONFIGURATION
#define PTRACE_GET_RSEQ_CONFIGURATION 0x420f
#endif

enum stop_kind { STOP_ENTRY, STOP_EXIT, STOP_TRAP, STOP_CLONE, STOP_SIGNAL };

struct stop {
	enum stop_kind kind;
	int signal;		/* STOP_SIGNAL: to be delivered */
	uint64_t ip, sp;	/* STOP_ENTRY */
	int64_t result;		/* STOP_EXIT */
	pid_t child;		/* STOP_CLONE */
};

/* glibc's ptrace() takes an enum, in which some of the kernel's requests are missing. */
static long request(int what, pid_t tid, uint64_t addr, void *data)
{
	return ptrace((enum __ptrace_request)what, tid, (void *)addr, data) < 0 ? -errno : 0;
}

/* --- /proc ---------------------------------------------------------------- */

/* Returns whether the thread has a status file. */
static bool read_status(pid_t tid, char status[RECORD_STATUS_MAX])
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/status", (int)tid);
	return record_proc_read(path, status, RECORD_STATUS_MAX) > 0;
}

/* Whether the thread has ended. The kernel still lists such a thread for a moment, but forbids
 * tracing it. */
static bool has_ended(pid_t tid)
{
	char status[RECORD_STATUS_MAX];

	return !read_status(tid, status) || record_proc_is_dead(status);
}

/* --- waits ---------------------------------------------------------------- */

static _Thread_local struct {
	uint64_t until;
	const _Atomic uint64_t *limit;
} bound = { UINT64_MAX, NULL };

void attach_remote_bound(uint64_t until, const _Atomic uint64_t *limit)
{
	bound.until = until;
	bound.limit = limit;
}

bool attach_remote_is_late(void)
{
	uint64_t now = pb_now_ns();

	return now >= bound.until || (bound.limit && now >= *bound.limit);
}

static bool is_over(uint64_t deadline, uint64_t now)
{
	return now >= deadline || (deadline != UINT64_MAX && attach_remote_is_late());
}

/* Takes the report of the thread's stop or end from the kernel, if there is one. Skips the thread
 * in *arg. */
static bool reap_other(void *arg, pid_t tid)
{
	int status;

	if (tid != *(const pid_t *)arg)
		waitpid(tid, &status, __WALL | WNOHANG);
	return true;
}

static void reap_others(pid_t pid, pid_t tid)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/task", (int)pid);
	record_proc_each(path, reap_other, &tid);
}

/*
 * Pauses between two looks at a thread for which this process has waited for `waited_ns`. The
 * kernel doesn't report the end of a main thread before the other threads of its process are gone.
 * If the main thread was killed just after it had created a thread, the created thread is traced
 * and dead as well. It isn't gone before this process has waited for it, so reap_others() does
 * that.
 *
 * On a busy machine, another thread may use the yielded processor for milliseconds. Then a short
 * sleep is better: the kernel prefers a thread that wakes.
 */
static __thread bool crowded;

static void pause_wait(pid_t pid, pid_t tid, uint64_t waited_ns, long *sleep_ns)
{
	if (waited_ns < YIELD_NS && !crowded) {
		uint64_t begin = pb_now_ns();

		sched_yield();
		crowded = pb_now_ns() - begin > CROWDED_NS;
		return;
	}
	if (tid == pid && has_ended(tid))
		reap_others(pid, tid);
	nanosleep(&(struct timespec) { .tv_nsec = *sleep_ns }, NULL);
	if (waited_ns > SOON_NS && *sleep_ns < SLEEP_MAX_NS)
		*sleep_ns *= 2;
}

/* Waits until the thread stops or ends. */
static int wait_status(pid_t pid, pid_t tid, uint64_t deadline, int *status)
{
	uint64_t begin = pb_now_ns(), now;
	long sleep_ns = SLEEP_NS;

	for (;;) {
		pid_t got = waitpid(tid, status, __WALL | WNOHANG);

		if (got == tid)
			return 0;
		if (got < 0 && errno != EINTR)
			return -ESRCH;
		now = pb_now_ns();
		if (is_over(deadline, now))
			return -ETIMEDOUT;
		pause_wait(pid, tid, now - begin, &sleep_ns);
	}
}

static int read_syscall_stop(pid_t tid, struct stop *s)
{
	struct __ptrace_syscall_info info = { 0 };

	if (ptrace(PTRACE_GET_SYSCALL_INFO, tid, sizeof(info), &info) < 0)
		return -errno;
	if (info.op == PTRACE_SYSCALL_INFO_ENTRY) {
		s->kind = STOP_ENTRY;
		s->ip = info.instruction_pointer;
		s->sp = info.stack_pointer;
	} else {
		s->kind = STOP_EXIT;
		s->result = info.exit.rval;
	}
	return 0;
}

static int wait_stop(struct attach_remote *t, uint64_t deadline, struct stop *s)
{
	unsigned long message;
	int status, err = wait_status(t->pid, t->tid, deadline, &status);

	if (err)
		return err;
	if (!WIFSTOPPED(status))
		return -ESRCH;
	t->running = false;
	t->signal = 0;
	if (WSTOPSIG(status) == SYSCALL_STOP)
		return read_syscall_stop(t->tid, s);
	if (status >> 16 == PTRACE_EVENT_CLONE) {
		s->kind = STOP_CLONE;
		err = (int)request(PTRACE_GETEVENTMSG, t->tid, 0, &message);
		s->child = err ? 0 : (pid_t)message;
		return err;
	}
	/* A group stop (SIGSTOP) counts as a trap, too. The thread stops with the others of its
	 * process when it is released. */
	s->kind = status >> 16 ? STOP_TRAP : STOP_SIGNAL;
	s->signal = t->signal = s->kind == STOP_SIGNAL ? WSTOPSIG(status) : 0;
	return 0;
}

static int resume(struct attach_remote *t, int how)
{
	long err = request(how, t->tid, 0, (void *)(long)t->signal);

	t->signal = 0;
	if (!err)
		t->running = true;
	return (int)err;
}

/* Asks the kernel for a trap. Any other stop would cancel the request, so the thread is resumed
 * without stops at system calls. */
static int resume_to_trap(struct attach_remote *t)
{
	int err = (int)request(PTRACE_INTERRUPT, t->tid, 0, NULL);

	return err ? err : resume(t, PTRACE_CONT);
}

static int wait_for_trap(struct attach_remote *t, uint64_t deadline)
{
	struct stop s;
	int err;

	while (!(err = wait_stop(t, deadline, &s)) && s.kind != STOP_TRAP) {
		if (s.kind == STOP_CLONE)
			t->child = s.child;
		err = resume_to_trap(t);
		if (err)
			break;
	}
	return err;
}

/* --- stop and release ----------------------------------------------------- */

/*
 * Seizes the thread. The kernel forbids this (EPERM) if the thread has ended, but is still listed.
 * When another thread executes a program, it ends the main thread and takes that thread's number.
 * So after the kernel has refused the old thread, the new thread may be found under this number.
 * Therefore, if a refused thread seems to run, it is tried again, at most SEIZE_TRIES times in all.
 */
static int seize(pid_t tid)
{
	int err = -EPERM;

	for (int i = 0; err == -EPERM && i < SEIZE_TRIES; i++) {
		err = (int)request(PTRACE_SEIZE, tid, 0, (void *)PTRACE_O_TRACESYSGOOD);
		if (err == -EPERM && has_ended(tid))
			err = -ESRCH;
	}
	return err;
}

static int stop(struct attach_remote *t, uint64_t deadline)
{
	int err = (int)request(PTRACE_INTERRUPT, t->tid, 0, NULL);

	return err ? err : wait_for_trap(t, deadline);
}

int attach_remote_stop(struct attach_remote *t, pid_t pid, pid_t tid, uint64_t deadline)
{
	int err = seize(tid);

	*t = (struct attach_remote) { .pid = pid, .tid = err ? 0 : tid, .running = true };
	if (err)
		return err;
	err = stop(t, deadline);
	if (err && err != -ETIMEDOUT && attach_remote_release(t, REAP_NS))
		err = -ETIMEDOUT;
	if (err)
		t->tid = 0;
	return err;
}

int attach_remote_trap(struct attach_remote *t, uint64_t deadline)
{
	int err;

	if (t->running)
		return stop(t, deadline);
	err = resume_to_trap(t);
	return err ? err : wait_for_trap(t, deadline);
}

int attach_remote_follow(const struct attach_remote *t)
{
	return (int)request(PTRACE_SETOPTIONS, t->tid, 0,
			    (void *)(PTRACE_O_TRACESYSGOOD | PTRACE_O_TRACECLONE));
}

/* From now on, the kernel doesn't trace threads that this thread makes, for example the agent's own
 * thread. */
static int follow_no_more(const struct attach_remote *t)
{
	return (int)request(PTRACE_SETOPTIONS, t->tid, 0, (void *)PTRACE_O_TRACESYSGOOD);
}

int attach_remote_adopt(struct attach_remote *t, pid_t pid, pid_t tid, uint64_t deadline)
{
	int err;

	*t = (struct attach_remote) { .pid = pid, .tid = tid, .running = true };
	err = wait_for_trap(t, deadline);
	return err ? err : follow_no_more(t);
}

static bool is_ours(pid_t pid)
{
	char status[RECORD_STATUS_MAX];
	const char *tracer;

	if (!read_status(pid, status))
		return false;
	tracer = record_proc_value(status, "TracerPid");
	return tracer && atoi(tracer) == gettid();
}

static int detach(struct attach_remote *t, uint64_t deadline)
{
	int err = t->running ? stop(t, deadline) : 0;

	return err ? err : (int)request(PTRACE_DETACH, t->tid, 0, (void *)(long)t->signal);
}

/* Waits until a dying thread has died. Then this process no longer traces it. */
static int reap(pid_t pid, pid_t tid, uint64_t deadline)
{
	int status, err;

	do
		err = wait_status(pid, tid, deadline, &status);
	while (!err && WIFSTOPPED(status));
	return err == -ETIMEDOUT ? err : 0;
}

/*
 * A thread can't be detached after it was killed. The usual cause is that another thread of its
 * process executes a program. That thread waits in the kernel until this process has waited for the
 * killed thread, and meanwhile nobody can seize a thread of the process: PTRACE_SEIZE would wait
 * for ever. If the traced thread itself executes a program, the kernel gives it another TID, the
 * PID of its process. Its former TID no longer exists.
 */
int attach_remote_release(struct attach_remote *t, uint64_t patience_ns)
{
	uint64_t deadline = pb_now_ns() + patience_ns;
	int err = t->tid ? detach(t, deadline) : 0;

	if (err == -ETIMEDOUT || (err && reap(t->pid, t->tid, deadline)))
		return -ETIMEDOUT;
	bool executed = err && t->tid != t->pid && is_ours(t->pid);

	t->tid = executed ? t->pid : 0;
	t->running = executed;
	return executed ? attach_remote_release(t, patience_ns) : 0;
}

/* --- state ---------------------------------------------------------------- */

int attach_remote_regs(const struct attach_remote *t, struct user_regs_struct *regs)
{
	return (int)request(PTRACE_GETREGS, t->tid, 0, regs);
}

int attach_remote_set_regs(const struct attach_remote *t, const struct user_regs_struct *regs)
{
	return (int)request(PTRACE_SETREGS, t->tid, 0, (void *)regs);
}

int attach_remote_set_mask(const struct attach_remote *t, uint64_t mask)
{
	return (int)request(PTRACE_SETSIGMASK, t->tid, sizeof(mask), &mask);
}

int attach_remote_save(const struct attach_remote *t, struct attach_state *state)
{
	struct iovec v = { state->xstate, sizeof(state->xstate) };
	long err = request(PTRACE_GETREGS, t->tid, 0, &state->regs);

	if (!err)
		err = request(PTRACE_GETSIGMASK, t->tid, sizeof(state->mask), &state->mask);
	if (!err)
		err = request(PTRACE_GETREGSET, t->tid, NT_X86_XSTATE, &v);
	state->xstate_size = v.iov_len;
	return (int)err;
}

int attach_remote_restore_mask(const struct attach_remote *t, const struct attach_state *state)
{
	struct iovec v = { (void *)state->xstate, state->xstate_size };
	long err = request(PTRACE_SETREGSET, t->tid, NT_X86_XSTATE, &v);

	return err ? (int)err : attach_remote_set_mask(t, state->mask);
}

int attach_remote_filter(const struct attach_remote *t, unsigned index, struct sock_filter *to)
{
	long nr = ptrace(PTRACE_SECCOMP_GET_FILTER, t->tid, (void *)(long)index, to);

	return nr < 0 ? -errno : (int)nr;
}

uint64_t attach_remote_rseq(const struct attach_remote *t)
{
	/* struct ptrace_rseq_configuration (linux/ptrace.h) */
	struct {
		uint64_t address;
		uint32_t size, signature, flags, padding;
	} rseq = { 0 };

	if (request(PTRACE_GET_RSEQ_CONFIGURATION, t->tid, sizeof(rseq), &rseq) < 0)
		return 0;
	return rseq.address;
}

/* --- runs ----------------------------------------------------------------- */

int attach_remote_run(struct attach_remote *t, uint64_t ip, uint64_t sp, uint64_t deadline,
		      const struct attach_watch *watch, uint64_t *number)
{
	struct user_regs_struct regs;
	struct stop s;
	int err;

	while (!(err = resume(t, PTRACE_SYSCALL)) && !(err = wait_stop(t, deadline, &s))) {
		if (s.kind == STOP_CLONE)
			t->child = s.child;
		if (s.kind == STOP_EXIT && watch && !attach_remote_regs(t, &regs))
			watch->called(watch->arg, &regs);
		if (s.kind != STOP_ENTRY || s.ip != ip || (s.sp != sp && sp))
			continue;
		/* PTRACE_GET_SYSCALL_INFO cuts the number to 32 bits */
		err = attach_remote_regs(t, &regs);
		*number = regs.orig_rax;
		break;
	}
	return err;
}

/* A thread on its way to a system call. */
struct runner {
	struct attach_remote *t;
	uint64_t ip, sp;	/* where the call is; sp 0: with any stack pointer */
	bool is_new;		/* its first stop is a trap */
	bool there;
	int err;
};

/* Handles the thread's next stop, if it has come. Returns whether it has. */
static bool advance(struct runner *r)
{
	struct stop s;
	int err = r->there || r->err || !r->t->tid ? -ETIMEDOUT : wait_stop(r->t, 0, &s);

	if (err == -ETIMEDOUT)
		return false;
	if (!err && s.kind == STOP_CLONE)
		r->t->child = s.child;
	if (!err && s.kind == STOP_TRAP && r->is_new)
		err = follow_no_more(r->t);
	r->there = !err && s.kind == STOP_ENTRY && s.ip == r->ip && (!r->sp || s.sp == r->sp);
	r->err = err || r->there ? err : resume(r->t, PTRACE_SYSCALL);
	return true;
}

int attach_remote_run_both(struct attach_remote *t, uint64_t sp, struct attach_remote *child,
			   uint64_t ip, uint64_t deadline, uint64_t *number, int *child_err)
{
	struct runner both[] = { { t, ip, sp }, { child, ip, .is_new = true } };
	struct user_regs_struct regs;
	uint64_t begin = pb_now_ns(), now;
	long sleep_ns = SLEEP_NS;

	both[0].err = resume(t, PTRACE_SYSCALL);
	while (!both[0].err && (!both[0].there || (t->child && !both[1].there && !both[1].err))) {
		if (advance(&both[0]) | advance(&both[1])) {
			begin = pb_now_ns();
			sleep_ns = SLEEP_NS;
			if (t->child && !child->tid)
				*child = (struct attach_remote) { .pid = t->pid, .tid = t->child,
								  .running = true };
			continue;
		}
		now = pb_now_ns();
		if (is_over(deadline, now))
			both[both[0].there].err = -ETIMEDOUT;
		else
			pause_wait(t->pid, t->tid, now - begin, &sleep_ns);
	}
	*child_err = both[1].err;
	if (both[0].err)
		return both[0].err;
	int err = attach_remote_regs(t, &regs);

	*number = regs.orig_rax;
	return err;
}

int attach_remote_finish(struct attach_remote *t, uint64_t ip, uint64_t deadline, int64_t *result)
{
	bool begun = !ip;
	struct stop s;
	int err;

	/* a signal handler may make other system calls first, which don't count */
	while (!(err = resume(t, PTRACE_SYSCALL)) && !(err = wait_stop(t, deadline, &s))) {
		begun |= s.kind == STOP_ENTRY && s.ip == ip;
		if (begun && s.kind == STOP_EXIT) {
			*result = s.result;
			return 0;
		}
	}
	return err;
}

int attach_remote_until(struct attach_remote *t, bool (*is_done)(const void *arg), const void *arg,
			uint64_t deadline)
{
	int err = resume(t, PTRACE_CONT);
	uint64_t now = pb_now_ns();
	struct stop s;

	while (!err && !is_done(arg)) {
		if (is_over(deadline, now))
			return -ETIMEDOUT;
		err = wait_stop(t, now + LOOK_NS, &s);
		if (!err)
			err = resume(t, PTRACE_CONT);
		else if (err == -ETIMEDOUT)
			err = 0;
		now = pb_now_ns();
	}
	return err ? err : stop(t, deadline);
}
