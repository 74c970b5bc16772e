/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Reading the program's memory where it may be gone, without a system call and
 * without ending the program. doc/design/reads.md.
 *
 * All functions: context hit path, unless said.
 */
#ifndef PB_ENGINE_UACCESS_H
#define PB_ENGINE_UACCESS_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "engine/sandbox.h"
#include "engine/graph/thread.h"

/* Where the engine stands when it wants to read. */
struct pb_hit {
	uint64_t slot;		/* of the call that was hit, or in the present frame */
	uint32_t site;		/* its function */
	const struct pb_stack *stack;	/* that holds the slot */
};
#define PB_SITE_PROGRAM	(~0u)	/* none: a function of the engine's that the program called */

/* Between the first two a load may fault (pb_fault_load()); end only after true. A
 * handler that leaves between them for good does no harm. */
bool pb_reads_begin(const struct pb_thread *t, const struct pb_hit *h);
void pb_reads_end(void);
bool pb_may_read(const struct pb_thread *t, const struct pb_hit *h);

/* 0, -EFAULT: nothing is mapped there, -EACCES: it can't be read now, -EPERM:
 * not tried, as a fault might end the program. */
int pb_copy_from_user_nofault(void *to, uint64_t from, size_t n, const struct pb_thread *t,
			      const struct pb_hit *h);

/* What this thread knows of its mask. Whoever takes knowledge away does it
 * before the mask changes, whoever gives it does it after. */
struct pb_unblocked {
	/* where its routine's return address stands, and that address: when it ended
	 * something else stands there; 0: it never knows */
	uint64_t slot;
	uint64_t known;		/* neither SIGSEGV nor SIGBUS is blocked */
	uint64_t ret;
	uint64_t handler;	/* the slot of a handler that was entered, and may run; or 0 */
};
/* A handler is about to be entered, and nothing of ours will see its end. */
void pb_unblocked_in_handler(uint64_t slot);
#define PB_MAIN_THREAD	1ul	/* in slot: no routine that ends */
extern __thread struct pb_unblocked pb_unblocked __attribute__((tls_model("initial-exec")));

#define PB_FAULT_SIGNALS (1ul << (11 - 1) | 1ul << (7 - 1))	/* SIGSEGV, SIGBUS */

/* Both signals come to our handlers from now on. False: reads were turned off
 * before. Context: start. */
bool pb_reads_on(void);
/* What a signal frame and its handlers may take of a stack. */
extern uint64_t pb_frame_room;
/* No load may fault any more, for good; waits for those that are under way.
 * False: one may still be. Context: any but the hit path. */
bool pb_reads_off(void);
bool pb_reads_are_on(void);
#endif
