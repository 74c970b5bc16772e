/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Gives each thread its state (thread_state.h), at its first hit and again at its first hit in a
 * forked child. A thread is identified by the address of its TCB, glibc's control block for the
 * thread. glibc reuses stacks together with their TCBs. So if a new thread has the TCB address of a
 * known thread, the known thread has ended, and the new thread takes over that thread's state.
 */
#ifndef PB_ENGINE_GRAPH_THREAD_H
#define PB_ENGINE_GRAPH_THREAD_H
#include <stdbool.h>
#include <stdint.h>
#include "engine/graph/stack.h"
#include "engine/graph/thread_state.h"

extern char __ehdr_start[] __attribute__((visibility("hidden")));
extern char _end[] __attribute__((visibility("hidden")));

/* Whether pc is in the agent's own code. */
static inline bool pb_agent_holds(uint64_t pc)
{
	return pc - (uint64_t)__ehdr_start < (uint64_t)(_end - __ehdr_start);
}

extern bool pb_follow_fork;
extern uint32_t pb_image;

/* A thread that libc made, so that its TCB holds its TID. pb_threads_start() searches the TCB for
 * the TID. */
struct pb_known_thread {
	uint64_t stack_top;	/* the upper end of the main thread's stack */
	uint64_t tcb;
	uint32_t tid;
	bool is_main;		/* false: the main thread is another one, whose TCB isn't known */
};
/* Maps the memory that a fork wipes, and finds where glibc keeps a thread's TID.
 * Returns 0 or -errno. Context: start, one thread. */
int pb_threads_start(const struct pb_known_thread *thread);

/* Wipes the states of all threads. The next hit of each thread then counts as its first. There is
 * one exception, in a forked child: if the thread that called fork has had no hit in the child yet,
 * its next hit counts as its first hit after the fork. Context: renew.c; no thread is in the
 * agent's code. */
void pb_threads_forget(void);

/* Returns the calling thread's state, and makes it if there is none. NULL: this thread can't be
 * traced. slot: the return slot of the hit, or another address on the current stack. Context: hit
 * path. */
struct pb_thread *pb_thread_get(uint64_t slot);

/*
 * An open call names its site by a number. The call may have been left by a jump, and its module
 * may be unloaded by now. So a thread that reads what pb_site_by_id() finds, or calls a function
 * that does, calls pb_look_begin() first and pb_look_end() afterwards. pb_look_end() gets the
 * result of pb_look_begin(). The mark of a look is the address of a variable on the stack. If a
 * handler has interrupted a look and leaves by a jump, the mark stays, until a later look at a
 * higher address of the stack takes it away.
 */
uint64_t pb_look_begin(struct pb_thread *t);
void pb_look_end(struct pb_thread *t, uint64_t before);
/* Waits until no other thread is in a look that has begun before this call. False: a thread stays
 * in its look for too long, or has left it by a jump. Context: a thread in dlclose. */
bool pb_looks_wait(void);

/* Whether the address is known to lie on the calling thread's own stack. */
bool pb_on_own_stack(uint64_t address);

#endif
