/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <sys/mman.h>
#include <sys/resource.h>
#include "engine/thread.h"
#include "base/mem.h"
#include "base/sys.h"
#include "engine/latch.h"

#define MAIN_STACK_MIN	(128ul << 20)	/* the kernel leaves that gap below it at least */
#define TCB_WORDS	320		/* how far struct pthread is searched */

static struct pb_thread no_thread;	/* what TLS says before the first hit: cur is NULL, so nothing in it is used */
__thread struct pb_thread *pb_tls __attribute__((tls_model("initial-exec"))) = &no_thread;

struct pb_process *pb_process;
bool pb_follow_fork = true;
uint32_t pb_image;

static struct pb_thread *threads;	/* in wiped memory */
static struct bounds {
	uint64_t lo, hi;		/* hi 0: not known */
} own_bounds[PB_MAX_THREADS];		/* of their stacks; a child keeps them */
static uint32_t tid_offset;		/* in the TCB; 0: unknown */
static uint32_t stack_offset;		/* of {stackblock, size} in the TCB; 0: unknown yet */
static uint64_t main_stack_hi, main_stack_limit, main_tcb;

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
	size_t size = 4096 + sizeof(struct pb_thread) * PB_MAX_THREADS +
		      sizeof(struct pb_stack) * PB_MAX_STACKS;
	long mem = pb_sys(SYS_mmap, 0, size, PROT_READ | PROT_WRITE,
			  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	struct { uint64_t soft, hard; } limit = { 0 };
	uint32_t tid = gettid();

	if (pb_sys_failed(mem))
		return (int)mem;
	pb_sys(SYS_prlimit64, 0, RLIMIT_STACK, NULL, &limit);
	main_stack_limit = limit.soft;
	if (pb_sys_failed(pb_sys(SYS_madvise, mem, size, MADV_WIPEONFORK)))
		pb_follow_fork = false;
	pb_process = (void *)mem;
	threads = (void *)(mem + 4096);
	pb_stacks = (void *)(threads + PB_MAX_THREADS);
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

static uint32_t current_tid(uint64_t tcb)
{
	uint32_t tid = tid_offset ? *(uint32_t *)(tcb + tid_offset) : 0;

	return tid ? tid : gettid();
}

/* {stackblock, stackblock_size, guardsize} in struct pthread: the pair that
 * holds both the slot and the TCB (glibc's stacks) or the slot alone (the
 * program's). */
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
		s->guard = words[i + 2] < size ? words[i + 2] : size;
		s->exact = true;
		return true;
	}
	return false;
}

static void own_stack(struct pb_stack *s, uint64_t tcb, uint64_t slot)
{
	if (tcb == main_tcb) {
		s->hi = main_stack_hi;
		s->lo = s->hi - MAIN_STACK_MIN;
		s->guard = main_stack_limit < MAIN_STACK_MIN ? MAIN_STACK_MIN - main_stack_limit : 0;
		s->exact = true;
		if (pb_stack_holds(s, slot))
			return;
	}
	if (stack_of_tcb(tcb, slot, s))
		return;
	s->lo = slot - PB_GUESS_BELOW;
	s->hi = slot + PB_GUESS_ABOVE;
	s->exact = false;
}

bool pb_on_own_stack(uint64_t address)
{
	const struct pb_thread *t = pb_tls;
	struct pb_stack s;

	if (t->cur)
		return t->own.exact && pb_stack_holds(&t->own, address);
	own_stack(&s, tcb_now(), address);
	return s.exact;
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
	if (nr >= PB_MAX_THREADS) {
		__atomic_fetch_sub(&pb_process->nr_threads, 1, __ATOMIC_ACQ_REL);
		return NULL;
	}
	threads[nr].first_block = -1;
	threads[nr].tcb = tcb;
	return &threads[nr];
}

bool pb_thread_own_bounds(const struct pb_thread *t, struct pb_stack *s)
{
	s->lo = own_bounds[t - threads].lo;
	s->hi = own_bounds[t - threads].hi;
	return s->hi;
}

uint32_t pb_thread_number(const struct pb_thread *t)
{
	return (uint32_t)(t - threads);
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
	t->own.thread = t;
	own_stack(&t->own, tcb, slot);
	t->own.id = 1ul << 63 | t->w.serial;
	t->w.stack = t->own.id;
	t->stack = &t->own;
	t->hint = NULL;
	t->cursor = PB_NO_BLOCK;
	if (forked)
		cur = pb_gates_after_fork(t, slot);
	else
		t->own.root = pb_gate_root(t, t->own.hi);
	own_bounds[t - threads] = (struct bounds){ t->own.lo, t->own.exact ? t->own.hi : 0 };
	if (t->own.exact && !pb_process->holes) {
		t->w.own_lo = t->own.lo;
		t->w.own_hi = t->own.hi;
	}
	t->hint = t->own.root;
	t->lo = t->own.lo;
	pb_barrier();
	t->cur = cur ? cur : t->own.root;
	pb_tls = t;
	return t;
}

struct pb_thread *pb_thread_get(uint64_t slot)
{
	struct pb_thread *t = pb_tls;

	if (pb_unlikely(!t->cur) && !(t = thread_start(slot)))
		return NULL;
	t->w.slot = slot;
	return t;
}
