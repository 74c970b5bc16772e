/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Signal handlers of the program see program counters of the program: the
 * program's sigaction goes through here, and before its handler runs, a PC in
 * code of ours becomes the original one. doc/design/text.md.
 */
#ifndef PB_ENGINE_PROCESS_SIGACTION_H
#define PB_ENGINE_PROCESS_SIGACTION_H
#include "engine/text/text.h"

/* Replaces sigaction, makecontext, sigaltstack and others, if m is libc (in the
 * open batch). True: it is, and all that the start needs is replaced, but for what
 * changes masks. Context: start, the loader's hook. */
bool pb_sigaction_hook(struct pb_module *m);
/* That is replaced, too (sigmask.h). */
void pb_sigaction_masks_known(void);
/* SIGSEGV and SIGBUS come to us from now on (doc/design/reads.md), if all that
 * this needs was replaced: then the calling thread is to ask for its mask, and this
 * is true. Context: start, when the batch is in force. */
bool pb_sigaction_start(void);
/* The kernel gets the program's own dispositions of the two back, and no load
 * may fault any more. Context: any but the hit path. */
void pb_sigaction_stand_down(void);
/* The program is about to call prctl. Context: the program's thread. */
void pb_sigaction_prctl(int op, unsigned long a, unsigned long b);
/* The kernel gets all of the program's own handlers. Context: while no thread is
 * inside of sigaction, and pb_detached keeps it so. */
void pb_sigaction_undo(void);
#endif
