/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <sys/mman.h>
#include "engine/thread.h"
#include "base/mem.h"
#include "base/sys.h"
#include "engine/latch.h"

#define MAX_THREADS	16384
#define MAX_STACKS	4096
#define MAIN_STACK_MIN	(128ul << 20)	/* the kernel leaves that gap below it at least */
#define TCB_WORDS	320		/* how far struct pthread is searched */
#define GUESS_BELOW	(64ul << 10)
#define GUESS_ABOVE	(4ul << 10)
#define GUESS_NEAR	(256ul << 10)

static struct pb_thread no_thread;	/* what TLS says before the first hit: cur is NULL, so nothing in it is used */
__thread struct pb_thread *pb_tls __attribute__((tls_model("initial-exec"))) = &no_thread;

struct pb_process *pb_process;
bool pb_follow_fork = true;
uint32_t pb_image;

static struct pb_thread *threads;	/* in wiped memory */
static struct pb_stack *stacks;
static uint32_t tid_offset;		/* in the TCB; 0: unknown */
static uint32_t stack_offset;		/* of {stackblock, size} in the TCB; 0: unknown yet */
static uint64_t main_stack_hi, main_tcb;

static uint64_t tcb_now(void)
{
	uint64_t tcb;

	__asm__("mov %%fs:0, %0" : "=r"(tcb));
	return tcb;
}

static uint32_t gettid(void)
{
	return (uint32_t)pb_sys(SYS_gettid);
}

int pb_threads_start(uint64_t stack_top)
{
	size_t size = 4096 + sizeof(struct pb_thread) * MAX_THREADS +
		      sizeof(struct pb_stack) * MAX_STACKS;
	long mem = pb_sys(SYS_mmap, 0, size, PROT_READ | PROT_WRITE,
			  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	uint32_t tid = gettid();

	if (pb_sys_failed(mem))
		return (int)mem;
	if (pb_sys_failed(pb_sys(SYS_madvise, mem, size, MADV_WIPEONFORK)))
		pb_follow_fork = false;
	pb_process = (void *)mem;
	threads = (void *)(mem + 4096);
	stacks = (void *)(threads + MAX_THREADS);
	pb_process->pid = tid;
	main_tcb = tcb_now();
	main_stack_hi = stack_top;
	/* glibc 2.34 to 2.41 have it at 0x2d0; look there first */
	if (*(uint32_t *)(main_tcb + 0x2d0) == tid)
		tid_offset = 0x2d0;
	for (uint32_t off = 0x100; off < 0x500 && !tid_offset; off += 4)
		if (*(uint32_t *)(main_tcb + off) == tid)
			tid_offset = off;
	return 0;
}

bool pb_stack_holds(const struct pb_stack *s, uint64_t address)
{
	return address - s->lo < s->hi - s->lo;
}

static uint32_t current_tid(uint64_t tcb)
{
	uint32_t tid = tid_offset ? *(uint32_t *)(tcb + tid_offset) : 0;

	return tid ? tid : gettid();
}

/* {stackblock, stackblock_size} in struct pthread: the pair that holds both
 * the slot and the TCB (glibc's stacks) or the slot alone (the program's). */
static bool stack_of_tcb(uint64_t tcb, uint64_t slot, struct pb_stack *s)
{
	const uint64_t *words = (const uint64_t *)tcb;
	uint32_t from = stack_offset ? stack_offset : 64;
	uint32_t to = stack_offset ? stack_offset + 1 : TCB_WORDS - 1;

	for (uint32_t i = from; i < to; i++) {
		uint64_t lo = words[i], size = words[i + 1];

		if (!lo || lo & 7 || size < 4096 || size > 1ul << 40 || slot - lo >= size)
			continue;
		if (!stack_offset && (lo & 4095 || size & 4095 || tcb - lo >= size))
			continue;
		stack_offset = i;
		s->lo = lo;
		s->hi = lo + size;
		s->exact = true;
		return true;
	}
	return false;
}

static void own_stack(struct pb_thread *t, uint64_t tcb, uint64_t slot)
{
	struct pb_stack *s = &t->own;

	s->thread = t;
	s->exact = false;
	if (tcb == main_tcb) {
		s->hi = main_stack_hi;
		s->lo = s->hi - MAIN_STACK_MIN;
		s->exact = true;
		if (pb_stack_holds(s, slot))
			return;
	}
	if (stack_of_tcb(tcb, slot, s))
		return;
	s->lo = slot - GUESS_BELOW;
	s->hi = slot + GUESS_ABOVE;
	s->exact = false;
}

static struct pb_thread *state_for(uint64_t tcb)
{
	uint32_t nr = __atomic_load_n(&pb_process->nr_threads, __ATOMIC_ACQUIRE);

	for (uint32_t i = 0; i < nr; i++) {
		struct pb_thread *t = &threads[i];

		if (t->tcb != tcb)
			continue;
		/* its thread is dead: ours has its TCB */
		t->cur = NULL;
		pb_writer_close(&t->w);
		pb_gates_abandon(t);
		return t;
	}
	nr = __atomic_fetch_add(&pb_process->nr_threads, 1, __ATOMIC_ACQ_REL);
	if (nr >= MAX_THREADS) {
		__atomic_fetch_sub(&pb_process->nr_threads, 1, __ATOMIC_ACQ_REL);
		return NULL;
	}
	threads[nr].first_block = -1;
	threads[nr].tcb = tcb;
	return &threads[nr];
}

/* The open calls of a child's thread hang below its new root. */
static void adopt(struct pb_thread *t, struct pb_entry *e)
{
	while (!pb_is_root(PB_ENT_PARENT(e)))
		e = PB_ENT_PARENT(e);
	PB_ENT_PARENT(e) = t->own.root;
}

static struct pb_thread *thread_start(uint64_t slot)
{
	uint64_t tcb = tcb_now();
	struct pb_thread *t = pb_tls;
	bool forked = t != &no_thread && !t->tcb;
	uint32_t tid = current_tid(tcb);
	struct pb_entry *cur = NULL;

	if (!pb_process->pid) {
		if (!pb_follow_fork)
			return NULL;
		pb_process->pid = tid;
		pb_process->nr_threads = 0;
		__atomic_fetch_add(&pb_ring_map.ring->processes, 1, __ATOMIC_RELAXED);
	}
	if (forked) {
		/* keep the address: the entries know their owner by it */
		uint32_t index = (uint32_t)(t - threads);

		t->tcb = tcb;
		if (pb_process->nr_threads <= index)
			pb_process->nr_threads = index + 1;
	} else {
		t = state_for(tcb);
	}
	if (!t)
		return NULL;
	pb_writer_init(&t->w, pb_process->pid, tid, pb_image);
	own_stack(t, tcb, slot);
	t->own.id = 1ul << 63 | t->w.serial;
	t->w.stack = t->own.id;
	t->stack = &t->own;
	t->hint = NULL;
	if (forked)
		cur = pb_gates_after_fork(t, slot);
	t->own.root = pb_gate_root(t, t->own.hi);
	t->hint = t->own.root;
	t->lo = t->own.lo;
	if (cur)
		adopt(t, cur);
	pb_barrier();
	t->cur = cur ? cur : t->own.root;
	pb_tls = t;
	return t;
}

struct pb_thread *pb_thread_get(uint64_t slot)
{
	struct pb_thread *t = pb_tls;

	return pb_likely(t->cur != NULL) ? t : thread_start(slot);
}

#define STACK_FILLED 2	/* ids from here on */

static bool is_filled(const struct pb_stack *s)
{
	return __atomic_load_n(&s->id, __ATOMIC_ACQUIRE) >= STACK_FILLED;
}

static void set_filled(struct pb_stack *s)
{
	__atomic_store_n(&s->id, (uint64_t)pb_process->pid << 24 | (uint64_t)(s - stacks + 1),
			 __ATOMIC_RELEASE);
}

/* One that is nobody's, to be filled; NULL: there is none. */
static struct pb_stack *take_stack(void)
{
	for (uint32_t i = 0; i < MAX_STACKS; i++) {
		uint32_t nr = __atomic_load_n(&pb_process->nr_stacks, __ATOMIC_RELAXED);
		uint64_t nobody = 0;

		if (!__atomic_compare_exchange_n(&stacks[i].id, &nobody, 1, false,
						 __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
			continue;
		while (nr <= i && !__atomic_compare_exchange_n(&pb_process->nr_stacks, &nr, i + 1,
				false, __ATOMIC_RELEASE, __ATOMIC_RELAXED))
			;
		return &stacks[i];
	}
	return NULL;
}

/* The frame that it lay in was left: its memory is the own stack's again. */
static bool frame_is_gone(const struct pb_stack *s)
{
	return s->within && (PB_ENT_SLOT(s->within) < s->hi ||
			     PB_ENT_START(s->within) != s->within_start);
}

/* The told stack that holds the address. */
static struct pb_stack *find_told(uint64_t slot)
{
	uint32_t nr = __atomic_load_n(&pb_process->nr_stacks, __ATOMIC_ACQUIRE);

	for (uint32_t i = 0; i < nr; i++) {
		struct pb_stack *s = &stacks[i];

		if (!is_filled(s) || !s->exact || !pb_stack_holds(s, slot))
			continue;
		if (!frame_is_gone(s))
			return s;
		__atomic_store_n(&s->id, 0, __ATOMIC_RELEASE);
	}
	return NULL;
}

/* One with guessed bounds that holds the address, or is near enough to. */
static struct pb_stack *find_guessed(uint64_t slot, struct pb_stack **near)
{
	uint32_t nr = __atomic_load_n(&pb_process->nr_stacks, __ATOMIC_ACQUIRE);

	*near = NULL;
	for (uint32_t i = 0; i < nr; i++) {
		struct pb_stack *s = &stacks[i];

		if (!is_filled(s))
			continue;
		if (pb_stack_holds(s, slot))
			return s;
		if (!s->exact && slot < s->lo && s->lo - slot < GUESS_NEAR)
			*near = s;
	}
	return NULL;
}

/* The stack that holds the address, else a new one with guessed bounds. */
static struct pb_stack *find_stack(struct pb_thread *t, uint64_t slot)
{
	struct pb_stack *s = find_told(slot), *near;

	if (s)
		return s;
	if (pb_stack_holds(&t->own, slot) && t->own.exact)
		return &t->own;
	s = find_guessed(slot, &near);
	if (s)
		return s;
	if (pb_stack_holds(&t->own, slot))
		return &t->own;
	if (near) {
		near->lo = slot - 4096;
		return near;
	}
	s = take_stack();
	if (!s)		/* share one: only the tree suffers */
		return &stacks[(slot >> 16) % MAX_STACKS];
	s->lo = slot - GUESS_BELOW;
	s->hi = slot + GUESS_ABOVE;
	s->exact = false;
	s->within = NULL;
	s->cur = s->root;
	set_filled(s);
	return s;
}

struct pb_stack *pb_thread_other_stack(struct pb_thread *t, uint64_t slot)
{
	struct pb_stack *s, *old = t->stack;

	if (slot >= t->lo && slot < old->hi && !(pb_process->holes && old == &t->own))
		return NULL;
	s = find_stack(t, slot);
	if (!s->root)
		s->root = s->cur = pb_gate_root(t, s->hi);
	if (s != old)
		return s;
	t->lo = s->lo;		/* it may have grown */
	return NULL;
}

void pb_thread_use_stack(struct pb_thread *t, struct pb_stack *s)
{
	struct pb_stack *old = t->stack;

	/* another thread may have taken ours along already */
	if (old->thread == t)
		old->cur = t->cur;
	if (s->thread && s->thread != t && s->thread->stack == s && s != &t->own)
		s->cur = s->thread->cur;
	s->thread = t;
	t->stack = s;
	t->cur = s->cur;
	t->w.stack = s->id;
	pb_writer_put_plain(&t->w, pb_ext_word(PB_EXT_STACK, 2, 0, 0), t->w.last, &s->id, 1);
	t->lo = s->lo;
}

/* The innermost call on t's own stack that began above the address. */
static struct pb_entry *own_call_above(const struct pb_thread *t, uint64_t address)
{
	struct pb_entry *e = t->stack == &t->own ? t->cur : t->own.cur;
	uint32_t n = 0;

	while (e && !pb_is_root(e) && PB_ENT_SLOT(e) < address && n++ < PB_NR_GATES)
		e = PB_ENT_PARENT(e);
	return e && !pb_is_root(e) ? e : NULL;
}

static struct pb_stack *stack_to_tell(uint64_t lo, uint64_t hi)
{
	uint32_t nr = __atomic_load_n(&pb_process->nr_stacks, __ATOMIC_ACQUIRE);

	for (uint32_t i = 0; i < nr; i++)
		if (is_filled(&stacks[i]) && stacks[i].lo < hi && lo < stacks[i].hi)
			return &stacks[i];
	return take_stack();
}

void pb_stack_told(uint64_t lo, uint64_t size)
{
	struct pb_thread *t;
	struct pb_stack *s;

	if (!lo || size < 256 || size > 1ul << 40)
		return;
	s = stack_to_tell(lo, lo + size);
	if (!s)
		return;
	s->lo = lo;
	s->hi = lo + size;
	/* now: when it is used, a deep recursion may have taken all gates */
	t = pb_thread_get((uint64_t)__builtin_frame_address(0));
	if (!s->root && t)
		s->root = pb_gate_root(t, s->hi);
	if (s->root && PB_ENT_SLOT(s->root) != PB_SLOT_GUARD)
		PB_ENT_SLOT(s->root) = s->hi;
	s->cur = s->root;
	s->within = NULL;
	if (t && pb_stack_holds(&t->own, lo)) {
		pb_process->holes = true;
		s->within = own_call_above(t, s->hi);
		s->within_start = s->within ? PB_ENT_START(s->within) : 0;
	}
	s->exact = true;
	set_filled(s);
}
