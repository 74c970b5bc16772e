/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Says whether a system call of the agent may end the program. A seccomp filter may kill the
 * program for a call that the program itself would never make. Context: any.
 */
#ifndef PB_ENGINE_SANDBOX_H
#define PB_ENGINE_SANDBOX_H
#include <stdbool.h>
#include <stdint.h>

/* How often the program has asked for a seccomp filter, or for seccomp's strict mode. Calls of
 * prctl that have failed don't count. A child of vfork counts for its parent, too, because they
 * share this word. */
extern uint32_t pb_sandboxed;
/* There were seccomp filters at the start. They allow the system calls that the program makes, and
 * those that the agent's start has made. Any other system call may be fatal. */
extern bool pb_filtered;

static inline bool pb_calls_are_safe(void)
{
	return !pb_sandboxed && !pb_filtered;
}
#endif
