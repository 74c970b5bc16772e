/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Three threads use the table of stacks at once (engine/graph/stack.c, stack_table.c). The first
 * comes to the stacks and opens and ends calls there. The second closes the calls that are left
 * there. The third drops stacks without open calls, and takes their descriptors for new stacks. At
 * any time at most one thread may work with a stack's calls. The functions for a stack's calls are
 * replaced, so the test sees when a thread does that.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <pthread.h>

#include "engine/graph/calls.h"
#include "engine/graph/chains.h"
#include "engine/graph/thread.h"
#include "engine/latch.h"

#define STACKS	2
#define ROUNDS	2000000
#define SIZE	0x10000ul
#define LO(i)	(0x7e0000000000ul + (i) * SIZE)

bool pb_latched;
static struct pb_ring ring;
struct pb_ring_map pb_ring_map = { .ring = &ring };
static struct pb_process process;
static struct pb_thread threads[2];		/* of the first and the second thread */
static struct pb_stack stacks[PB_MAX_STACKS];
static struct pb_open_segment own_calls[2] __attribute__((aligned(PB_OPEN_SEGMENT)));
static struct pb_open_segment calls[STACKS] __attribute__((aligned(PB_OPEN_SEGMENT)));

static uint32_t users[STACKS], nr_open[STACKS], errors;
static uint64_t visits, uses, drops;
#define ENOUGH	10			/* at least so many of each, even if a thread starts late */
static bool ended;

static void begin_work(const struct pb_stack *s)
{
	if (__atomic_fetch_add(&users[s - stacks], 1, __ATOMIC_SEQ_CST))
		__atomic_add_fetch(&errors, 1, __ATOMIC_RELAXED);
}

static void end_work(const struct pb_stack *s)
{
	__atomic_sub_fetch(&users[s - stacks], 1, __ATOMIC_SEQ_CST);
}

/* The replaced functions. pb_stack_take() calls the first two. */
void pb_chain_end(struct pb_stack *s)
{
	begin_work(s);
	s->top = NULL;
}

void pb_chain_begin(struct pb_stack *s)
{
	uint64_t i = (uint64_t)(s - stacks);

	nr_open[i] = 0;
	pb_open_segment_init(&calls[i], NULL, s->hi);
	calls[i].stack = s;
	s->top = calls[i].call;
	end_work(s);
}

bool pb_chain_is_empty(const struct pb_stack *s)
{
	return !__atomic_load_n(&nr_open[s - stacks], __ATOMIC_RELAXED);
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

void pb_chain_none(struct pb_stack *s)
{
}

void pb_chain_forget_returns(void)
{
}

uint64_t pb_chain_outermost(const struct pb_stack *s)
{
	return 0;
}

uint64_t pb_chain_innermost(const struct pb_thread *t, const struct pb_stack *s)
{
	return 0;
}

bool pb_writer_put_untimed(struct pb_writer *w, uint64_t word, const uint64_t *payload,
			   unsigned nr)
{
	return true;
}

static void make_thread(uint32_t i)
{
	struct pb_thread *t = &threads[i];
	uint64_t lo = 0x7f0000000000ul + i * SIZE;

	*t = (struct pb_thread){
		.own = { .lo = lo, .hi = lo + SIZE, .thread = t, .id = 1ul << 63, .exact = true },
	};
	pb_open_segment_init(&own_calls[i], NULL, t->own.hi);
	own_calls[i].stack = &t->own;
	t->stack = &t->own;
	t->lo = lo;
	t->top = t->own.top = own_calls[i].call;
}

static void *drop(void *arg)
{
	for (uint64_t n = 0; !__atomic_load_n(&ended, __ATOMIC_RELAXED); n++) {
		uint32_t i = n % STACKS;
		struct pb_stack *s;

		pb_stack_drop(&stacks[i]);
		if (__atomic_load_n(&stacks[i].id, __ATOMIC_RELAXED))
			continue;
		s = pb_stack_take(LO(i), LO(i) + SIZE, true);
		if (s != &stacks[i])
			__atomic_add_fetch(&errors, 1, __ATOMIC_RELAXED);
		if (s)
			pb_stack_set_filled(&threads[0], s);
		__atomic_add_fetch(&drops, 1, __ATOMIC_RELAXED);
	}
	return NULL;
}

static void *visit(void *arg)
{
	struct pb_thread *t = &threads[1];

	for (uint64_t n = 0; !__atomic_load_n(&ended, __ATOMIC_RELAXED); n++) {
		struct pb_stack *s = &stacks[n % STACKS];

		if (!pb_stack_visit(t, s))
			continue;
		begin_work(s);
		if (!t->top || pb_open_segment_of(t->top)->stack != s)
			__atomic_add_fetch(&errors, 1, __ATOMIC_RELAXED);
		__atomic_store_n(&nr_open[s - stacks], 0, __ATOMIC_RELAXED);
		__atomic_add_fetch(&visits, 1, __ATOMIC_RELAXED);
		end_work(s);
		pb_stack_leave(t, s, &t->own);
	}
	return NULL;
}

static void use(void)
{
	struct pb_thread *t = &threads[0];

	for (uint64_t n = 0; n < ROUNDS || __atomic_load_n(&visits, __ATOMIC_RELAXED) < ENOUGH ||
	     __atomic_load_n(&drops, __ATOMIC_RELAXED) < ENOUGH; n++) {
		struct pb_stack *s = &stacks[n % STACKS];

		if (!pb_thread_use_stack(t, s, LO(n % STACKS) + 0x8000))
			continue;
		begin_work(s);
		if (!t->top || pb_open_segment_of(t->top)->stack != s)
			__atomic_add_fetch(&errors, 1, __ATOMIC_RELAXED);
		__atomic_store_n(&nr_open[s - stacks], n / STACKS % 3 == 0, __ATOMIC_RELAXED);
		uses++;
		end_work(s);
		assert_true(pb_thread_use_stack(t, &t->own, t->own.hi - 64));
	}
}

static void one_at_a_time(void **state)
{
	pthread_t dropper, visitor;

	pb_process = &process;
	pb_threads = threads;
	pb_stacks = stacks;
	process = (struct pb_process){ .pid = 1, .epoch = 1, .nr_threads = 2 };
	make_thread(0);
	make_thread(1);
	for (uint32_t i = 0; i < STACKS; i++) {
		struct pb_stack *s = pb_stack_take(LO(i), LO(i) + SIZE, true);

		assert_ptr_equal(s, &stacks[i]);
		pb_stack_set_filled(&threads[0], s);
	}
	assert_int_equal(pthread_create(&dropper, NULL, drop, NULL), 0);
	assert_int_equal(pthread_create(&visitor, NULL, visit, NULL), 0);
	use();
	__atomic_store_n(&ended, true, __ATOMIC_RELAXED);
	pthread_join(dropper, NULL);
	pthread_join(visitor, NULL);
	print_message("%lu uses, %lu visits, %lu drops\n", uses, visits, drops);
	assert_int_equal(errors, 0);
	assert_true(uses >= ENOUGH);
}

/* A handler interrupts a visit and leaves it by a jump. Hits inside the handler change nothing. The
 * first hit of a function that was called before the visit ends the visit. */
static void left_by_a_jump(void **state)
{
	struct pb_thread *t = &threads[1];
	struct pb_stack *s = &stacks[0];
	uint64_t at = t->own.hi - 0x1000;

	nr_open[0] = 1;
	t->w.slot = at;
	assert_true(pb_stack_visit(t, s));
	assert_false(pb_stack_visit_was_left(t, at - 8));
	assert_false(pb_stack_visit_was_left(t, LO(0) + 0x8000));
	assert_false(pb_stack_visit(t, &stacks[1]));
	assert_false(pb_thread_use_stack(&threads[0], s, LO(0) + 0x8000));

	assert_true(pb_stack_visit_was_left(t, at));
	assert_true(pb_stack_visit_was_left(t, at + 0x100));
	pb_stack_end_visit(t);
	assert_int_equal(s->closing, 0);
	assert_true(pb_thread_use_stack(t, &t->own, at + 0x100));
	assert_true(pb_stack_visit(t, s));
	pb_stack_leave(t, s, &t->own);
	assert_true(pb_thread_use_stack(&threads[0], s, LO(0) + 0x8000));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(one_at_a_time), cmocka_unit_test(left_by_a_jump),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
