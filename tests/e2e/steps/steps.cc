/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A program that steps through its own calls. At the k-th instruction of a call, for each k, its handler
 * of SIGTRAP does what a program may do: calls of its own, a jump, an exception, a fork, the thread's cancellation.
 * It counts instructions, so that it needs to know nothing of what runs there. run_steps reads what it prints:
 *
 *   o FUNCTION STATE K PC RSP REGISTERS | CALLERS	what a handler sees at an instruction
 *   = FUNCTION STATE K REGISTERS			steps of the call, and registers after it
 *   s TID MARK ACTION FUNCTION STATE K HAPPENED OPEN CALLS...	calls made of each function, up to that mark
 *   c TID EXPECTED	so many marks has the thread
 *   x ACTION FUNCTION STATE K STATUS	a child died
 *   v OFFSET	an address of the agent's code at which an instruction was stepped
 *
 *   steps libc|raw POINTS all|quick|brief|observe|stepped|late
 *
 * POINTS: so many instructions of a call on a slow path (all others: each one).
 * raw: the handler is installed past libc, so that the tracer doesn't learn of it.
 */
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>
#include <unwind.h>

#define NR_FUNCTIONS	23
#define TRAP_FLAG	0x100
#define FLAGS		0x8d5
#define MAX_FRAMES	40
#define AGENT_MAX	(4 << 20)
#define SIGCANCEL	32
#define NUMBER_USED	77

extern "C" {
long t_leaf(long), t_far(long), t_caller(long), t_cond(long), t_tail(long), t_tree(long), t_mark(long), t_hand(long),
	t_out(long), t_nap(long), t_unseen(long), t_entry(long), call_pops(long), t_flush(long), t_calls_tail(long), t_away(long),
	t_away_tail(long), t_late(long), t_late_tail(long), call_traps(long);
long t_root(long, long (*)(long)), t_deep(long calls, long (*)(long), long);
void run_stepped(long (*f)(long), long x, uint64_t registers[16]);
void jump_out(void), nap(void), long_nap(void);
uint64_t made[NR_FUNCTIONS];
extern char __executable_start, etext;
}

enum act { NOTHING, LOOK, CALLS, FILL, JUMP, CALLS_JUMP, JUMP_INSIDE, FORK, FORK_CALLS, THROW, CANCEL, CANCELLED, NR_ACTS };
static const char *const act_names[] = { "nothing", "look", "calls", "fill", "jump", "calls-jump", "jump-inside", "fork", "fork-calls",
					 "throw", "cancel", "cancelled" };

struct thrown { long at; };

static bool raw, all;
static enum act act;
static volatile long step, step_at;
static uint64_t last_pc;		/* of the step before */
static const char *function, *state;
static sigjmp_buf out, *inside;
static volatile bool happened, cancel_now, cancel_sent;
static bool observing, can_unwind;
static bool is_child;
static __thread long marks;
static uint64_t made_at_mark[NR_FUNCTIONS];
static uint64_t agent;
static unsigned char visited[AGENT_MAX];
static pthread_t cancelled;

static void die(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	fprintf(stderr, "steps: %s %s %s, step %ld: ", act_names[act], function ? function : "", state ? state : "", step);
	vfprintf(stderr, format, args);
	fputc('\n', stderr);
	_exit(3);
}

/* ---- what is printed --------------------------------------------------------- */

static char text[1 << 20];
static size_t used;

static void print_out(void)
{
	for (size_t n = 0; n < used; ) {
		ssize_t w = write(1, text + n, used - n);

		if (w <= 0)
			_exit(4);
		n += (size_t)w;
	}
	used = 0;
}

static void print(const char *format, ...)
{
	va_list args;

	/* whole lines: a child may print before the rest */
	if (used > sizeof(text) - 65536 && text[used - 1] == '\n')
		print_out();
	va_start(args, format);
	used += (size_t)vsnprintf(text + used, sizeof(text) - used, format, args);
	va_end(args);
}

/* ---- what a handler does ----------------------------------------------------- */

struct frames {
	uint64_t pc[MAX_FRAMES];
	int nr, programs;
	bool interrupted;	/* the handler's own frames are over */
};

static bool in_program(uint64_t pc)
{
	return pc >= (uint64_t)&__executable_start && pc < (uint64_t)&etext;
}

static bool in_agent(uint64_t pc)
{
	return agent && pc - agent < AGENT_MAX;
}

static _Unwind_Reason_Code frame(struct _Unwind_Context *context, void *arg)
{
	struct frames *f = (struct frames *)arg;
	int exact = 0;
	uint64_t pc = _Unwind_GetIPInfo(context, &exact);

	f->interrupted |= exact;
	if (f->interrupted && f->nr < MAX_FRAMES) {
		f->pc[f->nr++] = pc;
		f->programs += !in_agent(pc);
	}
	return f->programs < 8 ? _URC_NO_REASON : _URC_END_OF_STACK;
}

static void look(const greg_t *g)
{
	static const int numbers[] = { REG_RAX, REG_RCX, REG_RDX, REG_RSI, REG_RDI, REG_RBX, REG_R8, REG_R9, REG_R10,
				       REG_R11, REG_R12, REG_R13, REG_R14, REG_R15, REG_RBP };
	static uint64_t first;
	uint64_t pc = (uint64_t)g[REG_RIP];
	struct frames f = {};

	if (step == 1)
		first = (uint64_t)g[REG_RSP];
	_Unwind_Backtrace(frame, &f);
	print("o %s %s %ld %s%lx %ld", function, state, step, in_agent(pc) ? "+" : in_program(pc) ? "" : "?",
	      in_agent(pc) ? pc - agent : pc, (long)((uint64_t)g[REG_RSP] - first));
	for (unsigned i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
		print(" %llx", (unsigned long long)g[numbers[i]]);
	/* but parity and adjust, which depend on the counters */
	print(" %llx |", (unsigned long long)(g[REG_EFL] & FLAGS & ~0x14));
	for (int i = 0; i < f.nr; i++) {
		print(" %s%lx", in_agent(f.pc[i]) ? "+" : "", in_agent(f.pc[i]) ? f.pc[i] - agent : f.pc[i]);
		if (!in_agent(f.pc[i]) && !in_program(f.pc[i]))
			break;
	}
	print("\n");
}

void jump_out(void)
{
	if (act == JUMP_INSIDE)
		siglongjmp(*inside, 1);
	siglongjmp(out, 1);
}

void nap(void)
{
	struct timespec t = { 0, 500000 };

	nanosleep(&t, NULL);
}

/* after which a time can't be told from the last record's */
void long_nap(void)
{
	struct timespec t = { 1, 0 };

	nanosleep(&t, NULL);
}

static void jump_inside(void)
{
	sigjmp_buf here;

	inside = &here;
	if (!sigsetjmp(here, 0))
		t_root(5, t_out);
}

/* A number that two threads have had would name two parts of the record. */
static unsigned char used_tids[1 << 22];

static bool is_new(long tid)
{
	return tid >= (long)sizeof(used_tids) || !used_tids[tid];
}

static void use(long tid)
{
	if (tid < (long)sizeof(used_tids))
		used_tids[tid] = 1;
}

static void fork_here(void)
{
	int status = 0;
	pid_t pid;

	pid = fork();
	if (!pid) {
		if (!is_new(getpid()))
			_exit(NUMBER_USED);
		is_child = true;
		alarm(20);	/* a child that hangs is reported like one that dies */
		used = 0;
		marks = 0;
		memcpy(made_at_mark, made, sizeof(made));
		if (act == FORK_CALLS)
			t_root(5, t_hand);
		return;		/* and goes on */
	}
	if (pid < 0 || waitpid(pid, &status, 0) != pid)
		die("no child");
	if (WIFEXITED(status) && WEXITSTATUS(status) == NUMBER_USED)
		return fork_here();
	use(pid);
	if (status)
		print("x %s %s %s %ld %d\n", act_names[act], function, state, step, status);
}

static void act_now(void)
{
	happened = true;
	switch (act) {
	case CALLS:
		t_root(5, t_hand);
		t_root(6, t_leaf);
		break;
	case FILL:
		/* more records than a chunk has room for */
		for (int i = 0; i < 2100; i++)
			t_flush(0);
		break;
	case CALLS_JUMP:
		t_root(5, t_out);
		break;
	case JUMP:
		siglongjmp(out, 1);
	case JUMP_INSIDE:
		jump_inside();
		break;
	case FORK:
	case FORK_CALLS:
		fork_here();
		break;
	case THROW:
		if (can_unwind)
			throw thrown { step };
		break;
	case CANCEL:
		pthread_cancel(pthread_self());
		break;
	case CANCELLED:
		/* the signal comes where the handler returns to */
		cancelled = pthread_self();
		cancel_now = true;
		while (!cancel_sent)
			sched_yield();
		break;
	default:
		break;
	}
}

/* xadd of a register of 64 bits. */
static bool is_reservation(uint64_t pc)
{
	const unsigned char *code = (const unsigned char *)pc;

	return in_agent(pc) && code[0] == 0x48 && code[1] == 0x0f && code[2] == 0xc1;
}

static void on_step(int sig, siginfo_t *info, void *context)
{
	greg_t *g = ((ucontext_t *)context)->uc_mcontext.gregs;
	int error = errno;

	step++;
	if (raw && in_agent((uint64_t)g[REG_RIP]))
		visited[(uint64_t)g[REG_RIP] - agent] = 1;
	if (act == FILL && is_reservation(last_pc))
		act_now();
	last_pc = (uint64_t)g[REG_RIP];
	if (observing)
		look(g);
	if (step == step_at) {
		g[REG_EFL] &= ~TRAP_FLAG;
		/* stubs have no unwind tables: only a program counter that is shown as the program's leads to them */
		can_unwind = in_program((uint64_t)g[REG_RIP]) || in_agent((uint64_t)g[REG_RIP]);
		act_now();
	}
	errno = error;
}

struct kernel_action {
	void *handler;
	unsigned long flags;
	void *restorer;
	uint64_t mask;
};

static void install(void)
{
	struct sigaction sa = {};
	struct kernel_action ka;

	sa.sa_sigaction = on_step;
	sa.sa_flags = SA_SIGINFO | SA_NODEFER;
	if (sigaction(SIGTRAP, &sa, NULL) || syscall(SYS_rt_sigaction, SIGTRAP, NULL, &ka, 8))
		die("sigaction");
	/* with libc's restorer, which unwinders know */
	ka.handler = (void *)on_step;
	ka.mask = 1ul << (SIGCANCEL - 1);
	if (raw && syscall(SYS_rt_sigaction, SIGTRAP, &ka, NULL, 8))
		die("rt_sigaction");
}

/* ---- one call ---------------------------------------------------------------- */

static uint64_t wanted[16];
static bool known;		/* what the registers must be */

/* Calls f with action a at the k-th instruction. */
__attribute__((noinline)) static void attempt(long (*f)(long), long x, enum act a, long k)
{
	volatile char deeper[8192];	/* than what is called after it: its calls are seen to be gone then */
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
				die("register %d is %lx after the call, not %lx (%ld)", i, registers[i], wanted[i], k);
}

static void mark_at(long tid, const char *what, long k)
{
	print("s %ld %ld %s %s %s %ld %d", tid, marks++, what, function ? function : "-", state ? state : "-", k, happened);
	for (int i = 0; i < NR_FUNCTIONS; i++)
		print(" %lu", made[i] - made_at_mark[i]);
	print("\n");
	memcpy(made_at_mark, made, sizeof(made));
}

/* Ends a part of the record. */
__attribute__((noinline)) static void mark(const char *what, long k, int depth)
{
	if (depth)
		t_flush(depth);
	t_mark(1);
	mark_at(syscall(SYS_gettid), what, k);
	if (is_child) {
		print_out();
		_exit(0);
	}
}

struct scenario {
	const char *function, *state;
	long (*f)(long);
	long x;
	long depth;		/* calls open around it */
	bool fresh;		/* in a new thread, */
	long filled;		/* whose chunk is full; less 1 */
	void (*before)(void);
};

static long calls_to_fill;

static void set(const struct scenario *s)
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

static void begin_thread(struct task *t)
{
	int old;

	t->tid = syscall(SYS_gettid);
	use(t->tid);
	pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, &old);
	if (!t->s->fresh || t->s->filled)
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
	begin_thread(t);
	for (long n = t->s->filled ? calls_to_fill + t->s->filled : 0; n > 0; n--)
		t_flush(0);
	attempt(t->s->f, t->s->x, t->a, t->k);
	mark(act_names[t->a], t->k, 6);
	pthread_setcanceltype(PTHREAD_CANCEL_DEFERRED, &old);
	t->over = true;
	return NULL;
}

/* How many calls of t_flush(0) make the next record the first of another chunk: that call takes more steps. */
static void *in_filling_thread(void *arg)
{
	struct task *t = (struct task *)arg;
	long usual = 0;

	begin_thread(t);
	for (calls_to_fill = 0; calls_to_fill < 1500; calls_to_fill++)
		t_flush(0);
	for (; calls_to_fill < 4000; calls_to_fill++) {
		known = false;
		attempt(t_flush, 0, NOTHING, 0);
		if (usual && step > usual + 100)
			break;
		if (!usual || step < usual)
			usual = step;
	}
	known = false;
	mark("fill", 0, 1);
	return NULL;
}

static void run_thread(const struct scenario *s, enum act a, long k, void *(*body)(void *))
{
	struct task t = { s, a, k, 0, false, false };
	pthread_t thread;
	void *result;

	cancel_now = cancel_sent = false;
	if (pthread_create(&thread, NULL, body, &t))
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

		marks = s->fresh && !s->filled ? 0 : 1;
		mark_at(t.tid, act_names[a], k);
		marks = main_marks;
	}
}

static long attempt_now(long task)
{
	const struct task *t = (const struct task *)task;

	attempt(t->s->f, t->s->x, t->a, t->k);
	return 0;
}

/* Whether the call took as many steps. */
static bool run(const struct scenario *s, enum act a, long k)
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

static long steps_of_last;

static void observe(const struct scenario *s)
{
	set(s);
	observing = true;
	run(s, LOOK, 0);
	observing = false;
	steps_of_last = step;
	print("= %s %s %ld", function, state, step);
	for (int i = 0; i < 16; i++)
		print(" %lx", wanted[i]);
	print("\n");
}

static void each_step(const struct scenario *s, enum act a, long stride)
{
	for (long k = 1 + a % stride; k < 100000 && run(s, a, k); k += stride)
		;
}

static void pause_1ms(void)
{
	struct timespec t = { 0, 1500000 };

	nanosleep(&t, NULL);
}

static void pause_100ms(void)
{
	struct timespec t = { 0, 100000000 };

	nanosleep(&t, NULL);
}

static long call_sigaction(long)
{
	return sigaction(SIGUSR2, NULL, NULL);
}

/* in a quick run; in one that is shorter still; on a slow path; only to see which instructions are reached; there the chunk
 * is also filled where a record was just reserved; and only then, as they take seconds */
enum { QUICK = 1, BRIEF = 2, SLOW = 4, STEPPED = 8, FILLED = 16, LATE = 32 };
static const struct choice {
	struct scenario s;
	int flags;
} choices[] = {
	{ { "t_leaf", "warm", t_leaf, 4 }, 0 },
	{ { "t_far", "warm", t_far, 4 }, 0 },
	{ { "t_caller", "warm", t_caller, 4 }, QUICK | BRIEF | FILLED },
	{ { "t_cond", "odd", t_cond, 5 }, QUICK | FILLED },
	{ { "t_calls_tail", "warm", t_calls_tail, 4 }, QUICK | FILLED },
	{ { "t_cond", "even", t_cond, 4 }, QUICK },
	{ { "t_tail", "warm", t_tail, 4 }, 0 },
	{ { "t_pops", "warm", call_pops, 4 }, QUICK },
	{ { "t_tree", "warm", t_tree, 4 }, 0 },
	{ { "t_entry", "warm", t_entry, 4 }, SLOW },
	{ { "t_unseen", "warm", t_unseen, 4 }, QUICK },
	{ { "t_caller", "first", t_caller, 4, 0, true }, QUICK | SLOW },
	{ { "t_caller", "full", t_caller, 4, 0, true, -1 }, QUICK | SLOW },
	{ { "t_caller", "full-1", t_caller, 4, 0, true, -2 }, SLOW },
	{ { "t_caller", "full-2", t_caller, 4, 0, true, -3 }, SLOW },
	{ { "t_leaf", "full", t_leaf, 4, 0, true, -1 }, SLOW },
	{ { "t_cond", "full", t_cond, 4, 0, true, -1 }, SLOW },
	{ { "t_caller", "deep123", t_caller, 4, 123 }, SLOW },
	{ { "t_caller", "deep124", t_caller, 4, 124 }, QUICK | SLOW },
	{ { "t_caller", "deep125", t_caller, 4, 125 }, SLOW },
	{ { "t_tail", "deep124", t_tail, 4, 124 }, SLOW },
	{ { "t_tail", "deep125", t_tail, 4, 125 }, SLOW },
	{ { "t_leaf", "late", t_leaf, 4, 0, false, 0, pause_1ms }, 0 },
	{ { "t_nap", "warm", t_nap, 4 }, SLOW },
	{ { "t_cond", "late", t_cond, 5, 0, false, 0, pause_100ms }, LATE },
	{ { "t_caller", "late", t_caller, 4, 0, false, 0, long_nap }, LATE },
	{ { "t_away", "warm", t_away, 4 }, STEPPED },
	{ { "t_away_tail", "warm", t_away_tail, 4 }, STEPPED },
	{ { "t_late", "warm", t_late, 4 }, LATE },
	{ { "t_late_tail", "warm", t_late_tail, 4 }, LATE },
	{ { "t_traps", "warm", call_traps, 4 }, STEPPED | FILLED },
	{ { "sigaction", "direct", call_sigaction, 4 }, STEPPED },
};

static void each_choice(const struct choice *c, long steps, long points)
{
	for (int a = CALLS; a < NR_ACTS; a++) {
		if (a == FILL)
			continue;
		bool in_a_thread = a == CANCEL || a == CANCELLED;
		long most = c->flags & SLOW ? points : all ? steps : 5 * points;

		/* of a fork that it isn't notified of the tracer knows nothing before the child's next call */
		if ((in_a_thread && (c->s.depth || c->s.fresh)) || (raw && (a == FORK || a == FORK_CALLS)))
			continue;
		each_step(&c->s, (enum act)a, steps > most ? steps / most : 1);
	}
}

/* Each instruction that these calls reach: when nothing happens, and when a handler fills the chunk in which a record
 * was just reserved. */
static void step_only(const struct choice *c)
{
	/* twice, as on a busy machine one may take long */
	for (int i = 0; i < (c->flags & LATE ? 1 : 2); i++)
		run(&c->s, NOTHING, 0);
	if (c->flags & FILLED)
		run(&c->s, FILL, 0);
}

static void find_agent(void)
{
	FILE *f = fopen("/proc/self/maps", "r");
	char line[4096];

	while (f && fgets(line, sizeof(line), f))
		if (strstr(line, "/libpatchbay.so") && !agent)
			agent = strtoul(line, NULL, 16);
	if (f)
		fclose(f);
}

int main(int argc, char **argv)
{
	long points = argc > 2 ? atol(argv[2]) : 1;
	const char *what = argc > 3 ? argv[3] : "all";
	int flags = !strcmp(what, "quick") ? QUICK : !strcmp(what, "brief") ? BRIEF : 0;
	bool only = !strcmp(what, "observe"), late = !strcmp(what, "late"), stepped = late || !strcmp(what, "stepped");

	raw = argc > 1 && !strcmp(argv[1], "raw");
	all = !strcmp(what, "all");
	find_agent();
	install();
	mark("begin", 0, 200);
	for (const struct choice &c : choices) {
		if ((flags && !(c.flags & flags)) || (c.flags & STEPPED && !stepped) || (c.flags & LATE && !late) ||
		    (c.s.filled && stepped))
			continue;
		if (c.s.filled && !calls_to_fill) {
			set(&c.s);
			run_thread(&c.s, NOTHING, 0, in_filling_thread);
		}
		if (stepped) {
			set(&c.s);
			step_only(&c);
			continue;
		}
		observe(&c.s);
		if (!only)
			each_choice(&c, steps_of_last, points);
	}
	for (unsigned i = 0; i < AGENT_MAX; i++)
		if (visited[i])
			print("v %x\n", i);
	print("c %ld %ld\n", (long)getpid(), marks);
	print_out();
	return 0;
}
