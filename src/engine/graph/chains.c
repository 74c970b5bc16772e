/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Manages the memory for open calls, in segments of fixed size. All segments lie in one mapping,
 * and segments that were given back are in a lock-free list. So a hit can take a segment without a
 * system call. The mapping survives a fork. So the child can find the calls that were open on each
 * of its stacks.
 */
#include "engine/graph/chains.h"
#include <sys/mman.h>
#include <sys/resource.h>
#include "base/base.h"
#include "base/pages.h"
#include "base/sys.h"
#include "engine/graph/thread_state.h"

#define NR_SEGMENTS	32768	/* for 4 million open calls at a time; only memory that is touched
				 * is used */
#define PART		32	/* at most 1/PART of a limited address space is used */
#define FIRST_EPOCH	1u	/* the epoch of a process that isn't a forked child */
#define SPARE		64	/* when segments are given back, this many unused ones stay */
#define NAP_NS		1000000
#define MAX_NAPS	1000
#define NONE		0u	/* stands for "no segment" in lists of indices */

/* ---- segments ---------------------------------------------------------------- */

/* The segments, and the list of free segments. They aren't wiped in a forked child. The lower half
 * of free_list is the first free segment, as index + 1. next_free[] has each free segment's
 * successor, also as index + 1. Threads and signal handlers change free_list by compare-and-swap.
 * Its upper half counts the changes, so that a swap fails if the list was changed and changed back
 * meanwhile. */
static struct pb_open_segment *segments;
static uint32_t next_free[NR_SEGMENTS];
static uint64_t free_list;
static uint32_t nr_segments, nr_used;	/* the first nr_used segments were used; no segment from
					 * nr_segments on may be used */
static uint32_t nr_mapped;		/* number of segments that are mapped */

/* With these tables a forked child finds its open calls. `own` has the bounds and the first segment
 * of each thread's own stack, `kept` those of each other stack. An element of `kept` that has the
 * epoch of an ancestor is *left*: the stack that it describes may exist in this process, too, but
 * no hit has come to it yet. */
static struct own {
	struct pb_open_segment *first;	/* NULL: none */
	uint64_t lo, hi, guard;		/* hi 0: the state is free */
	bool exact;
} own[PB_MAX_THREADS];
static struct kept {
	uint64_t lo, hi;
	struct pb_open_segment *first;
	uint32_t epoch;		/* the epoch of the process that uses it; 0: free */
} kept[PB_MAX_STACKS];
static uint32_t nr_kept;	/* elements with this index or a higher one were never used, in this
				 * process or an ancestor */

/* All stacks without memory for calls share this segment. Its first entry is the root
 * (pb_open_is_root()), which stands for the caller of the stack's outermost call. The second entry
 * is the end, so the segment has no room for calls. */
static struct pb_open_segment no_segment __attribute__((aligned(PB_OPEN_SEGMENT))) = {
	.final = true,
	.call = { { .word = (1l << 47) - 1, .state = PB_ENTRY_EMITTED }, { .word = PB_OPEN_END } },
};

/* Returns how many segments to map. If the address space is limited, this number is smaller, to
 * leave space for the program. */
static uint32_t segments_within(uint64_t limit)
{
	limit /= PART * PB_OPEN_SEGMENT;
	return limit < NR_SEGMENTS ? (uint32_t)limit : NR_SEGMENTS;
}

static uint64_t limit_of(int resource)
{
	struct { uint64_t soft, hard; } limit = { ~0ul, 0 };

	pb_sys(SYS_prlimit64, 0, resource, NULL, &limit);
	return limit.soft;
}

/* The kernel counts the segments as address space and as data. */
static uint32_t most_segments(void)
{
	uint32_t as = segments_within(limit_of(RLIMIT_AS));
	uint32_t data = segments_within(limit_of(RLIMIT_DATA));

	return as < data ? as : data;
}

void pb_chains_start(void)
{
	uint32_t nr = most_segments();
	long p = pb_pages_map(0, (nr + 1ul) * PB_OPEN_SEGMENT, PROT_READ | PROT_WRITE,
			      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (pb_sys_failed(p))
		return;
	segments = (struct pb_open_segment *)p;
	nr_segments = nr_mapped = nr;
}

void pb_chains_leave(void)
{
	uint64_t at = (uint64_t)segments, size = (nr_mapped + 1ul) * PB_OPEN_SEGMENT;

	/* as with the ring: if another thread forks now, the child must not unmap this range */
	nr_segments = nr_mapped = 0;
	segments = NULL;
	pb_barrier();
	if (at)
		pb_pages_unmap(at, size);
}

/* Waits until no thread is in pb_chain_forget_returns() with the former number of segments. The
 * agent's thread runs this function, and doesn't wait for others meanwhile. */
static bool forgotten(void)
{
	struct { uint64_t sec, nsec; } nap = { 0, NAP_NS };

	for (int i = 0; __atomic_load_n(&pb_process->forgetting, __ATOMIC_SEQ_CST); i++) {
		if (i == MAX_NAPS)
			return false;
		pb_sys(SYS_nanosleep, &nap, NULL);
	}
	return true;
}

/* A thread that takes a new segment increments nr_used before it reads nr_segments. This function
 * lowers nr_segments before it reads nr_used again. So either the thread gets no segment, or this
 * function sees that the segment is used, and keeps it. */
void pb_chains_limit(uint64_t limit)
{
	uint32_t nr = nr_segments, used = __atomic_load_n(&nr_used, __ATOMIC_SEQ_CST);
	uint32_t keep = segments_within(limit);

	keep = keep < used + SPARE ? used + SPARE : keep;
	if (keep >= nr)
		return;
	__atomic_store_n(&nr_segments, keep, __ATOMIC_SEQ_CST);
	used = __atomic_load_n(&nr_used, __ATOMIC_SEQ_CST);
	keep = keep < used ? used : keep;
	keep = keep < nr ? keep : nr;
	__atomic_store_n(&nr_segments, keep, __ATOMIC_SEQ_CST);
	__atomic_store_n(&nr_mapped, keep, __ATOMIC_SEQ_CST);
	if (!forgotten())
		nr_mapped = nr;
	else if (keep < nr)
		pb_pages_cut((uint64_t)&segments[keep + 1], (uint64_t)&segments[nr + 1]);
}

struct pb_open_segment *pb_chain_take(void *context)
{
	uint64_t list = __atomic_load_n(&free_list, __ATOMIC_ACQUIRE);
	uint32_t n;

	while ((n = (uint32_t)list) != NONE) {
		uint64_t rest = ((list >> 32) + 1) << 32 |
				__atomic_load_n(&next_free[n - 1], __ATOMIC_RELAXED);

		if (__atomic_compare_exchange_n(&free_list, &list, rest, false, __ATOMIC_ACQUIRE,
						__ATOMIC_ACQUIRE))
			return &segments[n - 1];
	}
	if (__atomic_load_n(&nr_used, __ATOMIC_RELAXED) >=
	    __atomic_load_n(&nr_segments, __ATOMIC_RELAXED))
		return NULL;
	/* pb_chains_limit() may lower nr_segments meanwhile */
	n = __atomic_fetch_add(&nr_used, 1, __ATOMIC_SEQ_CST);
	return n < __atomic_load_n(&nr_segments, __ATOMIC_SEQ_CST) ? &segments[n] : NULL;
}

void pb_chain_give(void *context, struct pb_open_segment *s)
{
	uint64_t list = __atomic_load_n(&free_list, __ATOMIC_RELAXED), with;
	uint32_t n = (uint32_t)(s - segments) + 1;

	do {
		__atomic_store_n(&next_free[n - 1], (uint32_t)list, __ATOMIC_RELAXED);
		with = ((list >> 32) + 1) << 32 | n;
	} while (!__atomic_compare_exchange_n(&free_list, &list, with, false, __ATOMIC_RELEASE,
					      __ATOMIC_RELAXED));
}

/* ---- stacks ------------------------------------------------------------------ */

/* Returns the element of s; NULL: s isn't in the table of stacks. */
static struct kept *kept_of(const struct pb_stack *s)
{
	return s >= pb_stacks && s < pb_stacks + PB_MAX_STACKS ? &kept[s - pb_stacks] : NULL;
}

/* Another thread, or a handler, may fork meanwhile. So the epoch is stored last: the child never
 * finds an element that isn't complete. */
static void keep(const struct pb_stack *s, struct pb_open_segment *first)
{
	struct kept *k = kept_of(s);

	if (!k)
		return;
	__atomic_store_n(&k->epoch, 0, __ATOMIC_RELAXED);
	pb_barrier();
	k->lo = s->lo;
	k->hi = s->hi;
	k->first = first;
	__atomic_store_n(&k->epoch, pb_process->epoch, __ATOMIC_RELEASE);
	pb_raise_to(&nr_kept, (uint32_t)(k - kept) + 1);
}

void pb_chain_set_bounds(const struct pb_stack *s)
{
	struct kept *k = kept_of(s);

	if (!k || k->epoch != pb_process->epoch)
		return;
	k->lo = s->lo;
	k->hi = s->hi;
}

void pb_chain_begin(struct pb_stack *s)
{
	struct pb_open_segment *first = pb_chain_take(NULL);

	s->top = no_segment.call;
	s->period = __atomic_load_n(&pb_period, __ATOMIC_RELAXED);
	if (!first)
		return;
	pb_open_segment_init(first, NULL, s->hi);
	first->call[0].start = s->period;
	first->stack = s;
	s->top = first->call;
	keep(s, first);
}

static void set_stack(struct pb_open_segment *first, struct pb_stack *s)
{
	for (; first; first = first->next)
		first->stack = s;
}

/* Called in a forked child. The parent writes the ENTRYs of the calls that were open at the fork.
 * So this function marks these ENTRYs as written: the child lists the calls as open, and records
 * only their ends. A signal handler may have interrupted a call's exit and then forked. The words
 * that this exit reserved are in the parent's chunk. So the child records the call's end again. */
static void count_in_parent(struct pb_open_call *root)
{
	uint64_t slot;

	for (struct pb_open_call *c = pb_open_innermost(root); !pb_open_is_root(c);
	     c = pb_open_parent(c)) {
		/* If the handler that forked had interrupted the call's entry, the call isn't live
		 * yet, and belongs to the child. */
		if (c->state == PB_ENTRY_CLAIMED || c->state == PB_ENTRY_RECLAIMED ||
		    (pb_open_is_live(c) &&
		     (c->state == PB_ENTRY_LEAF || c->state == PB_ENTRY_LATE)))
			c->state = PB_ENTRY_EMITTED;
		if (pb_open_is_leaving(c, &slot))
			c->record = PB_OPEN_UNRESERVED;
	}
}

static bool is_left(const struct kept *k)
{
	uint32_t epoch = __atomic_load_n(&k->epoch, __ATOMIC_RELAXED);

	return epoch && epoch != pb_process->epoch;
}

bool pb_chain_is_reserved(const struct pb_stack *s)
{
	return is_left(kept_of(s));
}

static bool has_calls(const struct kept *k)
{
	return !pb_open_is_root(pb_open_innermost(k->first->call));
}

/* Memory may have been used for several stacks, one after the other. The last one that was used is
 * that of the youngest ancestor. If this ancestor had several such stacks, only one of them can
 * have open calls, unless bounds were guessed wrongly. */
static bool is_newer(const struct kept *k, const struct kept *than)
{
	return k->epoch != than->epoch ? k->epoch > than->epoch : has_calls(k) && !has_calls(than);
}

/* Returns the element that an ancestor has left for the stack with this slot; NULL: there is
 * none. */
static struct kept *left_at(uint64_t slot)
{
	uint32_t nr = __atomic_load_n(&nr_kept, __ATOMIC_RELAXED);
	struct kept *found = NULL;

	if (pb_likely(pb_process->epoch == FIRST_EPOCH))
		return NULL;
	for (struct kept *k = kept; k < kept + nr; k++)
		if (slot >= k->lo && slot < k->hi && is_left(k) && (!found || is_newer(k, found)))
			found = k;
	return found;
}

bool pb_chain_is_left(uint64_t slot)
{
	return left_at(slot);
}

void pb_chain_inherit(struct pb_stack *s, uint64_t slot)
{
	struct kept *k;

	while ((k = left_at(slot))) {
		struct kept from = *k;

		/* once the epoch is 0, another thread may use the element */
		if (!__atomic_compare_exchange_n(&k->epoch, &from.epoch, 0, false, __ATOMIC_ACQUIRE,
						 __ATOMIC_RELAXED))
			continue;
		pb_chain_end(s);
		s->lo = from.lo;
		s->hi = from.hi;
		s->top = from.first->call;
		s->period = (uint32_t)s->top->start;
		set_stack(from.first, s);
		count_in_parent(s->top);
		keep(s, from.first);
		return;
	}
}

static struct pb_open_segment *first_of(struct pb_open_segment *s)
{
	while (s->prev)
		s = s->prev;
	return s;
}

void pb_chain_set_period(struct pb_stack *s, uint32_t period)
{
	s->period = period;
	if (s->top != no_segment.call)
		first_of(pb_open_segment_of(s->top))->call[0].start = period;
}

void pb_chain_forget_returns(void)
{
	uint32_t nr, most;

	__atomic_add_fetch(&pb_process->forgetting, 1, __ATOMIC_SEQ_CST);
	most = __atomic_load_n(&nr_mapped, __ATOMIC_SEQ_CST);
	nr = __atomic_load_n(&nr_used, __ATOMIC_ACQUIRE);
	if (nr > most)
		nr = most;
	for (struct pb_open_segment *s = segments; s < segments + nr; s++)
		for (struct pb_open_call *c = s->call + 1; c <= s->call + PB_OPEN_CALLS; c++)
			if (pb_open_is_live(c) &&
			    __atomic_load_n(&c->ret, __ATOMIC_RELAXED) != PB_OPEN_NO_RET)
				__atomic_store_n(&c->ret, 0, __ATOMIC_RELAXED);
	__atomic_sub_fetch(&pb_process->forgetting, 1, __ATOMIC_RELEASE);
}

void pb_chain_end(struct pb_stack *s)
{
	struct pb_open_segment *next, *seg = s->top ? first_of(pb_open_segment_of(s->top)) : NULL;
	struct kept *k = kept_of(s);

	s->top = NULL;
	if (seg == &no_segment)
		return;
	if (k && seg && k->first == seg)
		__atomic_store_n(&k->epoch, 0, __ATOMIC_RELAXED);
	for (; seg; seg = next) {
		next = seg->next;
		pb_chain_give(NULL, seg);
	}
}

/* NULL: the stack's entry is free, or another thread has just taken it for a new stack. So callers
 * that look at other threads' stacks read the word once. */
static struct pb_open_call *top_of(const struct pb_stack *s)
{
	return __atomic_load_n(&s->top, __ATOMIC_RELAXED);
}

bool pb_chain_is_empty(const struct pb_stack *s)
{
	struct pb_open_call *top = top_of(s);

	return !top || pb_open_is_root(pb_open_innermost(top));
}

void pb_chain_none(struct pb_stack *s)
{
	s->top = no_segment.call;
}

struct pb_open_call *pb_chain_first(const struct pb_stack *s)
{
	struct pb_open_call *top = top_of(s);
	struct pb_open_segment *first = top ? first_of(pb_open_segment_of(top)) : &no_segment;

	for (unsigned i = 1; i <= PB_OPEN_CALLS && first != &no_segment; i++)
		if (pb_open_is_live(&first->call[i]))
			return &first->call[i];
	return NULL;
}

static uint64_t slot_of(const struct pb_open_call *c)
{
	int64_t word = *(volatile const int64_t *)&c->word;

	return word > 0 && !(word & 7) ? (uint64_t)word : 0;
}

uint64_t pb_chain_outermost(const struct pb_stack *s)
{
	const struct pb_open_call *c = pb_chain_first(s);

	return c ? slot_of(c) : 0;
}

uint64_t pb_chain_innermost(const struct pb_thread *t, const struct pb_stack *s)
{
	struct pb_open_call *top = t && t->stack == s ? __atomic_load_n(&t->top, __ATOMIC_RELAXED) :
				   top_of(s), *c;

	if (!top || pb_open_segment_of(top)->stack != s)
		return 0;
	c = pb_open_innermost(top);
	return pb_open_is_root(c) ? 0 : slot_of(c);
}

bool pb_chain_own_bounds(struct pb_thread *t)
{
	const struct own *o = &own[pb_thread_number(t)];

	t->own.lo = o->lo;
	t->own.hi = o->hi;
	t->own.guard = o->guard;
	t->own.exact = o->exact;
	return o->hi;
}

void pb_chain_thread_begin(struct pb_thread *t, bool forked)
{
	struct own *o = &own[pb_thread_number(t)];

	if (!forked)
		pb_chain_thread_end(t);
	if (forked && o->first) {
		t->own.top = o->first->call;
		t->own.period = (uint32_t)t->own.top->start;
		set_stack(o->first, &t->own);
		count_in_parent(t->own.top);
	} else {
		pb_chain_begin(&t->own);
		o->first = t->own.top == no_segment.call ? NULL : pb_open_segment_of(t->own.top);
	}
	if (o->first)
		o->first->stack = &t->own;
	o->lo = t->own.lo;
	o->guard = t->own.guard;
	o->exact = t->own.exact;
	pb_barrier();
	*(volatile uint64_t *)&o->hi = t->own.hi;
}

void pb_chain_thread_end(struct pb_thread *t)
{
	struct own *o = &own[pb_thread_number(t)];

	*(volatile uint64_t *)&o->hi = 0;
	t->own.top = o->first ? o->first->call : NULL;
	o->first = NULL;
	pb_chain_end(&t->own);
}

bool pb_chain_holds(uint64_t address)
{
	return address - (uint64_t)segments < nr_mapped * sizeof(*segments);
}
