/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What threads know of their signal masks (struct pb_unblocked): replaces what
 * changes them. doc/design/reads.md, "Masks". Context: start, an open batch.
 */
#ifndef PB_ENGINE_PROCESS_SIGMASK_H
#define PB_ENGINE_PROCESS_SIGMASK_H
#include <stdbool.h>
#include "engine/text/text.h"

/* libc's functions. False: not all of them are there and can be replaced, so
 * nothing may be known. */
bool pb_sigmask_hook(struct pb_module *libc);
/* The calling thread asks the kernel. */
void pb_sigmask_ask(void);
#endif
