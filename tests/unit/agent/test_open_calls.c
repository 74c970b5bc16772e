/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Tests the protocol of open calls under single-stepping. Traced functions (open_calls_step.S) run
 * with the trap flag set. The test runs once for each step k. At step k, a signal handler makes
 * traced calls, jumps away, or forks. It may also make calls and then jump away. In another test, a
 * second handler interrupts the first handler. This test runs for pairs of steps.
 *
 * The program counts its calls itself. The records must agree with that count. They may differ by
 * one call for each entry or exit that a jump abandons.
 *
 * With an argument, the program tests more steps and pairs of steps, and takes half an hour.
 *
 * The handler is installed by a raw system call, as in Go programs. So the code under test isn't
 * notified when a handler runs.
 */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>
#include <cmocka.h>
#include "base/base.h"
#include "engine/graph/open_calls.h"
#include "../step_path.h"

#define NR_WORDS	(1 << 16)
#define MOST_STEPS	500000
#define NR_SEGMENTS	64
#define OUTER		1
#define INNER		2
#define DEEP		3

enum { WORD_LEAF = 1, WORD_ENTRY, WORD_EXIT, WORD_END };

int step_outer(int n), step_inner(int n), step_deep(int n);
/* the bodies of these functions */
int step_outer_body(int n), step_inner_body(int n), step_deep_body(int n);
void step_enter_slow(uint64_t slot, uint32_t site), step_exit_slow(uint64_t slot);

struct pb_open_call *step_top;
uint64_t *step_pos;
static uint64_t words[NR_WORDS];
static struct pb_open_segment segments[NR_SEGMENTS] __attribute__((aligned(PB_OPEN_SEGMENT)));
static uint32_t nr_segments;

/* what the program counts */
static long made, jumps, inside_jumps, cut;
static volatile long step, step_at, second_at;
static long first_at, then_at;		/* for messages */
static sigjmp_buf out, *inside;
static bool dense;

static struct step_path to_first, to_second;	/* to the two steps at which handlers act */
static struct step_path *path;			/* one of them, or NULL */
static long path_begin;				/* the number of the step at which it began */
static struct step_breakpoint breakpoint;

enum act { NOTHING, CALLS, JUMP, CALLS_JUMP, JUMP_INSIDE, FORK, NR_ACTS };
static const char *const act_names[] = {
	"nothing", "calls", "jump", "calls, jump", "jump inside", "fork", "-"
};
static enum act act, second;
static volatile enum act doing;		/* what the innermost handler does */

/* Uses one instruction, because handlers also increment these numbers. */
static void count(long *n)
{
	__asm__ volatile("incq %0" : "+m"(*n) : : "memory", "cc");
}

/* --- the engine's part ------------------------------------------------------ */

static void put(uint64_t word)
{
	uint64_t old = 8;

	__asm__ volatile("xadd %0, %1" : "+r"(old), "+m"(step_pos) : : "memory");
	*(volatile uint64_t *)old = word;
}

static void on_skipped(void *context, const struct pb_open_call *call)
{
	/* writes the END of a call that has an ENTRY, or the whole call */
	put((uint64_t)call->site << 2 | (call->state ? 0 : WORD_LEAF));
}

static void on_cut(void *context, const struct pb_open_call *call)
{
	count(&cut);
}

static struct pb_open_segment *on_segment(void *context)
{
	uint32_t n = 1;

	__asm__ volatile("xadd %0, %1" : "+r"(n), "+m"(nr_segments) : : "memory");
	return n < NR_SEGMENTS ? &segments[n] : NULL;
}

static void on_unused(void *context, struct pb_open_segment *s)
{
}

static const struct pb_open_hooks hooks = {
	.skipped = on_skipped, .cut = on_cut, .segment = on_segment, .unused = on_unused
};

__attribute__((used)) void step_enter_slow(uint64_t slot, uint32_t site)
{
	struct pb_open_call *c = pb_open_enter(&step_top, slot, &hooks), *parent;

	if (!c) {
		made--;		/* no room in the array: this test writes no record */
		return;
	}
	parent = pb_open_parent(c);
	if (!__atomic_exchange_n(&parent->state, 1, __ATOMIC_RELAXED) && parent->site)
		put((uint64_t)parent->site << 2 | WORD_ENTRY);
	if (c == (struct pb_open_call *)((uint64_t)c & ~(PB_OPEN_SEGMENT - 1ul)) + 2)
		c[-1].state = 1;
	c->site = site;
	c->state = 0;
	c->ret = *(uint64_t *)slot;
	pb_open_commit(c, slot);
}

__attribute__((used)) void step_exit_slow(uint64_t slot)
{
	struct pb_open_call *c = pb_open_exit(&step_top, slot, *(uint64_t *)slot, &hooks);

	if (!c)
		return;
	put((uint64_t)c->site << 2 | (c->state ? WORD_EXIT : WORD_LEAF));
	pb_open_release(&step_top, c);
}

/* --- the program ------------------------------------------------------------ */

__attribute__((used)) int step_inner_body(int n)
{
	count(&made);
	return n + 1;
}

__attribute__((used)) int step_outer_body(int n)
{
	count(&made);
	if (doing == CALLS_JUMP)
		siglongjmp(out, 1);
	if (doing == JUMP_INSIDE)
		siglongjmp(*inside, 1);
	return step_inner(n) + step_inner(n + 1);
}

__attribute__((noipa)) static int scenario(int n)
{
	volatile char deeper[4096] = { 0 };	/* makes this frame large. So the calls after this
						 * function have return slots at higher addresses
						 * than the calls of this function */
	volatile int r = 0;

	(void)deeper[0];

	if (!sigsetjmp(out, 1)) {
		set_trap_flag(!breakpoint.path);
		r = step_outer(n);
		set_trap_flag(false);
		assert_int_equal(r, 2 * n + 3);
	}
	set_trap_flag(false);
	return r;
}

__attribute__((used)) int step_deep_body(int n)
{
	count(&made);
	return n ? step_deep(n - 1) : scenario(n);
}

/* Checks that each call has one end in the records. If a jump abandons the writing of an ENTRY, the
 * call's EXIT has no ENTRY. If a jump abandons the writing of an end, there is a hole, or the end
 * is reported as cut off. Without a jump, no end may be missing. */
static void check_account(const char *when)
{
	long ends = 0, holes = 0, depth = 0;
	uint64_t *end = step_pos;

	for (uint64_t *w = words; w < end; w++) {
		if (!*w)
			holes++;
		else if ((*w & 3) == WORD_ENTRY)
			depth++;
		else
			ends++;
		if (*w && (*w & 3) != WORD_ENTRY && (*w & 3) != WORD_LEAF)
			depth--;
	}
	/* A jump abandons the calls that its handlers interrupted. The array may already hold such
	 * a call although `made` doesn't count it yet. So with each jump there may be one end too
	 * many for each handler. A jump inside a handler may leave an open call in the array's
	 * element that the interrupted stub then overwrites. So with each such jump one end may be
	 * missing. */
	if (ends + holes + cut < made - inside_jumps || ends > made + jumps * (then_at ? 2 : 1) ||
	    (!jumps && (ends != made || holes || cut || depth)))
		fail_msg("%s: %ld calls, %ld ends, %ld holes, %ld cut, %ld jumps, %ld open "
			 "(%s at step %ld, %s at %ld)",
			 when, made, ends, holes, cut, jumps, depth, act_names[act], first_at,
			 act_names[second], then_at);
}

/* Calls a traced function. The traced function jumps back to the sigsetjmp. */
static void jump_inside(void)
{
	sigjmp_buf here, *volatile outer = inside;

	inside = &here;
	if (!sigsetjmp(here, 0))
		step_outer(5);
	inside = outer;
}

static void fork_here(void)
{
	pid_t pid = (pid_t)syscall(SYS_fork);
	int status = 0;

	if (!pid) {
		/* as if the kernel had wiped the agent's memory at the fork */
		step_top = &segments[0].call[0];
		step_outer(5);
		return;		/* the child goes on with the test, and exits in finish() */
	}
	waitpid(pid, &status, 0);
	assert_int_equal(status, 0);
}

static void handler_acts(enum act what)
{
	enum act outer = doing;

	doing = what;
	switch (what) {
	case NOTHING:
	case NR_ACTS:
		break;
	case JUMP:
		count(&jumps);
		siglongjmp(out, 1);
	case CALLS:
		step_outer(5);
		step_inner(6);
		break;
	case CALLS_JUMP:
		count(&jumps);
		step_outer(5);
		break;
	case JUMP_INSIDE:
		/* the jump may leave an open call in the array's entry that the interrupted call is
		 * about to take */
		count(&jumps);
		count(&inside_jumps);
		jump_inside();
		break;
	case FORK:
		fork_here();
	}
	doing = outer;
}

static bool hangs;
static long leaves_calls;	/* the handlers leave 1 to leaves_calls calls open, in turn */
static struct pb_open_call *enter(uint64_t slot);

/* Enters calls and never ends them, as if a jump inside of the handler had abandoned the calls. The
 * first of these calls closes those that an earlier handler has left. */
static void leave_calls(ucontext_t *uc)
{
	step_pos = words;
	for (long i = 0; i <= step % leaves_calls; i++)
		enter(0x300 - 8 * (uint64_t)i);
	hangs = step > MOST_STEPS;
	if (hangs)
		uc->uc_mcontext.gregs[REG_EFL] &= ~(greg_t)TRAP_FLAG;
}

/* The second handler will interrupt what this handler does, or what the program does after it. */
static void act_interrupted(ucontext_t *uc)
{
	path = &to_second;
	path_begin = step;
	step_at = step + second_at;
	second_at = 0;
	path_arm(&breakpoint, path);
	set_trap_flag(!breakpoint.path);
	handler_acts(act);
	set_trap_flag(false);
	if (breakpoint.path)
		uc->uc_mcontext.gregs[REG_EFL] &= ~(greg_t)TRAP_FLAG;
}

static void on_step(int sig, siginfo_t *info, void *context)
{
	ucontext_t *uc = context;

	step = path_arrived(&breakpoint, uc) ? path_begin + path->known : step + 1;
	if (path)
		path_note(path, step - path_begin, uc);
	if (leaves_calls)
		leave_calls(uc);
	if (step != step_at)
		return;
	if (second_at) {
		act_interrupted(uc);
		return;
	}
	uc->uc_mcontext.gregs[REG_EFL] &= ~(greg_t)TRAP_FLAG;
	handler_acts(second == NR_ACTS ? act : second);
}

struct kernel_sigaction {
	void *handler;
	unsigned long flags;
	void *restorer;
	uint64_t mask;
};
void step_restorer(void);
__asm__(".text; step_restorer: mov $15, %eax; syscall");

static void install(void)
{
	struct kernel_sigaction sa = { .handler = on_step, .restorer = step_restorer,
		.flags = SA_SIGINFO | SA_NODEFER | 0x04000000 };

	assert_int_equal(syscall(SYS_rt_sigaction, SIGTRAP, &sa, NULL, 8), 0);
}

static void begin(void)
{
	memset(words, 0, (size_t)((char *)step_pos - (char *)words));
	step_pos = words;
	made = jumps = inside_jumps = cut = step = path_begin = 0;
	path = NULL;
	doing = NOTHING;
	nr_segments = 1;
	pb_open_segment_init(&segments[0], NULL, ~0ul >> 1);
	segments[0].call[0].state = 1;
	/* The word of a foot (a segment's first entry) is a slot minus 1. Slots are multiples of 8.
	 * ~0ul >> 1 isn't a slot, so the low bits are set as a real stack has them. */
	segments[0].call[0].word &= ~7l;
	segments[0].call[0].word |= 7;
	step_top = &segments[0].call[0];
}

/* Makes two more calls. After them, only calls that a jump has abandoned may be in the array. */
__attribute__((noipa)) static void finish(pid_t parent)
{
	doing = NOTHING;
	step_at = 0;
	step_outer(1);
	step_outer(2);
	/* A jump may have abandoned a call above the top. If no later call has taken that call's
	 * entry, this loop finds the call. */
	for (unsigned i = 0; i < nr_segments && i < NR_SEGMENTS; i++) {
		for (unsigned k = 1; k <= PB_OPEN_CALLS; k++) {
			struct pb_open_call *c = &segments[i].call[k];

			if (c->word == PB_OPEN_FREE)
				continue;
			if (!jumps || c < step_top)
				fail_msg("entry %u is %lx (%s at step %ld, %s at %ld)", k, c->word,
					 act_names[act], first_at, act_names[second], then_at);
			if (c->word > 0)
				on_skipped(NULL, c);
			else
				count(&cut);
		}
	}
	check_account(getpid() == parent ? "after" : "in the child");
	if (getpid() != parent)
		_exit(0);
}

/* Returns whether there are at least k steps. */
static bool run(int depth, enum act a, long k, enum act b, long j)
{
	pid_t parent = getpid();
	bool reached;

	begin();
	act = a;
	second = b;
	step_at = first_at = k;
	second_at = then_at = j;
	doing = NOTHING;
	path = &to_first;
	path_arm(&breakpoint, path);
	if (depth)
		step_deep(depth);
	else
		scenario(0);
	reached = step >= step_at;
	set_trap_flag(false);
	assert_false(path_disarm(&breakpoint));
	second_at = 0;
	finish(parent);
	return reached;
}

static void forget(struct step_path *p)
{
	memset(p, 0, sizeof(*p));
}

static void all_steps(int depth, int stride)
{
	for (enum act a = NOTHING; a < NR_ACTS; a++, forget(&to_first))
		for (long k = 1 + (a + depth) % stride; run(depth, a, k, NR_ACTS, 0); k += stride)
			;
}

static void test_each_step(void **state)
{
	install();
	step_pos = words + NR_WORDS;
	all_steps(0, 1);
}

/* Makes calls near the end of a segment. Most of their steps are in the slow paths. */
static void test_segments(void **state)
{
	install();
	step_pos = words + NR_WORDS;
	for (int depth = PB_OPEN_CALLS - 3; depth <= (int)PB_OPEN_CALLS + 1; depth++)
		all_steps(depth, dense ? 3 : 41);
}

static void test_two_handlers(void **state)
{
	long n = 0;

	install();
	step_pos = words + NR_WORDS;
	for (enum act a = CALLS; a < FORK; a++)
		for (enum act b = CALLS; b < NR_ACTS; b++, forget(&to_first), forget(&to_second))
			for (long k = 1 + (a + b) % 7; n++, run(0, a, k, b, 1);
			     k += dense ? 1 : 13, forget(&to_second))
				for (long j = 2 + k % 61; run(0, a, k, b, j);
				     j += b == FORK ? 301 : dense ? 2 : 61)
					n++;
	assert_true(n > 200);
}

/* A call that isn't traced returns through the return slot of a call that a jump has abandoned. */
static void test_another_call_returns(void **state)
{
	struct pb_open_call *c;

	step_pos = words + NR_WORDS;
	begin();
	c = pb_open_enter(&step_top, 0x1000, &hooks);
	c->ret = 1;
	c->state = 0;
	pb_open_commit(c, 0x1000);
	assert_null(pb_open_exit(&step_top, 0x1000, 2, &hooks));
	assert_int_equal(step_pos - words, 1);
	assert_int_equal(c->word, PB_OPEN_FREE);
	assert_ptr_equal(step_top, &segments[0].call[0]);
}

static struct pb_open_call *enter(uint64_t slot)
{
	struct pb_open_call *c = pb_open_enter(&step_top, slot, &hooks);

	c->state = 0;
	pb_open_commit(c, slot);
	return c;
}

/* A jump abandoned a call, whose entry is above the innermost call's entry. A new call takes the
 * abandoned call's entry. The abandoned call must not become the new call's parent. */
static void test_left_above(void **state)
{
	struct pb_open_call *c, *left, *parent;

	step_pos = words + NR_WORDS;
	begin();
	c = enter(0x1000);
	left = enter(0x900);
	c->word = PB_OPEN_FREE;		/* as the exit of c does if step_top points to c: it
					 * doesn't look at `left`, which comes after c */
	step_top = &segments[0].call[0];
	parent = step_top + 1;
	parent->word = 0x800;
	step_top = parent;
	assert_ptr_equal(parent, c);
	c = enter(0x700);
	assert_ptr_equal(c, left);
	assert_ptr_equal(pb_open_parent(c), parent);
	assert_int_equal(step_pos - words, 1);
}

/* A jump abandoned the exit of a call, or the entry of a call. The next call has the same return
 * slot. The exit is reported as cut off. The entry isn't reported, because its call was never
 * made. */
static void test_left_in_the_same_slot(void **state)
{
	struct pb_open_call *left, *c;

	step_pos = words + NR_WORDS;
	begin();
	left = enter(0x1000);
	left->word = 0x1000 | 1l << 63;
	c = enter(0x1000);
	assert_ptr_equal(c, left);
	assert_true(pb_open_is_root(pb_open_parent(c)));
	assert_int_equal(cut, 1);
	c->word = ~0x1000l;
	assert_ptr_equal(enter(0x1000), c);
	assert_int_equal(cut, 1);
	assert_int_equal(step_pos - words, 0);
}

/* At each instruction of the functions that close calls, a handler enters calls and leaves them
 * open. The functions must still end. A last close must remove the handler's calls from the
 * array. */
static void left_at_each_step(long calls)
{
	step_pos = words;
	begin();
	enter(0x1000)->ret = 5;
	leaves_calls = calls;
	set_trap_flag(true);
	pb_open_enter(&step_top, 0x700, &hooks);
	pb_open_close(&step_top, 0x700, &hooks);
	pb_open_at(&step_top, 0x1000, 5, &hooks);
	set_trap_flag(false);
	leaves_calls = 0;
	if (hangs)
		fail_msg("no end if handlers leave 1 to %ld calls open", calls);
	assert_true(step > 1000);
	step_pos = words;
	pb_open_close(&step_top, 0x700, &hooks);
	assert_int_equal(step_top->word, 0x1000);
}

/* At successive instructions the handler leaves 1, 2, ..., `calls` calls open, and then begins
 * again with 1. A loop in open_calls.c looks at one call in each iteration. With some values of
 * `calls`, the handler closes just that call each time, and leaves new ones. Only the loop's limit
 * on its iterations then ends it. */
static void test_left_at_each_step(void **state)
{
	install();
	for (long calls = 1; calls <= 16; calls += dense ? 1 : 5)
		left_at_each_step(calls);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_left_in_the_same_slot),
		cmocka_unit_test(test_another_call_returns),
		cmocka_unit_test(test_left_above),
		cmocka_unit_test(test_left_at_each_step),
		cmocka_unit_test(test_each_step),
		cmocka_unit_test(test_segments),
		cmocka_unit_test(test_two_handlers),
	};

	dense = argc > 1;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
