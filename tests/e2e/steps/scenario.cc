/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Makes one call in a certain state: in a new thread, at a depth, with a full chunk, or with hardly
 * any stack. The recorded call t_mark() separates the parts of the recording that belong to
 * different calls.
 */
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "steps.h"

namespace steps {

const char *function, *state;
__thread long marks;
uint64_t made[NR_FUNCTIONS], made_at_mark[NR_FUNCTIONS], wanted[16];
uint64_t cramped_at;
long calls_to_fill;

static bool known;		/* wanted[] has the values that registers have after the call */

/* Calls f. At the k-th instruction of the call, the handler performs the action `a`. */
__attribute__((noinline)) static void attempt(long (*f)(long), long x, enum act a, long k)
{
	/* Calls that are made after attempt() has returned have their slots above this array. So
	 * the agent finds that the calls which were left open below the array are gone. */
	volatile char deeper[8192];
	uint64_t registers[16];

	deeper[0] = 0;
	(void)deeper[0];
	act = a;
	step = 0;
	step_at = k;
	happened = false;
	if (sigsetjmp(out, 1))
		return;
	try {
		run_stepped(f, x, registers);
	} catch (const thrown &t) {
		if (t.at != k)
			die("another exception");
		return;
	}
	if (!known)
		memcpy(wanted, registers, sizeof(wanted));
	known = true;
	if (memcmp(wanted, registers, sizeof(wanted)))
		for (int i = 0; i < 16; i++)
			if (wanted[i] != registers[i])
				die("register %d is %lx after the call, not %lx (%ld)", i,
				    registers[i], wanted[i], k);
}

static void mark_at(long tid, const char *what, long k)
{
	print("s %ld %ld %s %s %s %ld %d %s", tid, marks++, what, function ? function : "-",
	      state ? state : "-", k, happened, happened ? acted_at : "-");
	for (int i = 0; i < NR_FUNCTIONS; i++)
		print(" %lu", made[i] - made_at_mark[i]);
	print("\n");
	memcpy(made_at_mark, made, sizeof(made));
}

__attribute__((noinline)) void mark(const char *what, long k, int depth)
{
	if (depth)
		t_flush(depth);
	t_mark(1);
	mark_at(syscall(SYS_gettid), what, k);
	if (is_child) {
		print_out();
		_exit(0);
	}
	release_late_child();
}

void set(const struct scenario *s)
{
	if (function != s->function || state != s->state)
		known = false;
	function = s->function;
	state = s->state;
}

struct task {
	const struct scenario *s;
	enum act a;
	long k, tid;
	volatile bool over, again;
};

static bool begins_with_mark(const struct scenario *s)
{
	return !s->fresh || s->filled || s->room;
}

/* STACK_SIZE: the size of a stack whose end the agent knows. BELOW: the size of the memory that is
 * mapped below this stack. */
#define STACK_SIZE	(256 << 10)
#define BELOW		(64 << 10)
/* The address is fixed, because registers hold addresses in the stacks. The registers' values in a
 * traced run are compared with those in a bare run. */
#define STACKS		((void *)0x3e0000000000)
static char *small_stack, *handlers_stack;

void make_stacks(void)
{
	small_stack = (char *)mmap(STACKS, BELOW + 2 * STACK_SIZE, PROT_READ | PROT_WRITE,
				   MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
	if (small_stack == MAP_FAILED)
		die("no memory");
	small_stack += BELOW;
	handlers_stack = small_stack + STACK_SIZE;
}

static void begin_cramped(const struct scenario *s)
{
	stack_t ss = {};

	ss.ss_sp = handlers_stack;
	ss.ss_size = STACK_SIZE;
	if (sigaltstack(&ss, NULL))
		die("sigaltstack");
	cramped_at = ((uint64_t)small_stack + s->room) & ~15ul;
}

static void begin_thread(struct task *t)
{
	int old;

	t->tid = syscall(SYS_gettid);
	use(t->tid);
	pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, &old);
	if (begins_with_mark(t->s))
		mark("begin", 0, 0);
}

static void *in_thread(void *arg)
{
	struct task *t = (struct task *)arg;
	int old;

	if (!is_new(syscall(SYS_gettid))) {
		t->again = t->over = true;
		return NULL;
	}
	if (t->s->room)
		begin_cramped(t->s);
	begin_thread(t);
	if (t->s->room && t->s->filled)
		fill_cramped(2500);
	for (long n = t->s->filled < 0 ? calls_to_fill + t->s->filled : 0; n > 0; n--)
		t_flush(0);
	attempt(t->s->f, t->s->x, t->a, t->k);
	/* when the alternate stack is set again, the agent closes the handlers' calls that are
	 * still open on this stack */
	if (t->s->room)
		begin_cramped(t->s);
	mark(act_names[t->a], t->k, 6);
	pthread_setcanceltype(PTHREAD_CANCEL_DEFERRED, &old);
	t->over = true;
	return NULL;
}

/* calls_to_fill is the number of calls of t_flush(0) that fill a chunk. The next call takes more
 * steps, because it needs a new chunk. LEAST_TO_FILL and MOST_TO_FILL are the bounds of the search
 * for this number. Each number is tried in a new thread, because a stepped call may take more words
 * of the chunk than other calls. */
#define LEAST_TO_FILL	1900
#define MOST_TO_FILL	2000
#define STEPS_TO_FILL	500
static long usual_steps;
static bool is_full;

static void *in_filled_thread(void *arg)
{
	begin_thread((struct task *)arg);
	for (long i = 0; i < calls_to_fill; i++)
		t_flush(0);
	known = false;
	attempt(t_flush, 0, NOTHING, 0);
	is_full = usual_steps && step > usual_steps + STEPS_TO_FILL;
	if (!usual_steps || step < usual_steps)
		usual_steps = step;
	known = false;
	mark("fill", 0, 1);
	return NULL;
}

static void run_thread(const struct scenario *s, enum act a, long k, void *(*body)(void *))
{
	struct task t = { s, a, k, 0, false, false };
	pthread_attr_t attr;
	pthread_t thread;
	void *result;

	cancel_now = cancel_sent = false;
	pthread_attr_init(&attr);
	if ((s->room && pthread_attr_setstack(&attr, small_stack, STACK_SIZE)) ||
	    pthread_create(&thread, &attr, body, &t))
		die("no thread");
	while (a == CANCELLED && !t.over && !cancel_sent)
		if (cancel_now) {
			pthread_cancel(cancelled);
			cancel_sent = true;
		} else {
			sched_yield();
		}
	pthread_join(thread, &result);
	if (t.again)
		return run_thread(s, a, k, body);
	if (result == PTHREAD_CANCELED) {
		long main_marks = marks;

		marks = begins_with_mark(s);
		mark_at(t.tid, act_names[a], k);
		marks = main_marks;
	}
}

void find_calls_to_fill(const struct scenario *s)
{
	calls_to_fill = agent ? LEAST_TO_FILL : MOST_TO_FILL;
	for (is_full = false; calls_to_fill < MOST_TO_FILL; calls_to_fill++) {
		run_thread(s, NOTHING, 0, in_filled_thread);
		if (is_full)
			return;
	}
}

static long attempt_now(long task)
{
	const struct task *t = (const struct task *)task;

	attempt(t->s->f, t->s->x, t->a, t->k);
	return 0;
}

bool run(const struct scenario *s, enum act a, long k)
{
	set(s);
	happened = false;
	if (s->fresh || a == CANCEL || a == CANCELLED) {
		run_thread(s, a, k, in_thread);
	} else {
		if (s->before)
			s->before();
		struct task t = { s, a, k, 0, false, false };

		if (s->depth)
			t_deep(s->depth, attempt_now, (long)&t);
		else
			attempt(s->f, s->x, a, k);
		mark(act_names[a], k, 6 + (int)s->depth);
	}
	return happened;
}

}
