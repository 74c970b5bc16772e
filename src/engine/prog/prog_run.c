/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Keeps a list of the runs of eBPF programs that are under way in each thread. The list shows
 * whether a signal must be deferred. It also shows which slots, records and locks must be given
 * back if a run never goes on.
 *
 * In the kernel no signal handler runs in the middle of a program. In the agent, a signal may
 * interrupt a run. If the signal isn't a fault, it is queued again, and all signals but faults are
 * masked. The queued signal is delivered when the run is over. Some signals can't be queued:
 * faults, all signals under seccomp, signals whose handler has SA_RESETHAND, and signals whose
 * handler was installed without libc's sigaction(). The handler of such a signal may leave the run
 * by a jump, or end the thread. In this case the run never goes on. But it may hold a per-CPU slot,
 * a record reserved in a ring buffer, or something else in a map (host.h, `takes`). If the return
 * slot of a later run of the thread is on the same stack as the interrupted run's return slot, and
 * not lower, the handler has jumped. The later run then gives back the abandoned run's slot, and at
 * most MOST_HELD of the other things. It does the same for runs that were nested in the abandoned
 * run. If the thread has ended, a later thread may reuse its struct pb_thread. The first run of the
 * later thread then does the same for the ended thread's run.
 *
 * In a forked child the kernel wipes the list, because all runs but those of the forking thread
 * exist only in the parent. So the first run of each thread of the child finds that the thread is
 * new. The first of these runs in the child prepares the child. A run that comes meanwhile in
 * another thread is left out, because it would use maps while they get their new owner. In the
 * preparing thread all signals are blocked. So no handler forks in the middle of the preparation,
 * or leaves it by a jump.
 */
#include <signal.h>
#include <sys/mman.h>
#include <ucontext.h>
#include "base/base.h"
#include "base/mem.h"
#include "base/pages.h"
#include "base/sys.h"
#include "bpf/core/host.h"
#include "bpf/core/vdso.h"
#include "bpf/map/map.h"
#include "bpf/map/map_ringbuf.h"
#include "engine/prog/prog.h"
#include "engine/prog/prog_priv.h"
#include "engine/graph/thread.h"
#include "engine/uaccess.h"

#define MOST_NESTED	4		/* largest number of nested runs that are kept. Runs nest if
					 * a handler interrupts a run, and causes another run */
#define MOST_HELD	4		/* largest number of records, locks and the like of one run
					 * that abandon() can give back */
#define VDSO_STACK	768		/* bytes of stack that a function of the vDSO may use; less
					 * than a signal frame has */

struct pb_prog_open {
	uint64_t slot;
	uint64_t frame;			/* the run's state (struct pb_prog_run) is here on the
					 * stack, and all of its code runs below */
	const struct pb_stack *stack;
	uint32_t cpu_slot;		/* number of the run's per-CPU slot, plus 1; 0: it has
					 * none */
	uint32_t nr_held;
	bool handler;			/* a handler was called in the middle of the run */
	uint64_t vdso;			/* the stack pointer before the run's call of the vDSO; 0:
					 * the run isn't in the vDSO */
	struct {
		struct pb_bpf_map *map;
		void *what;
		uint64_t word;
	} held[MOST_HELD];
};

struct thread_runs {
	uint32_t tid, depth;
	uint32_t deferred;		/* signals wait for the end of the run at this depth; 0: no
					 * signal waits */
	uint64_t mask;			/* the thread's mask, restored when that run is over */
	struct pb_prog_open runs[MOST_NESTED];
};

enum { NEW, PREPARING, READY };		/* PREPARING: a thread prepares the process for runs;
					 * READY: runs are possible */

/* All bytes are 0 in a forked child (MADV_WIPEONFORK). */
static struct process_runs {
	uint32_t state;
	uint8_t cpu_slot_taken[PB_BPF_MAX_CPU_SLOTS];
	struct thread_runs threads[PB_MAX_THREADS];
} *runs;
static void (*prepare)(void);
static uint64_t vdso_start, vdso_size;

int pb_prog_runs_start(void (*forked)(void))
{
	long err, p = pb_pages_map(0, sizeof(*runs), PROT_READ | PROT_WRITE,
				   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (pb_sys_failed(p))
		return (int)p;
	err = pb_sys(SYS_madvise, p, sizeof(*runs), MADV_WIPEONFORK);
	if (err)
		return (int)err;
	pb_bpf_vdso_range(&vdso_start, &vdso_size);
	prepare = forked;
	runs = (void *)p;
	runs->state = READY;
	return 0;
}

bool pb_prog_runs_ready(void)
{
	return runs && __atomic_load_n(&runs->state, __ATOMIC_ACQUIRE) == READY;
}

/* Returns whether a hit of the thread shows that a jump has left the hit with the return slot `at`
 * on `stack`. As long as a handler that interrupted that hit is running, its own hits have lower
 * slots, or are on another stack. This also holds for a run at a return, because the code of the
 * exit runs below the slot. */
static bool is_left(const struct pb_stack *stack, uint64_t at, const struct pb_thread *t,
		    uint64_t slot)
{
	return stack == t->stack && slot >= at;
}

static bool replace_state(uint32_t *was, uint32_t state)
{
	return __atomic_compare_exchange_n(&runs->state, was, state, false, __ATOMIC_ACQ_REL,
					   __ATOMIC_ACQUIRE);
}

/* Returns whether runs are possible in this process. Prepares a forked child, unless another thread
 * is already doing this. Under a seccomp filter the child needs no preparation: it keeps the old
 * mappings, because the filter may kill the program for opening files. */
static bool is_ready(void)
{
	uint64_t all = ~0ull, mask;
	uint32_t was = NEW;

	if (pb_prog_runs_ready())
		return true;
	if (pb_sandboxed || pb_sys(SYS_rt_sigprocmask, SIG_SETMASK, &all, &mask, sizeof(mask)))
		return replace_state(&was, READY) || was == READY;
	if (replace_state(&was, PREPARING)) {
		prepare();
		was = READY;
		__atomic_store_n(&runs->state, READY, __ATOMIC_RELEASE);
	}
	pb_sys(SYS_rt_sigprocmask, SIG_SETMASK, &mask, NULL, sizeof(mask));
	return was == READY;
}

/* Takes a free per-CPU slot; the search begins at `first`. Returns the slot's number plus 1; 0: all
 * are taken. */
static uint32_t take_cpu_slot(uint32_t first, uint32_t nr)
{
	for (uint32_t i = 0; i < nr; i++) {
		uint32_t cpu_slot = (first + i) % nr;

		if (!runs->cpu_slot_taken[cpu_slot] &&
		    !__atomic_exchange_n(&runs->cpu_slot_taken[cpu_slot], 1, __ATOMIC_ACQUIRE))
			return cpu_slot + 1;
	}
	return 0;
}

static void give_cpu_slot(struct pb_prog_open *o)
{
	uint32_t cpu_slot = o->cpu_slot;

	o->cpu_slot = 0;
	pb_barrier();
	if (cpu_slot)
		__atomic_store_n(&runs->cpu_slot_taken[cpu_slot - 1], 0, __ATOMIC_RELEASE);
}

/* Returns whether a run that the innermost run has interrupted holds `what`. */
static bool held_outside(const struct thread_runs *r, const void *what)
{
	for (uint32_t depth = 0; depth + 1 < r->depth; depth++)
		for (uint32_t i = 0; i < r->runs[depth].nr_held; i++)
			if (r->runs[depth].held[i].what == what)
				return true;
	return false;
}

/* Gives back everything that the innermost run holds. The run is abandoned. A lock that an outer
 * run holds stays: the innermost run has only tried to take it. If the outer run is abandoned, too,
 * it is the next. This doesn't apply to words of more than 32 bits, which no lock has: a run
 * doesn't try to take what is taken already. So if both runs hold the same, the outer run was
 * interrupted before it could take it. */
static void abandon(struct thread_runs *r)
{
	struct pb_prog_open *o = &r->runs[r->depth - 1];

	while (o->nr_held) {
		struct pb_bpf_map *map = o->held[--o->nr_held].map;
		void *what = o->held[o->nr_held].what;
		uint64_t word = o->held[o->nr_held].word;

		pb_barrier();
		if (map->attr.type == BPF_MAP_TYPE_RINGBUF)
			pb_bpf_ringbuf_submit(map, what, BPF_RB_NO_WAKEUP, true);
		else if (word >> 32 || !held_outside(r, what))
			pb_bpf_map_abandon(map, what, word);
	}
	give_cpu_slot(o);
}

/* Restores the mask. Waiting signals are delivered at this point. */
static void let_signals_in(struct thread_runs *r)
{
	uint64_t mask = r->mask;

	r->deferred = 0;
	pb_barrier();
	pb_sys(SYS_rt_sigprocmask, SIG_SETMASK, &mask, NULL, sizeof(mask));
}

#define BIT(sig)	(1ull << ((sig) - 1))
#define FAULTS		(BIT(SIGSEGV) | BIT(SIGBUS) | BIT(SIGFPE) | BIT(SIGILL) | BIT(SIGTRAP) | \
			 BIT(SIGSYS))

#define UNBLOCKABLE	(BIT(SIGKILL) | BIT(SIGSTOP))

/* Called if a jump has left the run at whose end the mask would have been restored. siglongjmp()
 * sets a mask that the program has chosen, so the mask stays as it is. After longjmp() all signals
 * but faults are still blocked, so the mask is restored now. The agent doesn't block faults, so
 * they stay as they are in both cases. */
static void let_signals_in_after_jump(struct thread_runs *r)
{
	uint64_t now = 0;

	pb_sys(SYS_rt_sigprocmask, SIG_BLOCK, NULL, &now, sizeof(now));
	r->mask = (r->mask & ~FAULTS) | (now & FAULTS);
	if ((now | FAULTS | UNBLOCKABLE) == ~0ull)
		let_signals_in(r);
	else
		r->deferred = 0;
}

/* Blocks all signals but faults, until the handler returns. *before: the mask before. */
static bool blocked(uint64_t *before)
{
	uint64_t mask = ~FAULTS;

	return !pb_sys(SYS_rt_sigprocmask, SIG_BLOCK, &mask, before, sizeof(mask));
}

/* Queues the signal again. First blocks all signals but faults until the present handler returns,
 * because with SA_NODEFER the kernel doesn't block the handler's own signal. Fault signals aren't
 * queued, even if a process has sent them. Fault signals stay unblocked, so a queued one would come
 * again at once, forever. With SA_RESETHAND the kernel has forgotten the handler, so the signal
 * isn't queued either. Without SA_SIGINFO there is no siginfo to queue, so the signal is sent again
 * without one. If the kernel refuses to queue the signal (RLIMIT_SIGPENDING), the program's handler
 * runs now, with the mask that it expects. The state of a vfork child's thread may name the
 * parent's thread, so the kernel is asked for the thread. */
static bool queue(int sig, const siginfo_t *info)
{
	struct { uint64_t handler, flags, restorer, mask; } now;
	long pid = pb_sys(SYS_getpid), tid = pb_sys(SYS_gettid), err;
	uint64_t before;

	if (BIT(sig) & FAULTS ||
	    pb_sys(SYS_rt_sigaction, sig, NULL, &now, sizeof(now.mask)) || now.handler <= 1 ||
	    !blocked(&before))
		return false;
	if (now.flags & SA_SIGINFO)
		err = pb_sys(SYS_rt_tgsigqueueinfo, pid, tid, sig, info);
	else
		err = pb_sys(SYS_tgkill, pid, tid, sig);
	if (err)
		pb_sys(SYS_rt_sigprocmask, SIG_SETMASK, &before, NULL, sizeof(before));
	return !err;
}

/* Returns whether the signal has interrupted a function of the vDSO that the run has called. An
 * unseen handler may call the vDSO, too, but only below its signal frame or on another stack. */
static bool in_vdso(const struct pb_prog_open *o, const ucontext_t *uc)
{
	return o->vdso && pb_context_pc(uc) - vdso_start < vdso_size &&
	       o->vdso - pb_context_sp(uc) < VDSO_STACK;
}

/* Returns whether the thread's code, with the stack pointer sp, shows that a jump has left the run:
 * the code is above the run's frames. If the code may run on another stack that lies inside of the
 * run's stack, it doesn't show this. */
static bool is_above(const struct pb_prog_open *o, const struct pb_thread *t, uint64_t sp)
{
	const struct pb_stack *s = o->stack;

	return pb_stack_holds(s, sp) && sp > o->frame && !(pb_process->holes && s == &t->own) &&
	       !(t->alternate && t->alternate != s && pb_stack_holds(t->alternate, sp));
}

/* Returns false if the run's state is no longer on the stack: a jump has left the run, and then
 * deeper code of the program has overwritten its state. If sp is below the state, on the same
 * stack, the memory up to the state is in use. Otherwise it may be unmapped, and isn't read. */
static bool has_state(const struct pb_prog_open *o, uint64_t sp)
{
	return !pb_stack_holds(o->stack, sp) || !pb_stack_holds(o->stack, o->frame) ||
	       sp > o->frame || ((const struct pb_prog_run *)o->frame)->open == o;
}

/* Returns the number of the thread's runs up to the innermost one that may be under way; 0: there
 * is none. sp: the stack pointer of the thread's code, not of the agent's. A handler that the agent
 * doesn't know of may have left the others. If it has left a run whose state is overwritten, a run
 * after that one may be under way. */
static uint32_t nr_running(const struct thread_runs *r, const struct pb_thread *t, uint64_t sp)
{
	uint32_t nr = 0;

	for (uint32_t i = 0; i < r->depth && !is_above(&r->runs[i], t, sp); i++)
		if (has_state(&r->runs[i], sp))
			nr = i + 1;
	return nr;
}

static struct thread_runs *own_runs(const struct pb_thread *t)
{
	struct thread_runs *r = t->top && runs ? &runs->threads[pb_thread_number(t)] : NULL;

	return r && r->depth && r->tid == t->w.tid ? r : NULL;
}

bool pb_prog_is_running(uint64_t sp)
{
	struct thread_runs *r = own_runs(pb_tls);

	return r && nr_running(r, pb_tls, sp);
}

bool pb_prog_defer(int sig, void *siginfo, void *ucontext, bool in_run)
{
	ucontext_t *uc = ucontext;
	struct thread_runs *r = own_runs(pb_tls);
	struct pb_prog_open *o;
	uint64_t mask;
	uint32_t nr;

	if (pb_likely(!r))
		return false;
	/* If a jump has left the run, perhaps no run ever closes, and a queued signal would never
	 * be delivered. If the signal hasn't interrupted code of the run, a handler that the agent
	 * doesn't know of runs in the middle of the run, or such a handler has left the run. */
	nr = nr_running(r, pb_tls, pb_context_sp(uc));
	if (!nr)
		return false;
	o = &r->runs[nr - 1];
	in_run = in_run || in_vdso(o, uc);
	if (o->handler || !in_run || !pb_calls_are_safe() || !queue(sig, siginfo)) {
		o->handler = true;
		return false;
	}
	memcpy(&mask, &uc->uc_sigmask, sizeof(mask));
	if (!r->deferred) {
		r->mask = mask;
		r->deferred = nr;
	}
	mask |= ~FAULTS;
	memcpy(&uc->uc_sigmask, &mask, sizeof(mask));
	return true;
}

/* Abandons the outermost run that a jump has left, and all runs that are nested in it. The nested
 * runs may be on another stack, for example if the handler has an alternate stack. all: abandons
 * all runs. */
static void abandon_left(struct thread_runs *r, const struct pb_thread *t, uint64_t slot, bool all)
{
	uint32_t keep = 0;

	while (!all && keep < r->depth &&
	       !is_left(r->runs[keep].stack, r->runs[keep].slot, t, slot))
		keep++;
	while (r->depth > keep) {
		abandon(r);
		pb_barrier();
		r->depth--;
	}
	if (r->depth < r->deferred)
		let_signals_in_after_jump(r);
}

struct pb_prog_open *pb_prog_open(const struct pb_thread *t, uint64_t slot,
				  struct pb_prog_run *run)
{
	struct thread_runs *r = &runs->threads[pb_thread_number(t)];
	struct pb_prog_open *o;

	if (pb_unlikely(r->tid != t->w.tid)) {
		if (!is_ready())
			return PB_PROG_NOT_READY;
		/* the mask is that of a thread that has ended */
		r->deferred = 0;
		abandon_left(r, t, slot, true);
		r->tid = t->w.tid;
	} else if (pb_unlikely(r->depth)) {
		abandon_left(r, t, slot, false);
	}
	if (r->depth >= MOST_NESTED)
		return NULL;
	o = &r->runs[r->depth];
	o->slot = slot;
	o->frame = (uint64_t)run;
	o->stack = t->stack;
	o->cpu_slot = 0;
	o->nr_held = 0;
	o->handler = false;
	o->vdso = 0;
	run->open = o;
	pb_barrier();
	r->depth++;
	return o;
}

uint32_t pb_prog_cpu_slot(struct pb_prog_open *o, uint32_t cpu, uint32_t nr)
{
	if (!o)
		return nr - 1;
	o->cpu_slot = take_cpu_slot(cpu % nr, nr);
	return o->cpu_slot ? o->cpu_slot - 1 : nr - 1;
}

void pb_prog_close(const struct pb_thread *t, struct pb_prog_open *o)
{
	struct thread_runs *r = &runs->threads[pb_thread_number(t)];

	if (!o)
		return;
	/* handlers that jumps have left inside of a handler may have left their runs */
	while (pb_unlikely(r->depth && o < &r->runs[r->depth - 1])) {
		abandon(r);
		pb_barrier();
		r->depth--;
	}
	if (pb_unlikely(r->depth < r->deferred))
		let_signals_in_after_jump(r);
	if (o->cpu_slot)
		give_cpu_slot(o);
	pb_barrier();
	if (r->depth && o == &r->runs[r->depth - 1])
		r->depth--;
	if (pb_unlikely(r->depth < r->deferred))
		let_signals_in(r);
}

void pb_prog_vdso_begin(struct pb_bpf_run *run)
{
	struct pb_prog_open *o = pb_prog_run_of(run)->open;

	if (o)
		*(volatile uint64_t *)&o->vdso = (uint64_t)__builtin_frame_address(0);
	pb_barrier();
}

void pb_prog_vdso_end(struct pb_bpf_run *run)
{
	struct pb_prog_open *o = pb_prog_run_of(run)->open;

	pb_barrier();
	if (o)
		*(volatile uint64_t *)&o->vdso = 0;
}

void pb_prog_takes(struct pb_bpf_run *run, struct pb_bpf_map *map, void *what, uint64_t word)
{
	struct pb_prog_open *o = pb_prog_run_of(run)->open;

	if (!o || o->nr_held == MOST_HELD)
		return;
	o->held[o->nr_held].map = map;
	o->held[o->nr_held].what = what;
	o->held[o->nr_held].word = word;
	pb_barrier();
	o->nr_held++;
}

void pb_prog_gives(struct pb_bpf_run *run, void *what)
{
	struct pb_prog_open *o = pb_prog_run_of(run)->open;

	for (uint32_t i = 0; o && i < o->nr_held; i++) {
		if (o->held[i].what != what)
			continue;
		o->held[i] = o->held[o->nr_held - 1];
		pb_barrier();
		o->nr_held--;
		return;
	}
}
