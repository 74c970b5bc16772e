/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What the injector does while the new thread is in dlopen(). Another thread may fork meanwhile.
 * The child then has a copy of the loader's data from the middle of this dlopen(), and nobody ends
 * the dlopen() there. libc doesn't prevent this. So the injector clears a flag, by which the loader
 * of such a child would end the child at its next dlopen() (doc/design/injection.md, "Forks during
 * dlopen"). Context: the injector's thread.
 */
#ifndef PB_ATTACH_LOADING_H
#define PB_ATTACH_LOADING_H
#include <stdint.h>
#include <sys/user.h>
#include "attach/subject.h"

struct attach_loading {
	const struct attach_subject *s;
	uint64_t flags;		/* offset of the entry DT_FLAGS_1 in the agent's file; 0: unknown */
};

/* Reads the agent's file. If this fails, dlopen() goes on with the flag. Returns 0, or an error
 * with the user's line: the process is a child that was forked in the middle of such a dlopen(),
 * and its copy of the agent can't be used. The caller must have read the mappings and opened mem.
 */
int attach_loading_begin(struct attach_loading *g, struct attach_subject *s);
/* Called after each system call of the new thread in dlopen(), with the registers after it. */
void attach_loading_called(void *loading, const struct user_regs_struct *regs);
#endif
