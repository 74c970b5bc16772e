/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Says whether a system call of the agent may end the program. A seccomp filter may kill the
 * program for a call that the program itself would never make. Context: any.
 */
#ifndef PB_ENGINE_SANDBOX_H
#define PB_ENGINE_SANDBOX_H
#include <stdbool.h>

/* The program has asked for a seccomp filter, or for seccomp's strict mode. */
extern bool pb_sandboxed;
/* There were filters at the start. So a system call may be fatal if neither the program nor the
 * agent's start makes it. */
extern bool pb_filtered;

static inline bool pb_calls_are_safe(void)
{
	return !pb_sandboxed && !pb_filtered;
}
#endif
