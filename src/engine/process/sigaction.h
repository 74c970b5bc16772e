/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Signal handlers of the program see program counters of the program: sigaction()
 * is replaced, and before a handler runs, a PC in our code is translated to the
 * original one. doc/design/text.md.
 */
#ifndef PB_ENGINE_PROCESS_SIGACTION_H
#define PB_ENGINE_PROCESS_SIGACTION_H
#include "engine/text/text.h"

/* Replaces sigaction, makecontext, sigaltstack and others, if m is libc (in the open batch). True:
 * m is libc, and all functions that pb_sigaction_start() needs are replaced, except for those that
 * change masks. Context: start, the loader's hook. */
bool pb_sigaction_hook(struct pb_module *m);
/* Called once the functions that change masks are replaced, too (sigmask.h). */
void pb_sigaction_masks_known(void);
/* Makes SIGSEGV and SIGBUS come to us (doc/design/reads.md), if all functions that
 * this needs are replaced. True: done; the caller then calls pb_sigmask_ask().
 * Context: start, when the batch is in force. */
bool pb_sigaction_start(void);
/* Gives the kernel the program's own dispositions of SIGSEGV and SIGBUS back. After this
 * no load may fault. Context: any but the hit path. */
void pb_sigaction_stand_down(void);
/* The program is about to call prctl. Context: the program's thread. */
void pb_sigaction_prctl(int op, unsigned long a, unsigned long b);
/* Gives the kernel all of the program's own handlers back. Context: no thread is inside our
 * sigaction(), and pb_detached is set, so it installs no handler of ours any more. */
void pb_sigaction_undo(void);
#endif
