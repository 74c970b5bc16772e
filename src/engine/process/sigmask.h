/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Keeps track of threads' signal masks (struct pb_unblocked), by replacing the functions that
 * change them. See doc/design/reads.md, "Masks".
 */
#ifndef PB_ENGINE_PROCESS_SIGMASK_H
#define PB_ENGINE_PROCESS_SIGMASK_H
#include <stdbool.h>
#include "engine/text/text.h"

/* Replaces libc's functions. False: a function is missing or can't be replaced, so the agent can't
 * know the threads' masks. Context: start or the loader's hook, an open batch. */
bool pb_sigmask_hook(struct pb_module *libc);
/* Asks the kernel for the mask of the calling thread. Context: start, or a thread that begins. */
void pb_sigmask_ask(void);
#endif
