/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Chooses the thread to borrow (borrow.h). First it compares all threads by what /proc shows of
 * them, without disturbing any. Then it stops the best thread, and looks at the thread again,
 * because the thread may have gone on meanwhile. If the thread is no longer fit, it is released,
 * and the choice begins again.
 */
#include "attach/borrow.h"
#include <errno.h>
#include <linux/futex.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <syscall.h>
#include <time.h>
#include "attach/agent_map.h"
#include "attach/fit.h"
#include "attach/idle_call.h"
#include "attach/stack_scan.h"
#include "attach/stack_unwind.h"
#include "attach/way_back.h"
#include "base/base.h"

#define TRY_NS		(1500 * ATTACH_MS)
#define TRY_MORE_NS	(5000 * ATTACH_MS)	/* if a thread computes */
#define TRIES		60	/* at least so many attempts are made, even if they take longer,
				 * because the machine is busy */
#define STOP_NS		(5000 * ATTACH_MS)
#define FUTEX_NS	(10 * ATTACH_MS)	/* a futex wait must last this long */
#define PAUSE_NS	(3 * ATTACH_MS)
#define SHORT_PAUSE_NS	(ATTACH_MS / 5)		/* if the chosen thread computes */
#define USER_CODE	0x33			/* the code segment of 64-bit programs */

/* How well a thread can be borrowed; the lowest rank is the best. IDLE: the thread waits for
 * events, time, or another thread's end. WAITS: it waits for a futex. MAIN: it is the main thread.
 * IN_LOADER: a call of the loader seems to be on its stack. DOUBTFUL: a call that forbids borrowing
 * seems to be on its stack. COMPUTES: it runs, or is in no system call. UNFIT: it must not be
 * borrowed. */
enum rank { IDLE, IDLE_MAIN, WAITS, WAITS_MAIN, IDLE_IN_LOADER, DOUBTFUL, COMPUTES, UNFIT };

struct place {
	pid_t tid;
	enum rank rank;
	bool blocked;		/* it sleeps in a system call */
	long number;		/* of the system call; -1: none */
	uint64_t args[6], sp, pc;
};

struct borrow {
	struct attach_subject *s;
	const struct attach_libc *l;
	unsigned attempt;
	bool last_resort;	/* a thread of the rank IDLE_IN_LOADER may be borrowed, too */
	bool forbidden;		/* in this attempt, the kernel forbade tracing the thread, but the
				 * thread has no tracer */
	struct attach_unwind *unwind;	/* or NULL */
	uint64_t files;			/* attach_subject.files, as `unwind` knows them */
};

/* --- where a thread is ---------------------------------------------------- */

/* Returns the number of the system call that the thread has made. After any stop of a thread that
 * sleeps, polls, or waits for a futex with a time-out, the kernel shows SYS_restart_syscall as the
 * number until the wait is over. The arguments are still those of the original call. The original
 * number is then read from the code. If the code doesn't show it, the result is
 * SYS_restart_syscall. */
static long restarted_number(const struct borrow *b, long number, uint64_t pc)
{
	long real = number == SYS_restart_syscall ? attach_call_number(b->s, pc) : -1;

	switch (real) {
	case SYS_poll:
	case SYS_nanosleep:
	case SYS_clock_nanosleep:
	case SYS_futex:
		return real;
	default:
		return number;
	}
}

/* A restarted wait of an unknown kind may be a futex wait. */
static bool is_futex_wait(long number, const uint64_t args[6])
{
	int op = (int)args[1] & FUTEX_CMD_MASK;

	if (number == SYS_restart_syscall)
		return true;
	return number == SYS_futex && (op == FUTEX_WAIT || op == FUTEX_WAIT_BITSET);
}

struct number {
	pid_t pid;
	int own;
	bool found;
};

/* Whether the thread doesn't have the number n->own in its own pid namespace. */
static bool is_another(void *arg, pid_t tid)
{
	struct number *n = arg;
	struct record_status s;

	n->found = !record_task_status(n->pid, tid, &s) && s.ids[s.nr - 1] == n->own;
	return !n->found;
}

/* Whether the process has a thread with this number in its own pid namespace. The number is usually
 * the same here, so this thread is looked at first. */
static bool has_thread(const struct borrow *b, int own)
{
	struct number n = { .pid = b->s->pid, .own = own };
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/task", (int)n.pid);
	if (is_another(&n, own))
		record_proc_each(path, is_another, &n);
	return n.found;
}

/* Whether the thread waits in pthread_join() for another thread's end. Such a thread waits until
 * the kernel clears the word that has the other thread's TID. A wait for a lock of libc looks
 * different: it is a FUTEX_WAIT. */
static bool is_join(const struct borrow *b, long number, const uint64_t args[6])
{
	if (number != SYS_futex || ((int)args[1] & ~FUTEX_CLOCK_REALTIME) != FUTEX_WAIT_BITSET)
		return false;
	return (int)args[2] > 0 && has_thread(b, (int)args[2]);
}

/* Whether a thread that runs holds no lock of libc that pthread_create() takes. Either the thread
 * is in no call of libc. Or it has just made a system call, or is in the vDSO, and all functions of
 * libc that it is in are harmless. (At other places a function may be about to take a lock. In a
 * process with one thread, libc does that by two instructions.) */
static bool holds_nothing(const struct borrow *b, const struct place *p, unsigned in)
{
	bool in_text = attach_in(&b->l->text, p->pc);

	if (p->blocked || b->l->locks.exe_allocates || in & ATTACH_IN_UNSURE)
		return false;
	if (p->number < 0 && !attach_in(&b->l->vdso, p->pc))
		return !in_text && !(in & ATTACH_IN_LIBC);
	return !in_text || attach_locks_kind(&b->l->locks, p->pc) == ATTACH_HARMLESS;
}

/* in: the calls that the thread is in (stack_scan.h). */
static enum rank rank_of(const struct borrow *b, const struct place *p, unsigned in)
{
	bool main_thread = p->tid == b->s->pid;

	/* A thread in the agent's code may hold the agent's lock. It may also be the thread of
	 * another injection, which makes the agent leave the process. If it waited for the loader's
	 * lock in pthread_create(), a thread that holds the loader's lock could wait for it. */
	if (attach_in(&b->l->loader, p->pc) || attach_in_agent(b->s, p->pc))
		return UNFIT;
	if (in & (ATTACH_IN_HANDLER | ATTACH_UNREADABLE))
		return UNFIT;
	if (attach_call_is_idle(p->number, p->args))
		return in & ATTACH_IN_LOADER ? IDLE_IN_LOADER : main_thread ? IDLE_MAIN : IDLE;
	if (in & (ATTACH_IN_LOADER | ATTACH_IN_LOCKING | ATTACH_IN_ALLOCATOR) ||
	    attach_in(&b->l->locks.allocator, p->pc))
		return UNFIT;
	if (is_join(b, p->number, p->args))
		return main_thread ? IDLE_MAIN : IDLE;
	if (is_futex_wait(p->number, p->args))
		return main_thread ? WAITS_MAIN : WAITS;
	return holds_nothing(b, p, in) ? COMPUTES : UNFIT;
}

/* Judges a thread that waits. It can't be unwound before it is stopped. */
static enum rank rank_by_scan(const struct borrow *b, const struct place *p)
{
	unsigned in = attach_stack_scan(b->s, b->l, p->sp);
	enum rank rank = rank_of(b, p, in);

	if (rank == UNFIT && !(in & ATTACH_UNREADABLE) && rank_of(b, p, 0) != UNFIT)
		return DOUBTFUL;
	return rank == IDLE_IN_LOADER && !b->last_resort ? DOUBTFUL : rank;
}

/* Reads where a thread waits. A thread that doesn't wait gets the rank COMPUTES. is_fit() looks at
 * such a thread when it is stopped. */
static void read_place(const struct borrow *b, pid_t tid, struct place *p)
{
	char name[64], text[256];

	*p = (struct place) { .tid = tid, .rank = UNFIT, .blocked = true, .number = -1 };
	snprintf(name, sizeof(name), "task/%d/syscall", (int)tid);
	if (attach_proc_read(b->s, name, text, sizeof(text)) <= 0)
		return;
	if (!strncmp(text, "running", 7) || !strncmp(text, "-1 ", 3))
		p->rank = COMPUTES;
	else if (sscanf(text, "%ld %lx %lx %lx %lx %lx %lx %lx %lx", &p->number, &p->args[0],
			&p->args[1], &p->args[2], &p->args[3], &p->args[4], &p->args[5], &p->sp,
			&p->pc) == 9) {
		p->number = restarted_number(b, p->number, p->pc);
		p->rank = rank_by_scan(b, p);
	}
}

/* --- choice --------------------------------------------------------------- */

struct choice {
	const struct borrow *b;
	struct place *best;
	unsigned nr[UNFIT + 1];	/* number of threads of each rank so far */
};

/* Whether is_fit() may find that the thread can't be borrowed, though its rank is good enough. */
static bool is_uncertain(enum rank rank)
{
	return rank == COMPUTES || rank == DOUBTFUL;
}

static bool compare(void *arg, pid_t tid)
{
	struct choice *c = arg;
	struct place p;

	read_place(c->b, tid, &p);
	if (p.rank == DOUBTFUL && c->b->attempt % 2)
		p.rank = UNFIT;
	c->nr[p.rank]++;
	if (p.rank < c->best->rank || (p.rank == c->best->rank && is_uncertain(p.rank) &&
	    c->b->attempt / 2 % c->nr[p.rank] == 0))
		*c->best = p;
	return c->best->rank != IDLE;
}

/* Finds the best thread. Among several threads of the rank COMPUTES or DOUBTFUL, attempts 2n and
 * 2n + 1 choose the last one whose number, from 1, divides n. Odd attempts ignore DOUBTFUL threads.
 * So each thread gets its chance. */
static int choose(const struct borrow *b, struct place *best)
{
	struct choice c = { b, best, { 0 } };
	char path[64];

	*best = (struct place) { .rank = UNFIT };
	snprintf(path, sizeof(path), "/proc/%d/task", (int)b->s->pid);
	int err = record_proc_each(path, compare, &c);

	return err == -ENOENT ? -ESRCH : err;
}

/* How many times the thread has begun to wait. -1: unknown. */
static long switches(const struct borrow *b, pid_t tid)
{
	char name[64], status[RECORD_STATUS_MAX];
	const char *value = NULL;

	snprintf(name, sizeof(name), "task/%d/status", (int)tid);
	if (attach_proc_read(b->s, name, status, sizeof(status)) > 0)
		value = record_proc_value(status, "voluntary_ctxt_switches");
	return value ? atol(value) : -1;
}

/* Whether the thread's futex wait goes on for FUTEX_NS. If it does, the thread probably doesn't
 * wait for a lock that is held only briefly. */
static bool lasts(const struct borrow *b, const struct place *p)
{
	long before = switches(b, p->tid);
	struct place again;

	read_place(b, p->tid, &again);
	if (again.number != p->number || again.sp != p->sp)
		return false;
	nanosleep(&(struct timespec) { .tv_nsec = (long)FUTEX_NS }, NULL);
	return before >= 0 && switches(b, p->tid) == before;
}

static bool waits(const struct place *p)
{
	return p->rank == WAITS || p->rank == WAITS_MAIN ||
	       (p->rank == DOUBTFUL && is_futex_wait(p->number, p->args));
}

/* --- the stopped thread --------------------------------------------------- */

/* Whether the thread is in a restartable sequence (rseq). Such a thread must not be borrowed. The
 * kernel aborts a sequence only if it finds the interrupted thread inside the sequence, and it
 * would find a borrowed thread elsewhere. */
static bool in_sequence(const struct borrow *b, const struct attach_remote *t)
{
	uint64_t rseq = attach_remote_rseq(t), sequence = 0;

	return rseq && (attach_mem_read(b->s, rseq + 8, &sequence, sizeof(sequence)) || sequence);
}

/* Returns the calls that a stopped thread is in. Old words on its stack may look like calls that
 * forbid borrowing the thread. Then the unwinder decides, if it can. */
static unsigned calls_of(const struct borrow *b, const struct user_regs_struct *r)
{
	unsigned in = attach_stack_scan(b->s, b->l, r->rsp);
	uint64_t calls[ATTACH_UNWIND_MAX];
	int nr;

	if (!in || in & ATTACH_UNREADABLE || !b->unwind)
		return in;
	nr = attach_unwind(b->unwind, r, calls);
	return nr < 0 ? in : attach_calls_judge(b->s, b->l, calls, (size_t)nr);
}

/* Whether the stopped thread can be borrowed. */
static bool is_fit(const struct borrow *b, const struct place *chosen,
		   const struct attach_remote *t, const struct user_regs_struct *r)
{
	struct place p = {
		.tid = chosen->tid, .number = (long)r->orig_rax,
		.args = { r->rdi, r->rsi, r->rdx, r->r10, r->r8, r->r9 },
		.sp = r->rsp, .pc = r->rip,
	};

	if (r->cs != USER_CODE || (p.number >= 0 && !attach_call_precedes(b->s, r->rip)))
		return false;
	p.number = restarted_number(b, p.number, p.pc);
	if (rank_of(b, &p, 0) == UNFIT)
		return false;
	p.rank = rank_of(b, &p, calls_of(b, r));
	if (p.rank == COMPUTES && in_sequence(b, t))
		return false;
	if (p.rank == UNFIT || (p.rank == IDLE_IN_LOADER && chosen->rank != IDLE_IN_LOADER))
		return false;
	/* the wait must be the one that was chosen: a later futex wait may be for a lock of the
	 * allocator */
	return !waits(&p) || (waits(chosen) && p.sp == chosen->sp);
}

int attach_borrow_undo(struct attach_remote *t)
{
	struct user_regs_struct r, restart;

	if (!t->running && !attach_remote_regs(t, &r)) {
		attach_way_restart(&r, &restart);
		attach_remote_set_regs(t, &restart);
	}
	return attach_remote_release(t, STOP_NS);
}

/* Stops the thread if it has no tracer. If the helper of an agent has come first, the kernel
 * forbids it (EPERM). The helper may be gone before the thread's tracer is looked at. */
static int stop_thread(struct borrow *b, const struct place *p, struct attach_remote *t,
		       uint64_t *stopped_ns)
{
	int err = attach_fit_thread(b->s, p->tid);

	if (err)
		return err;
	*stopped_ns = pb_now_ns();
	err = attach_remote_stop(t, b->s->pid, p->tid, *stopped_ns + STOP_NS);
	if (err == -EPERM) {
		err = attach_fit_thread(b->s, p->tid);
		b->forbidden = !err;
	}
	return err == -ESRCH || b->forbidden ? -EAGAIN : err;
}

/* Stops the thread and looks at it again. Returns 0 if the thread can be borrowed. It then stays
 * stopped, and its state is saved. -EAGAIN: the thread has ended, or isn't fit and has been
 * released, or it couldn't be traced, perhaps because of an agent's helper. Other errors are those
 * of attach_fit_thread(), attach_remote_stop() and attach_borrow_undo(). */
static int try_thread(struct borrow *b, const struct place *p, struct attach_remote *t,
		      struct attach_state *state, uint64_t *stopped_ns)
{
	int err = stop_thread(b, p, t, stopped_ns);

	if (err)
		return err;
	if (!attach_remote_save(t, state) && is_fit(b, p, t, &state->regs)) {
		/* the call that the thread makes again if the injector is killed (way_back.c) */
		state->regs.orig_rax = (uint64_t)restarted_number(b, (long)state->regs.orig_rax,
								  state->regs.rip);
		return 0;
	}
	err = attach_borrow_undo(t);
	return err ? err : -EAGAIN;
}

/* Writes the user's line, unless attach_fit_thread() has written it. */
static int explain(const struct borrow *b, int err)
{
	struct attach_subject *s = b->s;

	if (err == -EBUSY || (err == -EAGAIN && s->by_helper))
		return err;
	if (err == -ESRCH)
		return attach_say_gone(s);
	if (err == -EAGAIN && b->forbidden)
		return attach_say(s, EPERM, "can't be traced: the kernel forbids it; try as root");
	if (err == -ETIMEDOUT)
		return attach_say(s, ETIMEDOUT, "can't be stopped, perhaps because it waits for a "
				  "disk or is frozen; try again");
	if (err != -EAGAIN)
		return attach_say(s, -err, "can't be traced: %s", strerror(-err));
	if (b->l->locks.exe_allocates)
		return attach_say(s, EAGAIN, "has its own allocator, so only a thread that waits "
				  "can be interrupted safely, but no thread waits; try again");
	return attach_say(s, EAGAIN, "has no thread at a point where it can be interrupted safely; "
			  "try again");
}

/* Prepares to unwind the thread's stack. What was prepared earlier is used again, unless the
 * process has mapped or unmapped files. */
static void prepare_unwind(struct borrow *b, enum rank rank)
{
	if (b->unwind && b->files == b->s->files)
		return;
	attach_unwind_end(b->unwind);
	b->unwind = is_uncertain(rank) ? attach_unwind_begin(b->s) : NULL;
	b->files = b->s->files;
}

/* Pauses before the next attempt. A thread that computes may be fit only at a few of its
 * instructions, so it is looked at often. */
static void pause_of(struct borrow *b, enum rank rank)
{
	uint64_t ns = rank == COMPUTES ? SHORT_PAUSE_NS : PAUSE_NS;

	nanosleep(&(struct timespec) { .tv_nsec = (long)ns }, NULL);
	attach_maps_read(b->s);
}

int attach_borrow(struct attach_subject *s, const struct attach_libc *l, struct attach_remote *t,
		  struct attach_state *state, uint64_t *stopped_ns)
{
	struct borrow b = { .s = s, .l = l };
	uint64_t begin = pb_now_ns(), most = TRY_NS, now = begin;
	struct place p = { 0 };
	int err;

	for (;; b.attempt++) {
		/* A thread that seems to wait in the loader is borrowed only as the last resort.
		 * Perhaps it only seems so, because old words of earlier calls are on its stack. */
		b.last_resort = now - begin >= TRY_NS / 2 && b.attempt >= TRIES / 2;
		b.forbidden = s->by_helper = false;
		err = choose(&b, &p);
		*stopped_ns = pb_now_ns();
		if (!err)
			err = p.rank == UNFIT || (waits(&p) && !lasts(&b, &p)) ? -EAGAIN : 0;
		if (!err) {
			prepare_unwind(&b, p.rank);
			err = try_thread(&b, &p, t, state, stopped_ns);
		}
		if (p.rank == COMPUTES)
			most = TRY_MORE_NS;
		if (err == -EAGAIN && attach_image_is_gone(s))
			err = -ESRCH;
		now = pb_now_ns();
		if (err != -EAGAIN || attach_remote_is_late() ||
		    (now - begin > most && b.attempt >= TRIES))
			break;
		pause_of(&b, p.rank);
	}
	attach_unwind_end(b.unwind);
	return err ? explain(&b, err) : 0;
}
