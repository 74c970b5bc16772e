/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Hands the agent's file and the recorder's socket to a process that doesn't find them under their
 * paths. Context: the injector's thread. */
#ifndef PB_ATTACH_HAND_OVER_H
#define PB_ATTACH_HAND_OVER_H
#include "attach/libc_map.h"
#include "attach/remote.h"
#include "attach/subject.h"

/* The new thread of the process, which makes system calls for the injector. */
struct attach_hand {
	struct attach_subject *s;
	const struct attach_libc *l;
	struct attach_remote *thread;
	const struct user_regs_struct *start;	/* the thread's registers in its start routine */
	uint64_t deadline;
	int agent, session;			/* the descriptors in the process; -1: none */
};

/* Makes both descriptors in the process. Returns 0, or -errno with the user's line; -ESRCH and
 * -ETIMEDOUT have no line. */
int attach_hand_over(struct attach_hand *h);
/* Closes both descriptors in the process. */
void attach_hand_close(struct attach_hand *h);
#endif
