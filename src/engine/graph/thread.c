/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Gives each thread one of PB_MAX_THREADS states. A state's word in tcbs[] is 0 if the state is
 * free, and BUSY while the state of a dead thread is being closed. Otherwise it is the TCB of the
 * state's thread. A thread takes a state by a compare-and-swap of that word. Nothing reports the
 * end of a thread. If another thread with the same TCB has a hit, it takes the dead thread's state
 * over. Other states of dead threads are freed by free_dead(), which looks at all states when many
 * more states are in use than at its last look.
 *
 * In a forked child all states are free, because they lie in wiped memory. But the thread that
 * forked must get the same state again, because its open calls are found by the state's number.
 * Until that thread has had a hit, other threads of the child first take states that neither the
 * child nor an ancestor has used (high_ever). So they don't take that thread's state, unless they
 * use up all of these states before it has a hit.
 *
 * If a system call can do no harm, signals are blocked while a state is made. Otherwise a handler
 * may find the state unfinished. In this case the handler's calls are counted as lost.
 */
#include <asm/errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include "engine/graph/chains.h"
#include "engine/graph/thread.h"
#include "arch/arch.h"
#include "base/dumpable.h"
#include "base/mem.h"
#include "base/pages.h"
#include "base/sys.h"
#include "engine/latch.h"
#include "engine/graph/period.h"
#include "engine/graph/thread_words.h"
#include "engine/sandbox.h"

#define MAIN_STACK_MIN	(128ul << 20)	/* the kernel keeps at least this much room for the main
					 * thread's stack */
/* Number of words of struct pthread that are searched. The struct has at least 0x900 bytes. Its
 * mapping may end right after it, so the search must stay within these bytes. */
#define TCB_WORDS	256
#define BUSY		1ul
#define RED_ZONE	128
#define REFUSE		4096		/* after a search has found no free state, this many calls
					 * are lost before the next search */
#define LOOK_AFTER	256		/* free_dead() looks for free states only when at least this
				 * many more are in use than after its last look */

#define LOOK_NAP_NS	1000000
#define LOOK_NAPS	20		/* a look takes less than a microsecond of processor time */

bool pb_follow_fork = true;
uint32_t pb_image;

static PB_LASTING uint64_t *tcbs;	/* TCBs of the threads that have states; in wiped memory */
/* States with this number or a higher one were never used, in this process or an ancestor. */
static PB_LASTING uint32_t high_ever;
/* The latest epoch of this process and its ancestors. */
static PB_LASTING uint32_t last_epoch;
static PB_LASTING bool forker_is_away;	/* at the last pb_threads_forget(), a thread had forked and
					 * had not had a hit in the child */
static uint32_t tid_offset;		/* offset of the TID in the TCB; 0: unknown */
static uint32_t stack_offset;		/* offset of {stackblock, size} in the TCB, in words of 8
					 * bytes; 0: not yet known */
static uint64_t main_stack_hi, main_stack_limit;
static uint64_t main_tcb;		/* 0: not known; the main thread is found by its TID */

static uint32_t kernel_tid(void)
{
	return (uint32_t)pb_sys(SYS_gettid);
}

/* Size of the memory that a fork wipes: the process, the reserve for execs, the states, tcbs[] and
 * the stacks. */
#define RESERVES (sizeof(struct pb_exec_reserve) * PB_EXEC_RESERVES)
#define WIPED	(4096 + RESERVES + sizeof(struct pb_thread) * PB_MAX_THREADS + \
		 sizeof(uint64_t) * PB_MAX_THREADS + sizeof(struct pb_stack) * PB_MAX_STACKS)

static int map_states(void)
{
	long mem = pb_pages_map(0, WIPED, PROT_READ | PROT_WRITE,
				MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (pb_sys_failed(mem))
		return (int)mem;
	pb_process = (void *)mem;
	pb_exec_reserves = (void *)(mem + 4096);
	pb_threads = (void *)(pb_exec_reserves + PB_EXEC_RESERVES);
	tcbs = (void *)(pb_threads + PB_MAX_THREADS);
	pb_stacks = (void *)(tcbs + PB_MAX_THREADS);
	return 0;
}

/* Sets the TLS word of the thread that has the state t, so that the thread's next hit is its first.
 * The thread may have ended, and its TCB may be unmapped. So the word is reached through
 * /proc/self/mem (`mem`). */
static void forget_thread(struct pb_thread *t, int mem)
{
	uint64_t in_tcb = (uint64_t)&pb_tls - pb_cpu_thread_pointer(), tcb = tcbs[t - pb_threads];
	struct pb_thread *word, *none = &pb_no_thread;

	if (tcb > BUSY && pb_sys(SYS_pread64, mem, &word, sizeof(word), tcb + in_tcb) ==
	    (long)sizeof(word) && word == t)
		pb_sys(SYS_pwrite64, mem, &none, sizeof(none), tcb + in_tcb);
}

void pb_threads_forget(void)
{
	struct pb_thread *t = NULL;
	long mem;

	if (!pb_process)	/* pb_threads_start() has failed */
		return;
	mem = pb_sys(SYS_openat, AT_FDCWD, "/proc/self/mem", O_RDWR | O_CLOEXEC, 0);
	forker_is_away = !pb_process->forker_came;
	while ((t = pb_thread_next(t))) {
		forget_thread(t, (int)mem);
		if (t->exec.at)
			pb_sys(SYS_munmap, t->exec.at, t->exec.size);
	}
	if (!pb_sys_failed(mem))
		pb_sys(SYS_close, mem);
	/* locked pages can't be dropped */
	if (pb_sys(SYS_madvise, pb_process, WIPED, MADV_DONTNEED)) {
		uint32_t nr = pb_process->nr_threads, stacks = pb_process->nr_stacks;

		memset(pb_process, 0, sizeof(*pb_process));
		memset(pb_threads, 0, nr * sizeof(*pb_threads));
		memset(tcbs, 0, PB_MAX_THREADS * sizeof(*tcbs));
		memset(pb_stacks, 0, stacks * sizeof(*pb_stacks));
	}
}

int pb_threads_start(const struct pb_known_thread *thread)
{
	bool again = pb_process;
	int err = again ? 0 : map_states();
	struct { uint64_t soft, hard; } limit = { 0 };

	if (err)
		return err;
	if (again)
		pb_pages_add((uint64_t)pb_process, WIPED);
	if (pb_sys_failed(pb_sys(SYS_madvise, pb_process, WIPED, MADV_WIPEONFORK)))
		pb_follow_fork = false;
	pb_sys(SYS_prlimit64, 0, RLIMIT_STACK, NULL, &limit);
	main_stack_limit = limit.soft;
	pb_process->pid = (uint32_t)pb_sys(SYS_getpid);
	pb_process->epoch = ++last_epoch;
	pb_process->forker_came = !forker_is_away;
	pb_process->stacks_freed = true;
	main_tcb = thread->is_main ? thread->tcb : 0;
	main_stack_hi = thread->stack_top;
	/* glibc 2.34 to 2.41 have the TID at 0x2d0: look at this offset first */
	if (*(uint32_t *)(thread->tcb + 0x2d0) == thread->tid)
		tid_offset = 0x2d0;
	for (uint32_t off = 0x100; off < 0x500 && !tid_offset; off += 4)
		if (*(uint32_t *)(thread->tcb + off) == thread->tid)
			tid_offset = off;
	return 0;
}

static bool is_main(uint64_t tcb)
{
	if (main_tcb)
		return tcb == main_tcb;
	return tid_offset && *(uint32_t *)(tcb + tid_offset) == pb_process->pid;
}

/* After a raw clone() the child's TCB still has the parent's TID. So if a system call is safe, the
 * TID comes from the kernel. It also does if the TID's offset in the TCB isn't known. */
static uint32_t current_tid(uint64_t tcb)
{
	uint32_t tid = tid_offset ? *(uint32_t *)(tcb + tid_offset) : 0;

	return tid && !pb_calls_are_safe() ? tid : kernel_tid();
}

/* Finds {stackblock, stackblock_size, guardsize} in struct pthread, by their values: the first two
 * give a range that holds the slot. If the offset isn't known yet, the range must also hold the TCB
 * and be page-aligned. Later these two conditions don't apply, because the program may have
 * allocated the stack of a further thread itself. */
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
	if (is_main(tcb)) {
		s->hi = main_stack_hi;
		s->lo = s->hi - MAIN_STACK_MIN;
		s->guard = main_stack_limit < MAIN_STACK_MIN ?
			   MAIN_STACK_MIN - main_stack_limit : 0;
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

	if (t->top)
		return t->own.exact && pb_stack_holds(&t->own, address);
	if (t == &pb_foreign_thread)
		return false;
	own_stack(&s, pb_cpu_thread_pointer(), address);
	return s.exact;
}

static bool change_tcb(uint32_t i, uint64_t from, uint64_t to)
{
	return __atomic_compare_exchange_n(&tcbs[i], &from, to, false, __ATOMIC_ACQ_REL,
					   __ATOMIC_RELAXED);
}

/* Closes the state of a dead thread. The caller has set the state's word in tcbs[] to BUSY. */
static void abandon(struct pb_thread *t)
{
	t->top = NULL;
	t->expected = 0;
	t->looking = 0;
	pb_stack_end_visit(t);
	pb_stack_no_alternate(t);
	pb_writer_close(&t->w);
}

/* Returns the state of a dead thread that had the same TCB; NULL: there is none. */
static struct pb_thread *state_of_before(uint64_t tcb)
{
	uint32_t nr = __atomic_load_n(&pb_process->nr_threads, __ATOMIC_ACQUIRE);

	for (uint32_t i = 0; i < nr; i++) {
		if (tcbs[i] != tcb || !change_tcb(i, tcb, BUSY))
			continue;
		abandon(&pb_threads[i]);
		__atomic_store_n(&tcbs[i], tcb, __ATOMIC_RELEASE);
		return &pb_threads[i];
	}
	return NULL;
}

static struct pb_thread *free_state(uint64_t tcb)
{
	uint32_t from = pb_process->forker_came ? 0 : __atomic_load_n(&high_ever, __ATOMIC_RELAXED);

	for (uint32_t n = 0; n < PB_MAX_THREADS; n++) {
		uint32_t i = (from + n) % PB_MAX_THREADS;

		if (tcbs[i] || !change_tcb(i, 0, tcb))
			continue;
		pb_raise_to(&pb_process->nr_threads, i + 1);
		pb_raise_to(&high_ever, i + 1);
		__atomic_add_fetch(&pb_process->nr_live, 1, __ATOMIC_RELAXED);
		return &pb_threads[i];
	}
	return NULL;
}

/* A state that isn't filled yet may still have the TID of a dead thread. So such a state doesn't
 * count as dead. */
static bool is_dead(const struct pb_thread *t)
{
	bool filled = __atomic_load_n(&t->top, __ATOMIC_ACQUIRE);
	uint32_t tid = __atomic_load_n(&t->w.tid, __ATOMIC_RELAXED);

	return filled && tid && pb_sys(SYS_tgkill, pb_process->pid, tid, 0) == -ESRCH;
}

/* Frees the states of dead threads if there are many more states than at the last look, or if `now`
 * is set. If a system call could end the program, dead threads keep their states. */
static void free_dead(const struct pb_thread *self, bool now)
{
	uint32_t nr = __atomic_load_n(&pb_process->nr_threads, __ATOMIC_ACQUIRE);
	uint32_t live = __atomic_load_n(&pb_process->nr_live, __ATOMIC_RELAXED);
	uint32_t look_at = __atomic_load_n(&pb_process->look_at, __ATOMIC_RELAXED);

	if ((live < look_at + LOOK_AFTER && !now) || !pb_calls_are_safe() ||
	    !__atomic_compare_exchange_n(&pb_process->look_at, &look_at, live, false,
					 __ATOMIC_RELAXED, __ATOMIC_RELAXED))
		return;
	for (uint32_t i = 0; i < nr; i++) {
		uint64_t tcb = __atomic_load_n(&tcbs[i], __ATOMIC_ACQUIRE);
		struct pb_thread *t = &pb_threads[i];

		if (tcb <= BUSY || t == self || !is_dead(t) || !change_tcb(i, tcb, BUSY))
			continue;
		/* Since the look at the thread, a new thread with the same TCB may have taken the
		 * state over. From now on no thread can, because the state's word is BUSY. */
		if (!is_dead(t)) {
			__atomic_store_n(&tcbs[i], tcb, __ATOMIC_RELEASE);
			continue;
		}
		abandon(t);
		pb_chain_thread_end(t);
		t->tcb = 0;
		__atomic_sub_fetch(&pb_process->nr_live, 1, __ATOMIC_RELAXED);
		__atomic_store_n(&tcbs[i], 0, __ATOMIC_RELEASE);
	}
	__atomic_store_n(&pb_process->look_at,
			 __atomic_load_n(&pb_process->nr_live, __ATOMIC_RELAXED), __ATOMIC_RELAXED);
}

/* Sets the PID and epoch of a forked child. The thread that has the child's first hit does this. */
static void process_begin(uint32_t tid)
{
	uint32_t none = 0, pid;

	if (pb_likely(pb_process->epoch))
		return;
	pid = pb_calls_are_safe() ? (uint32_t)pb_sys(SYS_getpid) : tid;
	if (pb_calls_are_safe())
		pb_dumpable_return();	/* the child may have been forked without libc */
	__atomic_compare_exchange_n(&pb_process->pid, &none, pid, false, __ATOMIC_RELAXED,
				    __ATOMIC_RELAXED);
	if (pb_had_holes)
		pb_process->holes = true;
	none = 0;
	if (__atomic_compare_exchange_n(&pb_process->epoch, &none,
					__atomic_add_fetch(&last_epoch, 1, __ATOMIC_RELAXED), false,
					__ATOMIC_RELEASE, __ATOMIC_RELAXED))
		__atomic_add_fetch(&pb_ring_map.ring->processes, 1, __ATOMIC_RELAXED);
}

/* Returns the calling thread's state, which isn't filled yet. *forked is set if the thread had the
 * same state before it forked. */
static struct pb_thread *state_for(uint64_t tcb, bool *forked)
{
	struct pb_thread *t = pb_tls;
	uint32_t i = (uint32_t)(t - pb_threads);

	*forked = !pb_thread_is_new() && !t->tcb && change_tcb(i, 0, tcb);
	if (*forked) {
		pb_raise_to(&pb_process->nr_threads, i + 1);
		__atomic_add_fetch(&pb_process->nr_live, 1, __ATOMIC_RELAXED);
		pb_process->forker_came = true;
		return t;
	}
	t = state_of_before(tcb);
	return t ? t : free_state(tcb);
}

static void fill_state(struct pb_thread *t, bool forked, uint32_t tid, uint64_t slot)
{
	pb_writer_init(&t->w, pb_process->pid, tid, pb_image);
	t->own.thread = t;
	if (!forked || !pb_chain_own_bounds(t))
		own_stack(&t->own, pb_cpu_thread_pointer(), slot);
	t->own.id = 1ul << 63 | t->w.serial;
	t->nowhere.id = 1ul << 62 | t->w.serial;
	t->w.stack = t->own.id;
	t->stack = &t->own;
	if (t->own.exact && !pb_process->holes) {
		t->w.own_lo = t->own.lo;
		t->w.own_hi = t->own.hi;
	}
	t->bottom = pb_stack_bottom(&t->own);
	pb_chain_thread_begin(t, forked);
	pb_thread_words_copy(t);
	pb_period_set_lo(t);
	pb_barrier();
	t->top = pb_open_innermost(t->own.top);
}

static struct pb_thread *thread_start(uint64_t slot)
{
	uint64_t tcb = pb_cpu_thread_pointer();
	struct pb_thread *t = pb_tls;
	uint32_t tid, epoch;
	bool forked;

	process_begin(current_tid(tcb));
	epoch = *(volatile uint32_t *)&pb_process->epoch;
	tid = current_tid(tcb);
	/* If t already has this TCB, an earlier run of this function, at the slot `starting`,
	 * wasn't finished. If this hit is well below that slot, a handler has interrupted the
	 * earlier run. Otherwise a handler has left the earlier run by a jump, and the state is
	 * made again. */
	if (t->tcb == tcb && slot + RED_ZONE < t->starting) {
		pb_ring_call_lost();
		return NULL;
	}
	t = state_for(tcb, &forked);
	if (!t) {
		pb_ring_call_lost();
		/* all states are taken: the next calls are lost without a search */
		__atomic_store_n(&pb_process->refuse, REFUSE, __ATOMIC_RELAXED);
		free_dead(NULL, true);
		return NULL;
	}
	t->starting = slot;
	t->tcb = tcb;
	pb_tls = t;
	fill_state(t, forked, tid, slot);
	if (pb_unlikely(*(volatile uint32_t *)&pb_process->epoch != epoch)) {
		/* this is a child that a handler forked: the state has the parent's TID */
		t->top = NULL;
		return pb_follow_fork ? thread_start(slot) : NULL;
	}
	/* in a child, only the thread that forked has the PID as its TID */
	if (forked || (pb_calls_are_safe() && tid == pb_process->pid)) {
		pb_hit_stacks_forked(epoch);
		pb_process->stacks_freed = true;
	}
	free_dead(t, false);
	return t;
}

/* Signals that an instruction raises stay unblocked. If they were blocked, they would kill the
 * process. So the SIGTRAP handler of a program that steps through itself may still interrupt this
 * code. */
#define BIT(sig)	(1ul << ((sig) - 1))
#define FAULTS		(BIT(SIGTRAP) | BIT(SIGSEGV) | BIT(SIGBUS) | BIT(SIGILL) | BIT(SIGFPE) | \
			 BIT(SIGSYS))

static struct pb_thread *thread_start_masked(uint64_t slot)
{
	uint64_t mask = ~FAULTS, old;
	struct pb_thread *t;

	/* after a detach there is no ring to write to */
	if (!pb_ring_map.ring || (!pb_process->epoch && !pb_follow_fork))
		return NULL;
	if (pb_tls == &pb_foreign_thread) {
		pb_ring_call_lost();
		return NULL;
	}
	if (pb_unlikely(pb_process->refuse)) {
		pb_process->refuse--;
		pb_ring_call_lost();
		return NULL;
	}
	if (!pb_calls_are_safe() || pb_sys(SYS_rt_sigprocmask, SIG_BLOCK, &mask, &old, 8))
		return thread_start(slot);
	t = thread_start(slot);
	pb_sys(SYS_rt_sigprocmask, SIG_SETMASK, &old, NULL, 8);
	return t;
}

/* A mark in the thread's own stack that isn't above this look's mark belongs to a look that a
 * handler has left by a jump. On other stacks this isn't known. */
static bool is_over(const struct pb_thread *t, uint64_t before, uint64_t mark)
{
	return before <= mark && pb_stack_holds(&t->own, before) && pb_stack_holds(&t->own, mark) &&
	       !pb_process->holes;
}

/* The exchange is a full barrier: either this thread's look-up doesn't find a module that is being
 * removed, or pb_looks_wait() sees the mark. */
uint64_t pb_look_begin(struct pb_thread *t)
{
	uint64_t mark = (uint64_t)&mark;
	uint64_t before = __atomic_exchange_n(&t->looking, mark, __ATOMIC_SEQ_CST);

	return before && !is_over(t, before, mark) ? before : 0;
}

void pb_look_end(struct pb_thread *t, uint64_t before)
{
	__atomic_store_n(&t->looking, before, __ATOMIC_RELEASE);
}

static bool others_look(void)
{
	for (struct pb_thread *t = NULL; (t = pb_thread_next(t));)
		if (t != pb_tls && __atomic_load_n(&t->looking, __ATOMIC_SEQ_CST))
			return true;
	return false;
}

bool pb_looks_wait(void)
{
	struct { uint64_t sec, nsec; } nap = { 0, LOOK_NAP_NS };

	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	for (int naps = 0; others_look(); naps++) {
		if (naps == LOOK_NAPS || !pb_calls_are_safe())
			return false;
		pb_sys(SYS_nanosleep, &nap, NULL);
	}
	return true;
}

struct pb_thread *pb_thread_get(uint64_t slot)
{
	struct pb_thread *t = pb_tls;

	if (pb_unlikely(!t->top) && !(t = thread_start_masked(slot)))
		return NULL;
	t->w.slot = slot;
	return t;
}
