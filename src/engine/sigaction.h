/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Signal handlers of the program see program counters of the program: the
 * program's sigaction goes through here, and before its handler runs, a PC in
 * code of ours becomes the original one. doc/design/text.md.
 */
#ifndef PB_ENGINE_SIGACTION_H
#define PB_ENGINE_SIGACTION_H
#include "engine/text.h"

/* Replaces sigaction, makecontext and sigaltstack, if m is libc (in the open
 * batch). */
void pb_sigaction_hook(struct pb_module *m);
/* The kernel gets the program's own handlers. Context: while no thread is
 * inside of sigaction, and pb_detached keeps it so. */
void pb_sigaction_undo(void);
#endif
