/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Whether a system call of the agent's may end the program: seccomp filters kill for
 * calls that the program itself would never make. Context: any.
 */
#ifndef PB_ENGINE_SANDBOX_H
#define PB_ENGINE_SANDBOX_H
#include <stdbool.h>

/* The program asked for a seccomp filter. */
extern bool pb_sandboxed;
/* There were filters at start: calls that neither the program nor the start made may be
 * fatal, too. */
extern bool pb_filtered;

static inline bool pb_calls_are_safe(void)
{
	return !pb_sandboxed && !pb_filtered;
}
#endif
