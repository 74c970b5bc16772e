/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Reads memory of the program that may be unmapped. A read needs no system call, and a read that
 * faults doesn't end the program. See doc/design/reads.md.
 *
 * Context of all functions: hit path, unless a comment says otherwise.
 */
#ifndef PB_ENGINE_UACCESS_H
#define PB_ENGINE_UACCESS_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "engine/sandbox.h"
#include "engine/graph/thread.h"

/* The hit during which the engine reads, or the program's call of a function of the engine. */
struct pb_hit {
	uint64_t slot;		/* return slot of the call that was hit, or a word of the current
				 * frame */
	uint32_t site;		/* the number of the function that was called, or PB_SITE_PROGRAM */
	const struct pb_stack *stack;	/* the stack that holds the slot */
};
#define PB_SITE_PROGRAM	(~0u)	/* no site: the program called a function of the engine */

/* If pb_reads_begin() returns true, loads may fault (pb_fault_load()) until pb_reads_end() is
 * called. A signal handler may interrupt the code between the two calls, and leave by a jump.
 * pb_may_read() returns whether pb_reads_begin() could return true. */
bool pb_reads_begin(const struct pb_thread *t, const struct pb_hit *h);
void pb_reads_end(void);
bool pb_may_read(const struct pb_thread *t, const struct pb_hit *h);

/* Copies n bytes. Returns 0 or an error. -EFAULT: nothing is mapped at `from`. -EACCES: the memory
 * can't be read now. -EPERM: the read wasn't tried, because a fault might end the program. */
int pb_copy_from_user_nofault(void *to, uint64_t from, size_t n, const struct pb_thread *t,
			      const struct pb_hit *h);

/* The agent's knowledge of this thread's signal mask. `known` is cleared before a change that may
 * block SIGSEGV or SIGBUS, and set after a change that unblocks them. */
struct pb_unblocked {
	/* The return slot of the thread's start routine. Once the routine has returned, the slot
	 * holds another value than ret. 0: the mask is never known. */
	uint64_t slot;
	uint64_t known;		/* not 0: neither SIGSEGV nor SIGBUS is blocked */
	uint64_t ret;		/* the slot's value while the start routine runs */
	/* The slot of a handler that was entered and may still run; 0: there is none. If more than
	 * one may run, all of them are over when this one is. PB_BLOCKS: the return from one of
	 * them may block the signals. */
	uint64_t handler;
};
#define PB_BLOCKS	1ul	/* a bit of `handler` */

/* Called when a handler is about to be entered. The agent won't see the handler's end. sp: the
 * stack pointer of the interrupted code; slot: the handler's return slot; open: the mask that the
 * handler's return restores blocks neither signal. */
void pb_unblocked_in_handler(uint64_t sp, uint64_t slot, bool open);
/* Called when the program has set the thread's mask. open: the mask blocks neither signal. frame:
 * an address in the current frame. If a handler may still run, its return may restore another mask,
 * so the mask stays unknown. Returns whether no handler runs. */
bool pb_unblocked_set(bool open, uint64_t frame);
#define PB_MAIN_THREAD	1ul	/* the `slot` of the main thread, which has no start routine */
extern __thread struct pb_unblocked pb_unblocked __attribute__((tls_model("initial-exec")));

#define PB_FAULT_SIGNALS (1ul << (11 - 1) | 1ul << (7 - 1))	/* SIGSEGV, SIGBUS */

/* Called right before the agent's handlers of SIGSEGV and SIGBUS are set. Once they are set, loads
 * may fault in threads whose mask is known. False: reads were turned off before. Context: start. */
bool pb_reads_on(void);
/* Number of bytes of stack that a signal frame and the agent's handler may need. */
extern uint64_t pb_frame_room;
/* Turns reads off for good: no further load may fault. Waits for loads that are under way.
 * False: a load may still be under way. Context: any but the hit path. */
bool pb_reads_off(void);
bool pb_reads_are_on(void);
#endif
