/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The data of threads, stacks and the process. All files of this folder work on this data. thread.c
 * maps the data in memory that is wiped in a forked child. The child's first hit finds zeros and
 * takes the slow path, which gives the child's thread a state of its own. The calls that were
 * open at the fork stay open in this state.
 *
 * pb_tls points to the thread's state; before the thread's first hit it points to a state of zeros
 * that is never written. See doc/design/threads.md. Context: any.
 */
#ifndef PB_ENGINE_GRAPH_THREAD_STATE_H
#define PB_ENGINE_GRAPH_THREAD_STATE_H
#include <stdbool.h>
#include <stdint.h>
#include "arch/arch.h"
#include "base/base.h"
#include "ring/writer.h"

struct pb_open_call;
struct pb_thread;

#define PB_MAX_THREADS	16384
#define PB_MAX_STACKS	16384
/* The guessed bounds of a new stack: at most this many bytes below and above the slot of the
 * stack's first hit. */
#define PB_GUESS_BELOW	(64ul << 10)
#define PB_GUESS_ABOVE	(4ul << 10)
#define PB_STACK_FILLED	2	/* filled entries have this id or a higher one */

struct pb_stack {
	uint64_t lo, hi;	/* [lo, hi) */
	struct pb_open_call *top; /* while no thread runs on the stack: a call near the innermost
				   * open call */
	struct pb_thread *thread; /* the thread that runs on the stack, or ran on it last */
	uint64_t id;		/* the stack's ID in records; 0: free, 1: being filled. The highest
				 * bit is set for a thread's own stack */
	uint32_t period;	/* the period of its open calls (period.h) */
	uint64_t guard;		/* if `exact`: number of bytes from lo on that may not be touched */
	bool exact;		/* the bounds were reported, not guessed */
	bool alternate;		/* a thread's alternate stack for signal handlers */
	struct pb_stack *back;	/* Valid only while a thread is on this stack. If a handler of which
				 * the agent doesn't know has brought the thread to this alternate
				 * stack, `back` is the stack on which the thread was interrupted.
				 * Otherwise it is NULL. */
	uint32_t closing;	/* not 0: the thread with the state number closing - 1 closes the
				 * calls that were left on this stack */
	/* Used to find out whether a stack that lies in a frame of a thread's own stack is gone.
	 * `within` is the innermost open call of the own stack with a slot above this stack;
	 * within_start and within_ret are that call's start time and return address. When that call
	 * is over, this stack is gone. */
	struct pb_open_call *within;
	uint64_t within_start, within_ret;
};

/* memory for the environment of an exec */
struct pb_exec_area {
	void *at;
	uint64_t size;
};

/* A part of the memory that is kept for execs under low limits (process/exec_memory.h). It has room
 * for about 900 variables. */
#define PB_EXEC_RESERVES	16
struct pb_exec_reserve {
	uint8_t room[8192];
};

struct pb_thread {
	uint64_t lo;		/* low end of the current stack, or PB_LO_* (period.h) */
	struct pb_open_call *top; /* a call near the innermost open call of the current stack; NULL:
				   * the state isn't initialised */
	/* copies of the agent's variables pb_max_depth etc., for the assembly (thread_words.h) */
	uint32_t max_depth;
	uint8_t no_clock;
	bool watching;
	uint64_t frozen_clock;
	struct pb_writer w;
	uint64_t thresh;	/* another such copy */
	uint64_t bottom;	/* no address below this one may be touched; 0: not known */
	uint64_t tcb;
	uint64_t starting;	/* the slot of the hit that makes the state */
	struct pb_stack *stack;
	struct pb_stack own;
	struct pb_stack nowhere;	/* stands for a stack that has no place in the table */
	struct pb_stack *visiting;	/* from pb_stack_visit() to pb_stack_leave(): the visited
					 * stack; otherwise NULL */
	struct pb_stack *visited_from;	/* the stack of the hit that made the visit; NULL if
					 * `visiting` is, or if visited_at isn't valid yet */
	uint64_t visited_at;		/* the slot of the hit that made the visit, or the address
					 * of a frame of the agent below it */
	struct pb_stack *alternate;	/* the last stack that sigaltstack reported */
	uint64_t expected;	/* the return slot of the seen handler that began last. If it lies
				 * on an alternate stack, it is cleared when the thread is moved to
				 * that stack. 0: none */
	uint64_t looking;	/* not 0: the thread reads a site or an analysis that it has found
				 * by a site number (thread.h) */
	struct pb_exec_area exec;
} __attribute__((aligned(64)));	/* a usual hit on the fast path needs only the first cache line */

_Static_assert(offsetof(struct pb_thread, lo) == T_LO, "layout.h");
_Static_assert(offsetof(struct pb_thread, top) == T_TOP, "layout.h");
_Static_assert(offsetof(struct pb_thread, max_depth) == T_MAX_DEPTH, "layout.h");
_Static_assert(offsetof(struct pb_thread, no_clock) == T_NO_CLOCK, "layout.h");
_Static_assert(offsetof(struct pb_thread, watching) == T_WATCHING, "layout.h");
_Static_assert(offsetof(struct pb_thread, frozen_clock) == T_FROZEN_CLOCK, "layout.h");
_Static_assert(offsetof(struct pb_thread, thresh) == T_THRESH, "layout.h");
_Static_assert(offsetof(struct pb_thread, bottom) == T_BOTTOM, "layout.h");
_Static_assert(offsetof(struct pb_thread, w.pos) == T_POS, "layout.h");
_Static_assert(offsetof(struct pb_thread, w.base) == T_CHUNK, "layout.h");
_Static_assert(offsetof(struct pb_thread, w.last) == T_LAST, "layout.h");
_Static_assert(offsetof(struct pb_thread, w.leaf) == T_LEAF, "layout.h");
_Static_assert(offsetof(struct pb_thread, w.thread) == T_COUNTS, "layout.h");
_Static_assert(offsetof(struct pb_thread, w.lost) == T_LOST, "layout.h");
_Static_assert(offsetof(struct pb_ring_map, ring) == 0, "slow_entry.S");
_Static_assert(offsetof(struct pb_ring, calls_lost) == R_CALLS_LOST, "layout.h");
_Static_assert(offsetof(struct pb_ring, calls_late) == R_CALLS_LATE, "layout.h");
_Static_assert(offsetof(struct pb_ring_thread, lost) == H_LOST, "layout.h");
_Static_assert(offsetof(struct pb_ring_thread, late) == H_LATE, "layout.h");
_Static_assert(offsetof(struct pb_thread, w.serial) == T_SERIAL, "layout.h");
_Static_assert(offsetof(struct pb_chunk, serial) == L_SERIAL, "layout.h");

/* Never NULL. pb_no_thread: the thread has had no hit. pb_foreign_thread: the thread has a TLS that
 * isn't libc's (process/clone.h). It gets no state, and its calls are lost. */
extern struct pb_thread pb_no_thread, pb_foreign_thread;
extern __thread struct pb_thread *pb_tls __attribute__((tls_model("initial-exec")));
/* Returns whether the calling thread has had no hit, or gets no state. In a forked child, hits
 * before the fork count, too. Context: hit path. */
bool pb_thread_is_new(void);

/* The data of this process. In a forked child, pid is 0 until the child's first hit. */
struct pb_process {
	uint32_t pid;
	uint32_t epoch;		/* differs from the epochs of the ancestors; 0: a child before its
				 * first hit */
	bool forker_came;	/* the thread that forked has got its state again */
	bool stacks_freed;	/* no stack for hits is left over from the parent's other threads
				 * (pb_hit_stacks_forked()) */
	uint32_t nr_threads;	/* states with this number or a higher one are free */
	uint32_t refuse;	/* after a search has found no free state: number of calls that are
				 * lost before the next search */
	uint32_t nr_live, look_at;	/* nr_live: number of threads that have a state; look_at:
					 * that number at the last free_dead() */
	uint32_t nr_stacks;	/* entries of pb_stacks with this index or a higher one were never
				 * used */
	uint32_t stack_hint;	/* where to begin the search for a free entry */
	uint32_t new_stacks;	/* number of new stacks since the last pb_stacks_look() */
	uint32_t look_stacks;	/* number of new stacks that triggers the next pb_stacks_look() */
	uint32_t no_stack;	/* after a search has found no free entry: number of requests that
				 * are refused before the next search */
	uint32_t readers;	/* number of loads under way that may fault (uaccess.c) */
	uint32_t forgetting;	/* number of threads in pb_chain_forget_returns() */
	uint32_t limiting;	/* not 0: a thread gives back address space (process/limits.c) */
	uint32_t text_lock;	/* 1: a thread changes text or modules (pb_text_lock()) */
	bool holes;		/* a stack was reported that lies inside a thread's own stack, in
				 * this process or an ancestor */
	uint64_t exec_owner[PB_EXEC_RESERVES];	/* for each part of the reserve: the TCB of the
						 * thread that uses it; 0: free */
};
_Static_assert(offsetof(struct pb_process, epoch) == PROCESS_EPOCH, "layout.h");
_Static_assert(offsetof(struct pb_process, stacks_freed) == PROCESS_STACKS_FREED, "layout.h");
extern struct pb_process *pb_process;	/* the struct lies in wiped memory */
extern struct pb_exec_reserve *pb_exec_reserves; /* [PB_EXEC_RESERVES] */
extern struct pb_stack *pb_stacks;	/* [PB_MAX_STACKS] */
extern struct pb_thread *pb_threads;	/* [PB_MAX_THREADS] */

/* `holes` of the parent, which a forked child takes over. Not in wiped memory. */
extern bool pb_had_holes;

/* The period that is in force (period.h). */
extern uint32_t pb_period;

/* The number of a state that pb_thread_get() returned: below PB_MAX_THREADS. */
static inline uint32_t pb_thread_number(const struct pb_thread *t)
{
	return (uint32_t)(t - pb_threads);
}

/* Raises *n to `to`, unless it is higher. Other threads and handlers may do the same meanwhile. */
static inline void pb_raise_to(uint32_t *n, uint32_t to)
{
	uint32_t old = __atomic_load_n(n, __ATOMIC_RELAXED);

	while (old < to && !__atomic_compare_exchange_n(n, &old, to, false, __ATOMIC_RELEASE,
							__ATOMIC_RELAXED))
		;
}

/* Iterates over all states that a thread has or had. t: the state before, or NULL to begin. Returns
 * NULL after the last state. */
static inline struct pb_thread *pb_thread_next(struct pb_thread *t)
{
	uint32_t nr = __atomic_load_n(&pb_process->nr_threads, __ATOMIC_SEQ_CST);

	t = t ? t + 1 : pb_threads;
	return t < pb_threads + nr ? t : NULL;
}
#endif
