/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Borrows a thread of the process, for one call of pthread_create(). Context: as inject.h. */
#ifndef PB_ATTACH_BORROW_H
#define PB_ATTACH_BORROW_H
#include "attach/libc.h"
#include "attach/remote.h"

#define PB_SCRATCH	(64ul << 10)	/* bytes of the scratch memory */

/* A new thread of the process, which is stopped at its beginning, and the memory that it may use.
 * All signals are blocked in it. */
struct pb_borrowed {
	pid_t from;		/* the thread that was borrowed */
	pid_t tid;		/* the new thread */
	uint64_t id;		/* its pthread_t */
	uint64_t scratch;
	uint64_t stop_ns;	/* how long the borrowed thread was stopped */
};

/* Makes the new thread. The thread that was borrowed runs on as if nothing had happened. Returns 0,
 * or -errno with the reason in *why (as in fitness.h). */
int pb_borrow(pid_t pid, int mem, const struct pb_libc *l, struct pb_borrowed *b,
	      const char **why);
#endif
