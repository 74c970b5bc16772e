/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A traced thread's state. It lies in memory that is wiped in a forked child,
 * so that the child's first hit finds zeros and takes the slow way, where it
 * becomes a thread of its own and keeps the calls that were open.
 *
 * The TLS word points to it; before a thread's first hit to a state of zeros
 * that is never written. A thread that ended is noticed when its TCB's address
 * comes again (glibc keeps the stacks): its state is taken over.
 */
#ifndef PB_ENGINE_GRAPH_THREAD_H
#define PB_ENGINE_GRAPH_THREAD_H
#include <stdbool.h>
#include <stdint.h>
#include "arch/x86_64/layout.h"
#include "base/base.h"
#include "engine/graph/stack.h"
#include "ring/writer.h"

struct pb_thread {
	uint64_t lo;		/* of the current stack */
	struct pb_open_call *top; /* near its innermost open call; NULL: not initialised */
	uint64_t bottom;	/* nothing below it may be touched; 0: not known */
	struct pb_writer w;
	uint64_t tcb;
	uint64_t starting;	/* the slot of the hit that made the state */
	struct pb_stack *stack;
	struct pb_stack own;
	struct pb_stack nowhere;	/* while its stack has no place in the table */
	struct pb_stack *visiting;	/* pb_stack_visit() */
	void *exec_area;	/* for the environment of an exec */
	uint64_t exec_size;
};

_Static_assert(offsetof(struct pb_thread, lo) == T_LO, "layout.h");
_Static_assert(offsetof(struct pb_thread, top) == T_TOP, "layout.h");
_Static_assert(offsetof(struct pb_thread, bottom) == T_BOTTOM, "layout.h");
_Static_assert(offsetof(struct pb_thread, w.pos) == T_POS, "layout.h");
_Static_assert(offsetof(struct pb_thread, w.base) == T_CHUNK, "layout.h");
_Static_assert(offsetof(struct pb_thread, w.last) == T_LAST, "layout.h");
_Static_assert(offsetof(struct pb_thread, w.leaf) == T_LEAF, "layout.h");
_Static_assert(offsetof(struct pb_thread, w.thread) == T_COUNTS, "layout.h");
_Static_assert(offsetof(struct pb_thread, w.lost) == T_LOST, "layout.h");
_Static_assert(offsetof(struct pb_ring_map, ring) == 0, "slow_entry.S");
_Static_assert(offsetof(struct pb_ring, calls_lost) == R_CALLS_LOST, "layout.h");
_Static_assert(offsetof(struct pb_ring_thread, lost) == H_LOST, "layout.h");
_Static_assert(offsetof(struct pb_thread, w.serial) == T_SERIAL, "layout.h");
_Static_assert(offsetof(struct pb_chunk, serial) == L_SERIAL, "layout.h");

extern __thread struct pb_thread *pb_tls __attribute__((tls_model("initial-exec")));
extern char __ehdr_start[] __attribute__((visibility("hidden")));
extern char _end[] __attribute__((visibility("hidden")));

/* Is it the agent's own code? */
static inline bool pb_agent_holds(uint64_t pc)
{
	return pc - (uint64_t)__ehdr_start < (uint64_t)(_end - __ehdr_start);
}

/* What is true of this process; pid is 0 in a child until its first hit. */
struct pb_process {
	uint32_t pid;
	uint32_t epoch;		/* 0: in a child before its first hit; differs from its parents' */
	bool forker_came;	/* the thread that forked has its state again */
	uint32_t nr_threads;	/* states at or above it are free */
	uint32_t refuse;	/* so many hits of threads without a state are lost unasked */
	uint32_t nr_live, look_at;	/* threads with a state; at the last look for dead ones */
	uint32_t nr_stacks;	/* those at or above it were never used */
	uint32_t stack_hint;	/* about where one is free */
	uint32_t new_stacks;	/* since the last look for those that are gone */
	uint32_t look_stacks;	/* so many new ones until the next look */
	uint32_t no_stack;	/* so often no place is looked for, as there was none */
	uint32_t readers;	/* loads that may fault, under way (uaccess.c) */
	bool holes;		/* a stack was told that lies inside a thread's own */
};
extern struct pb_process *pb_process;	/* in wiped memory */
extern bool pb_follow_fork;
extern uint32_t pb_image;

/* Maps the wiped memory, finds where glibc keeps a thread's TID and stack.
 * Context: start, one thread. -errno. */
int pb_threads_start(uint64_t stack_top);

/* The calling thread's state, made if need be; NULL: this thread can't be
 * traced. slot: any address on its stack. Context: hit path. */
struct pb_thread *pb_thread_get(uint64_t slot);

/* All states that a thread has or had, from NULL on; then NULL. Context: any. */
struct pb_thread *pb_thread_next(struct pb_thread *t);

/* It had no hit yet, nor had the thread that forked it. */
bool pb_thread_is_new(void);

#define PB_MAX_THREADS	16384
/* Of a state that pb_thread_get() gave: below PB_MAX_THREADS. */
uint32_t pb_thread_number(const struct pb_thread *t);

/* Whether the address is known to lie on the calling thread's own stack. */
bool pb_on_own_stack(uint64_t address);

#endif
