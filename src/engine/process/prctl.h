/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Reacts to calls of prctl that affect the agent: they set a seccomp filter, forbid reading the
 * clock, name a ptracer, set or get the dumpable state, or change credentials.
 */
#ifndef PB_ENGINE_PROCESS_PRCTL_H
#define PB_ENGINE_PROCESS_PRCTL_H
#include <stdbool.h>
#include "engine/text/text.h"

/* Replaces prctl in the open batch. False: m has no prctl, or it can't be replaced, or the prctl of
 * another module is replaced. Context: start, the loader's hook. */
bool pb_prctl_hook(struct pb_module *m);
/* Called when the program is about to call prctl by libc's prctl() or syscall().
 * Context: the program's thread. */
void pb_prctl_begins(int op, unsigned long a, unsigned long b);
#endif
