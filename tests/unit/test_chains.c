/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Chains of open calls in which entries were freed as dead, and claimed for other calls since
 * (engine/fgraph.c); and slots that are read while a call returns (engine/gate.c). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "engine/calls.h"
#include "engine/fgraph.h"
#include "engine/ftrace.h"
#include "engine/interrupt.h"
#include "engine/latch.h"
#include "engine/sweep.h"

#define OWN	0x7f0000000000ul
#define CORO	0x7e0000000000ul
#define SIZE	0x10000ul
#define SITE	7

/* Entries lie PB_GATE_DISTANCE behind their gates. */
__asm__(".bss; .balign 4096; .globl pb_gates, pb_entries\n"
	"pb_gates: .zero 0x800000\n"
	"pb_entries: .zero 0x900000; .text");
_Static_assert(PB_GATE_DISTANCE == 0x800000 && 4 * PB_ENTRY_ARRAY <= 0x900000, "the arrays");

__thread struct pb_thread *pb_tls;
struct pb_process *pb_process;
bool pb_latched;

static struct pb_process process;
static struct pb_thread thread;
static struct pb_stack coro;
static uint32_t nr_entries, nr_ends;

/* With return gates. */
bool pb_return_sites;

const struct pb_stack *pb_calls_stack(struct pb_thread *t, uint64_t slot)
{
	return NULL;
}

void pb_calls_close_stack(struct pb_thread *t, struct pb_stack *s) { }
void pb_calls_enter(struct pb_site *site, uint64_t *slot, unsigned mode) { }

size_t pb_calls_open(struct pb_thread *t, uint64_t *out, size_t max, uint32_t *depth,
		     const struct pb_open_call *ending)
{
	return 0;
}

/* What the two files ask of others. */
bool pb_writer_put_end(struct pb_writer *w, uint64_t word, uint64_t time, unsigned bits,
		       const uint64_t *payload, unsigned nr, const void *ending)
{
	nr_ends++;
	return true;
}

bool pb_writer_put(struct pb_writer *w, uint64_t word, uint64_t time, unsigned bits,
		   const uint64_t *payload, unsigned nr)
{
	return true;
}

bool pb_writer_put_entry(struct pb_writer *w, uint64_t word, uint64_t time)
{
	return true;
}

bool pb_writer_put_long(struct pb_writer *w, uint32_t site, uint64_t start, uint64_t end)
{
	return true;
}

void pb_writer_lost(struct pb_writer *w) { }
void pb_writer_no_return(struct pb_writer *w) { }
void pb_writer_stay(struct pb_writer *w) { }
void pb_sweep_wanted(struct pb_thread *t, const struct pb_hit *h) { }
void pb_free_if_dead(struct pb_thread *t, const struct pb_hit *h, struct pb_entry *e) { }
void pb_close_stack(struct pb_thread *t, const struct pb_hit *h, struct pb_stack *s) { }
void pb_interrupt_returned(const struct pb_entry *e, uint64_t *slot) { }
void pb_stack_drop(struct pb_stack *s) { }
void pb_stack_add(struct pb_thread *t, uint64_t lo, uint64_t hi) { }
struct pb_entry *pb_claim(struct pb_thread *t, const struct pb_hit *h) { return NULL; }
struct pb_thread *pb_thread_get(uint64_t slot) { return &thread; }
bool pb_thread_use_stack(struct pb_thread *t, struct pb_stack *s) { return false; }
bool pb_thread_own_bounds(const struct pb_thread *t, struct pb_stack *s) { return false; }
bool pb_stack_is_idle(const struct pb_stack *s) { return false; }
bool pb_site_is_caller(uint32_t site) { return false; }
unsigned pb_ftrace_list(struct pb_site *site, uint64_t parent_ip) { return PB_ENTER_LIST; }

struct pb_stack *pb_thread_other_stack(struct pb_thread *t, uint64_t slot, struct pb_stack **gone)
{
	*gone = NULL;
	return NULL;
}

struct pb_stack *pb_stack_overlapping(struct pb_stack *after, uint64_t lo, uint64_t hi)
{
	return NULL;
}

/* A live call with its slot there and an ENTRY; below a parent, unless it is a root. */
static struct pb_entry *call(uint64_t slot, struct pb_entry *parent)
{
	struct pb_entry *e = (struct pb_entry *)(pb_entries + 16ul * ++nr_entries);

	PB_ENT_SLOT(e) = parent ? slot - PB_SLOT_LIVE : slot;
	PB_ENT_DEPTH(e) = parent ? pb_depth(parent) + 1 : 0;
	PB_ENT_PARENT(e) = parent ? parent : e;
	PB_ENT_SITE(e) = parent ? SITE : 0;
	PB_ENT_STATE(e) = PB_ENTRY_EMITTED;
	return e;
}

static int begin(void **state)
{
	nr_entries = nr_ends = 0;
	pb_process = &process;
	thread = (struct pb_thread){ .own = { .lo = OWN, .hi = OWN + SIZE } };
	coro = (struct pb_stack){ .lo = CORO, .hi = CORO + SIZE };
	thread.own.root = call(OWN + SIZE, NULL);
	coro.root = call(CORO + SIZE, NULL);
	thread.stack = &coro;
	return 0;
}

static void the_caller_is_next(void **state)
{
	struct pb_entry *outer = call(CORO + 0x8000, coro.root), *inner = call(CORO + 0x7000, outer);

	thread.cur = inner;
	pb_fgraph_close(&thread, inner, 0);
	assert_ptr_equal(thread.cur, outer);
	pb_fgraph_close(&thread, outer, 0);
	assert_ptr_equal(thread.cur, coro.root);
	assert_int_equal(nr_ends, 2);
}

/* The caller's entry was found dead, and stands for a call on a thread's own stack now, which
 * lies above. That call isn't over. */
static void a_live_call_elsewhere_is_no_caller(void **state)
{
	struct pb_entry *live = call(OWN + 0x8000, thread.own.root), *dead = call(CORO + 0x7000, live);

	thread.cur = dead;
	pb_fgraph_close(&thread, dead, 0);
	assert_ptr_equal(thread.cur, coro.root);
	assert_int_equal(PB_ENT_STATE(live), PB_ENTRY_EMITTED);
}

/* It watches the return of a handler, or of a function with programs, on this stack. */
static void a_watched_return_is_no_caller(void **state)
{
	struct pb_entry *watched = call(CORO + 0x8000, coro.root), *dead = call(CORO + 0x7000, watched);

	PB_ENT_SITE(watched) = 0;
	thread.cur = dead;
	pb_fgraph_close(&thread, dead, 0);
	assert_ptr_equal(thread.cur, coro.root);
}

/* A handler interrupts the change to another stack: thread.cur is still the former one's. */
static void the_chain_left_is_whole(void **state)
{
	struct pb_entry *outer = call(OWN + 0x8000, thread.own.root), *inner = call(OWN + 0x7000, outer);

	thread.cur = inner;
	pb_fgraph_close(&thread, inner, 0);
	assert_ptr_equal(thread.cur, outer);
}

/* A program watches the return of a call, and both are returning: the call's entry is free
 * already, or another call's, and the slot is to be given the program's gate. */
static void a_return_is_under_way(void **state)
{
	struct pb_entry *prog = call(CORO + 0x8000, coro.root), *e = call(CORO + 0x8000, coro.root);
	struct pb_entry *other = call(CORO + 0x8000, coro.root);
	uint64_t slot = CORO + 0x8000;

	PB_ENT_RET(e) = pb_gate_of(prog) + PB_GATE_RETURN;
	assert_true(pb_gate_leads(pb_gate_of(e) + PB_GATE_RETURN, slot, prog));
	PB_ENT_SLOT(e) = 0;
	assert_true(pb_gate_leads(pb_gate_of(e) + PB_GATE_RETURN, slot, prog));
	PB_ENT_SLOT(e) = CORO + 0x6000 - PB_SLOT_LIVE;
	PB_ENT_RET(e) = 0x1000;
	assert_true(pb_gate_leads(pb_gate_of(e) + PB_GATE_RETURN, slot, prog));
	/* but a later call in the same slot doesn't lead there, nor does an address */
	PB_ENT_RET(other) = 0x1000;
	assert_false(pb_gate_leads(pb_gate_of(other) + PB_GATE_RETURN, slot, prog));
	assert_false(pb_gate_leads(0x1000, slot, prog));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(the_caller_is_next, begin),
		cmocka_unit_test_setup(a_live_call_elsewhere_is_no_caller, begin),
		cmocka_unit_test_setup(a_watched_return_is_no_caller, begin),
		cmocka_unit_test_setup(the_chain_left_is_whole, begin),
		cmocka_unit_test_setup(a_return_is_under_way, begin),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
