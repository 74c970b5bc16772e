/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Which state (thread_state.h) a thread has: made at its first hit, and again at its first hit in
 * a forked child. A thread that ended is noticed when its TCB's address comes again (glibc keeps
 * the stacks): its state is taken over.
 */
#ifndef PB_ENGINE_GRAPH_THREAD_H
#define PB_ENGINE_GRAPH_THREAD_H
#include <stdbool.h>
#include <stdint.h>
#include "engine/graph/stack.h"
#include "engine/graph/thread_state.h"

extern char __ehdr_start[] __attribute__((visibility("hidden")));
extern char _end[] __attribute__((visibility("hidden")));

/* Is it the agent's own code? */
static inline bool pb_agent_holds(uint64_t pc)
{
	return pc - (uint64_t)__ehdr_start < (uint64_t)(_end - __ehdr_start);
}

extern bool pb_follow_fork;
extern uint32_t pb_image;

/* Maps the wiped memory, finds where glibc keeps a thread's TID and stack.
 * Context: start, one thread. -errno. */
int pb_threads_start(uint64_t stack_top);

/* The calling thread's state, made if need be; NULL: this thread can't be
 * traced. slot: any address on its stack. Context: hit path. */
struct pb_thread *pb_thread_get(uint64_t slot);

/* It had no hit yet, nor had the thread that forked it. */
bool pb_thread_is_new(void);

/* Whether the address is known to lie on the calling thread's own stack. */
bool pb_on_own_stack(uint64_t address);

#endif
