/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "engine/chains.h"
#include <sys/mman.h>
#include "base/base.h"
#include "base/pages.h"
#include "base/sys.h"
#include "engine/thread.h"

#define NR_SEGMENTS	65536	/* 8 million calls open at once; memory is used as it is touched */
#define NONE		0u	/* no segment has this index */

bool pb_return_sites;

/* ---- segments ---------------------------------------------------------------- */

/* Not wiped in a forked child. The free ones are a list by index + 1, with a count of its changes above:
 * threads and handlers take and give by compare-and-swap. */
static struct pb_open_segment *segments;
static uint32_t next_free[NR_SEGMENTS];
static uint64_t free_list;
static uint32_t nr_used;

/* A child finds its calls by these: the first segment of each thread's own stack, and of the other stacks. */
static struct pb_open_segment *own_first[PB_MAX_THREADS];
static struct kept {
	uint64_t lo, hi;
	struct pb_open_segment *first;
	uint32_t epoch;		/* of the process; 0: nobody's */
} kept[PB_MAX_STACKS];

int pb_chains_start(void)
{
	long p = pb_pages_map(0, (NR_SEGMENTS + 1ul) * PB_OPEN_SEGMENT, PROT_READ | PROT_WRITE,
			      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (pb_sys_failed(p))
		return (int)p;
	segments = (struct pb_open_segment *)p;
	return 0;
}

struct pb_open_segment *pb_chain_take(void *context)
{
	uint64_t list = __atomic_load_n(&free_list, __ATOMIC_ACQUIRE);
	uint32_t n;

	while ((n = (uint32_t)list) != NONE) {
		uint64_t rest = ((list >> 32) + 1) << 32 | __atomic_load_n(&next_free[n - 1], __ATOMIC_RELAXED);

		if (__atomic_compare_exchange_n(&free_list, &list, rest, false, __ATOMIC_ACQUIRE,
						__ATOMIC_ACQUIRE))
			return &segments[n - 1];
	}
	if (__atomic_load_n(&nr_used, __ATOMIC_RELAXED) >= NR_SEGMENTS)
		return NULL;
	n = __atomic_fetch_add(&nr_used, 1, __ATOMIC_RELAXED);
	return n < NR_SEGMENTS ? &segments[n] : NULL;
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

bool pb_chain_begin(struct pb_stack *s)
{
	struct pb_open_segment *first = pb_chain_take(NULL);

	if (!first)
		return false;
	pb_open_segment_init(first, NULL, s->hi);
	first->stack = s;
	s->top = first->call;
	if (s >= pb_stacks && s < pb_stacks + PB_MAX_STACKS)
		kept[s - pb_stacks] = (struct kept){ s->lo, s->hi, first, pb_process->epoch };
	return true;
}

static void set_stack(struct pb_open_segment *first, struct pb_stack *s)
{
	for (; first; first = first->next)
		first->stack = s;
}

/* What was open at a fork is counted in the parent: here it is listed as open, and ends. */
static void count_in_parent(struct pb_open_call *root)
{
	for (struct pb_open_call *c = pb_open_innermost(root); !pb_open_is_root(c); c = pb_open_parent(c))
		if (c->state == PB_ENTRY_LEAF || c->state == PB_ENTRY_LATE)
			c->state = PB_ENTRY_EMITTED;
}

void pb_chain_inherit(struct pb_stack *s, uint64_t slot)
{
	for (struct kept *k = kept; k < kept + PB_MAX_STACKS; k++) {
		uint32_t epoch = k->epoch;

		if (!epoch || epoch == pb_process->epoch || slot < k->lo || slot >= k->hi ||
		    !__atomic_compare_exchange_n(&k->epoch, &epoch, 0, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
			continue;
		pb_chain_end(s);
		s->lo = k->lo;
		s->hi = k->hi;
		s->top = k->first->call;
		set_stack(k->first, s);
		count_in_parent(s->top);
		kept[s - pb_stacks] = (struct kept){ s->lo, s->hi, k->first, pb_process->epoch };
		return;
	}
}

static struct pb_open_segment *first_of(struct pb_open_segment *s)
{
	while (s->prev)
		s = s->prev;
	return s;
}

void pb_chain_end(struct pb_stack *s)
{
	struct pb_open_segment *next, *seg = s->top ? first_of(pb_open_segment_of(s->top)) : NULL;

	s->top = NULL;
	for (; seg; seg = next) {
		next = seg->next;
		pb_chain_give(NULL, seg);
	}
}

bool pb_chain_is_empty(const struct pb_stack *s)
{
	return !s->top || pb_open_is_root(pb_open_innermost(s->top));
}

void pb_chain_thread_begin(struct pb_thread *t, bool forked)
{
	struct pb_open_segment **first = &own_first[pb_thread_number(t)];

	if (!forked && *first) {
		t->own.top = (*first)->call;
		pb_chain_end(&t->own);
	}
	if (forked && *first) {
		t->own.top = (*first)->call;
	} else if (!pb_chain_begin(&t->own)) {
		*first = NULL;
		return;
	}
	*first = first_of(pb_open_segment_of(t->own.top));
	set_stack(*first, &t->own);
	if (forked)
		count_in_parent(t->own.top);
	pb_barrier();
	t->top = pb_open_innermost(t->own.top);
}

bool pb_chain_holds(uint64_t address)
{
	return segments && address - (uint64_t)segments < NR_SEGMENTS * sizeof(*segments);
}
