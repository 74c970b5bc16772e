/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Tests the state of a thread (engine/graph/interrupt.c, stack.c) after a signal handler has
 * interrupted the engine at an instruction that other tests can't hit. */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <cmocka.h>

#include "engine/graph/calls.h"
#include "engine/graph/interrupt.h"
#include "engine/latch.h"
#include "engine/graph/thread.h"
#include "engine/graph/thread_words.h"
#include "engine/uaccess.h"

#define LIBC	((greg_t)0x1000)	/* a PC outside of the agent */
#define OWN	0x7f0000000000ul
#define CORO	0x7e0000000000ul
#define HANDLER	0x7d0000000000ul
#define HIGH	0x7f8000000000ul
#define SIZE	0x10000ul

extern char __ehdr_start[];
#define AGENT	((greg_t)__ehdr_start)	/* a PC in this program, which plays the agent */
__thread struct pb_unblocked pb_unblocked;
bool pb_latched;
static struct pb_ring ring;
struct pb_ring_map pb_ring_map = { .ring = &ring };

static struct pb_process process;
static struct pb_thread thread;
static struct pb_stack stacks[PB_MAX_STACKS];
static struct pb_open_segment calls_on[3] __attribute__((aligned(PB_OPEN_SEGMENT)));
#define own_calls	calls_on[0]
#define coro_calls	calls_on[1]
#define handler_calls	calls_on[2]
static unsigned nr_pending, pending_at_close, nr_closed, made_anew, nr_resumed;
static jmp_buf left;
static bool leaves;
static bool follows = true;

/* Replacements for functions that interrupt.c and stack.c call. */
uint64_t pb_writer_interrupted(struct pb_writer *w, uint64_t sp, uint64_t slot)
{
	return nr_pending++;
}

void pb_own_resume(ucontext_t *uc, uint64_t begin, uint64_t size)
{
	nr_resumed++;
}

void pb_writer_resumed(struct pb_writer *w, uint64_t nr)
{
	nr_pending = (unsigned)nr;
}

void pb_chain_begin(struct pb_stack *s)
{
	struct pb_open_segment *calls = s->lo == CORO ? &coro_calls : &handler_calls;

	pb_open_segment_init(calls, NULL, s->hi);
	calls->stack = s;
	s->top = calls->call;
}

bool pb_chain_is_left(uint64_t slot)
{
	return false;
}

void pb_chain_inherit(struct pb_stack *s, uint64_t slot)
{
}

bool pb_chain_is_reserved(const struct pb_stack *s)
{
	return false;
}

void pb_chain_set_bounds(const struct pb_stack *s)
{
}

void pb_chain_end(struct pb_stack *s)
{
}

void pb_chain_forget_returns(void)
{
}

/* Return slots of the innermost and outermost calls that another thread has open on a stack. If
 * outermost is 0, no call is open. If innermost is 0, the other thread is changing its innermost
 * call. */
static uint64_t innermost, outermost;

bool pb_chain_is_empty(const struct pb_stack *s)
{
	return !outermost;
}

void pb_chain_none(struct pb_stack *s)
{
}

uint64_t pb_chain_outermost(const struct pb_stack *s)
{
	return outermost;
}

uint64_t pb_chain_innermost(const struct pb_thread *t, const struct pb_stack *s)
{
	return innermost;
}

struct pb_thread *pb_thread_get(uint64_t slot)
{
	if (!follows)
		return NULL;
	made_anew++;
	pb_tls->top = own_calls.call;
	return pb_tls;
}

void pb_writer_void(struct pb_writer *w)
{
	w->pos = 1;
}

void pb_thread_words_copy(struct pb_thread *t)
{
}

void pb_calls_handler_over(struct pb_thread *t, uint64_t slot)
{
	pending_at_close = nr_pending;
	nr_closed++;
}

bool pb_writer_put_untimed(struct pb_writer *w, uint64_t word, const uint64_t *payload,
			   unsigned nr)
{
	if (leaves)
		longjmp(left, 1);
	return true;
}

/* Adds a call with the return slot `slot`, inside the call `below`. */
static struct pb_open_call *call(struct pb_open_call *below, uint64_t slot)
{
	below[1].word = (int64_t)slot;
	return below + 1;
}

static int begin(void **state)
{
	pb_process = &process;
	pb_threads = &thread;
	process = (struct pb_process){ .pid = 1, .epoch = 1, .nr_threads = 1 };
	pb_stacks = stacks;
	pb_tls = &thread;
	thread = (struct pb_thread){
		.own = { .lo = OWN, .hi = OWN + SIZE, .thread = &thread, .id = 1ul << 63,
			 .exact = true },
	};
	pb_open_segment_init(&own_calls, NULL, OWN + SIZE);
	own_calls.stack = &thread.own;
	thread.stack = &thread.own;
	thread.lo = OWN;
	thread.top = thread.own.top = call(own_calls.call, OWN + 0x8000);
	pb_stack_add(&thread, CORO, CORO + SIZE, false);
	pb_stack_add(&thread, HANDLER, HANDLER + SIZE, false);
	nr_pending = nr_resumed = 0;
	return 0;
}

static int end(void **state)
{
	/* pb_own_resume() is called only in a forked child. Only one test plays a child: it sets
	 * process.epoch to 2, and ends a handler three times. */
	assert_int_equal(nr_resumed, process.epoch == 1 ? 0 : 3);
	leaves = false;
	stacks[0] = stacks[1] = (struct pb_stack){ 0 };
	return 0;
}

static ucontext_t context(greg_t rip, bool blocked)
{
	ucontext_t uc = { .uc_mcontext.gregs = { [REG_RIP] = rip, [REG_RSP] = OWN + 0x4000 } };

	if (blocked)
		sigaddset(&uc.uc_sigmask, SIGSEGV);
	return uc;
}

/* The calls that the handler makes change w.slot, the return slot of the current hit. After the
 * handler, the interrupted hit must find its own slot in w.slot. */
static void the_hit_goes_on(greg_t rip, bool blocked)
{
	ucontext_t uc = context(rip, blocked);
	struct pb_interrupted i;

	pb_unblocked.slot = PB_MAIN_THREAD;
	pb_unblocked.known = 1;
	thread.w.slot = OWN + 0x7000;
	i = pb_interrupt_begin(&uc, OWN + 0x3000);
	assert_ptr_equal(i.inside, &thread);
	assert_int_equal(nr_pending, 1);
	thread.w.slot = OWN + 0x2000;
	pb_interrupt_end(&i, OWN + 0x3000, &uc);
	assert_int_equal(nr_pending, 0);
	assert_int_equal(thread.w.slot, OWN + 0x7000);
}

static void the_agent_is_interrupted(void **state)
{
	the_hit_goes_on(AGENT, false);
}

/* A load in the agent has faulted. A signal interrupts the return from the fault's handler, at one
 * of the two instructions by which libc calls rt_sigreturn. */
static void the_return_from_a_fault_is_interrupted(void **state)
{
	the_hit_goes_on(LIBC, true);
}

static void the_program_is_interrupted(void **state)
{
	ucontext_t uc = context(LIBC, false);

	pb_unblocked.known = 1;
	assert_null(pb_interrupt_begin(&uc, OWN + 0x3000).inside);
	pb_unblocked.known = 0;
	uc = context(LIBC, true);
	assert_null(pb_interrupt_begin(&uc, OWN + 0x3000).inside);
}

/* At its end, a handler may have open calls. To close them, the agent may have to change chunks.
 * Meanwhile, the agent must still know which record the interrupted code has yet to write. */
static void what_is_closed_knows_the_interrupted(void **state)
{
	ucontext_t uc = context(AGENT, false);
	struct pb_interrupted i = pb_interrupt_begin(&uc, OWN + 0x3000);

	pending_at_close = 0;
	pb_interrupt_end(&i, OWN + 0x3000, &uc);
	assert_int_equal(pending_at_close, 1);
	assert_int_equal(nr_pending, 0);
}

/* A handler interrupts a change to another stack. t->stack is already the new stack, but t->top
 * isn't yet the new stack's innermost call. */
static void a_change_of_stack_is_interrupted(void **state)
{
	struct pb_open_call *own = thread.top, *coro = call(coro_calls.call, CORO + 0x8000);
	struct pb_stack *c = &stacks[0], *h = &stacks[1];

	assert_true(pb_thread_use_stack(&thread, c, 0));
	thread.top = coro;
	assert_true(pb_thread_use_stack(&thread, &thread.own, 0));
	assert_ptr_equal(thread.top, own);
	/* the change back to the coroutine's stack has set only t->stack */
	thread.stack = c;
	assert_true(pb_thread_use_stack(&thread, h, 0));
	assert_true(pb_stack_return(&thread, c, 0));
	assert_ptr_equal(thread.top, coro);
	assert_true(pb_thread_use_stack(&thread, &thread.own, 0));
	assert_ptr_equal(thread.top, own);
}

/* A handler interrupts a change of stacks at the worst instruction, and leaves by a jump. t->stack
 * is already the new stack, which has higher addresses. t->top is still a call on the former
 * stack. */
static void a_change_of_stack_is_left(void **state)
{
	struct pb_open_call *own = thread.top;
	struct pb_stack *gone, *s;

	pb_stack_add(&thread, HIGH, HIGH + SIZE, false);
	s = pb_thread_other_stack(&thread, HIGH + 0x1000, &gone);
	assert_int_equal(s->lo, HIGH);
	leaves = true;
	if (!setjmp(left))
		pb_thread_use_stack(&thread, s, 0);
	leaves = false;
	/* so the assembly passes the next hit, whose slot is lower, to C code */
	assert_true(thread.lo > OWN + 0x7000);
	s = pb_thread_other_stack(&thread, OWN + 0x7000, &gone);
	assert_ptr_equal(s, &thread.own);
	assert_true(pb_thread_use_stack(&thread, s, 0));
	assert_ptr_equal(thread.top, own);
	assert_int_equal(thread.lo, OWN);
	stacks[2] = (struct pb_stack){ 0 };
}

/* The bounds of a stack may be guessed, and may wrongly include a neighbouring stack. If two
 * threads used the same struct pb_stack, they would damage its calls. So if another thread has open
 * calls on the stack, a thread may take the stack only if the thread's return slot lies between the
 * return slots of the outermost and the innermost of these calls. A slot close to them is enough if
 * the other thread is no longer on the stack. The thread then continues these calls. */
static void a_neighbour_gets_a_stack_of_its_own(void **state)
{
	struct pb_thread other = { .stack = &other.own, .top = coro_calls.call };
	struct pb_stack *s = &stacks[2];

	*s = (struct pb_stack){ .lo = CORO, .hi = CORO + SIZE, .thread = &other };
	pb_stack_set_filled(&thread, s);
	assert_false(pb_stack_is_anothers(&thread, s, CORO + 0x1000));	/* no call is open */
	innermost = CORO + 0xc000;
	outermost = CORO + 0xd000;
	assert_false(pb_stack_is_anothers(&thread, s, innermost));
	assert_false(pb_stack_is_anothers(&thread, s, innermost - 0x1000));
	assert_true(pb_stack_is_anothers(&thread, s, innermost - 0x4000));
	assert_true(pb_stack_is_anothers(&thread, s, outermost + 0x2800));
	innermost = 0;						/* the other thread is just changing
								 * its call */
	assert_true(pb_stack_is_anothers(&thread, s, CORO + 0xb000));
	innermost = CORO + 0xc000;
	other.stack = s;
	assert_false(pb_stack_is_anothers(&thread, s, innermost));
	assert_true(pb_stack_is_anothers(&thread, s, innermost - 0x1000));
	/* the other thread returned to the stack after the stack was found to be idle */
	assert_false(pb_thread_use_stack(&thread, s, innermost - 0x1000));
	assert_ptr_equal(s->thread, &other);
	assert_ptr_equal(thread.stack, &thread.own);
	assert_int_equal(thread.lo, OWN);
	innermost = outermost = 0;
	*s = (struct pb_stack){ 0 };
}

/* A handler runs on an alternate stack with higher addresses than the thread's own stack. No open
 * call is the handler's, so the handler's end must not close any call. */
static void a_handler_on_another_stack_closes_nothing(void **state)
{
	ucontext_t uc = context(AGENT, false);
	struct pb_interrupted i = pb_interrupt_begin(&uc, OWN + 0x3000);

	nr_closed = 0;
	pb_interrupt_end(&i, OWN + 0x3000, &uc);
	assert_int_equal(nr_closed, 1);
	i = pb_interrupt_begin(&uc, HIGH + 0x3000);
	pb_interrupt_end(&i, HIGH + 0x3000, &uc);
	assert_int_equal(nr_closed, 1);
}

/* A handler switches to another context, and another thread continues the handler. The stack that
 * was interrupted is part of the first thread's state, so the second thread must not take it. */
static void another_thread_ends_the_handler(void **state)
{
	struct pb_stack *const privates[] = { &thread.own, &thread.nowhere };
	struct pb_thread other;
	ucontext_t uc = context(LIBC, false);

	thread.nowhere = (struct pb_stack){ .lo = HIGH, .hi = HIGH + SIZE, .thread = &thread,
					    .id = 1ul << 62, .top = own_calls.call };
	for (int k = 0; k < 2; k++) {
		struct pb_interrupted i;

		pb_tls = &thread;
		thread.stack = privates[k];
		i = pb_interrupt_begin(&uc, OWN + 0x3000);
		other = (struct pb_thread){ .top = coro_calls.call, .stack = &other.own };
		other.own = (struct pb_stack){ .lo = CORO, .hi = CORO + SIZE, .thread = &other };
		pb_tls = &other;
		pb_interrupt_end(&i, OWN + 0x3000, &uc);
		assert_ptr_equal(privates[k]->thread, &thread);
		assert_ptr_equal(other.stack, &other.own);
	}
}

/* The handler forks. In the child, the kernel wipes the thread's state, but the interrupted code
 * still uses its address. So the state must be made again at this address. */
static void a_child_has_its_state_again(void **state)
{
	ucontext_t uc = context(AGENT, false);
	struct pb_interrupted i = pb_interrupt_begin(&uc, OWN + 0x3000);

	made_anew = 0;
	memset(&process, 0, sizeof(process));	/* as the kernel does in the child */
	memset(&thread, 0, sizeof(thread));
	follows = false;
	pb_interrupt_end(&i, OWN + 0x3000, &uc);
	assert_int_equal(thread.w.pos, 1);
	assert_null(thread.top);
	follows = true;
	pb_interrupt_end(&i, OWN + 0x3000, &uc);
	assert_int_equal(made_anew, 1);
	assert_non_null(thread.top);
	/* the handler has made calls in the child, so the state already exists */
	process.epoch = 2;
	pb_interrupt_end(&i, OWN + 0x3000, &uc);
	assert_int_equal(made_anew, 1);
	assert_int_equal(nr_resumed, 3);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(the_agent_is_interrupted, begin, end),
		cmocka_unit_test_setup_teardown(the_return_from_a_fault_is_interrupted, begin, end),
		cmocka_unit_test_setup_teardown(the_program_is_interrupted, begin, end),
		cmocka_unit_test_setup_teardown(what_is_closed_knows_the_interrupted, begin, end),
		cmocka_unit_test_setup_teardown(a_change_of_stack_is_interrupted, begin, end),
		cmocka_unit_test_setup_teardown(a_change_of_stack_is_left, begin, end),
		cmocka_unit_test_setup_teardown(a_neighbour_gets_a_stack_of_its_own, begin, end),
		cmocka_unit_test_setup_teardown(a_handler_on_another_stack_closes_nothing,
						begin, end),
		cmocka_unit_test_setup_teardown(another_thread_ends_the_handler, begin, end),
		cmocka_unit_test_setup_teardown(a_child_has_its_state_again, begin, end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
