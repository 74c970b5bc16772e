/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Hides stubs and the hit path's assembly from the program's signal handlers. For this, sigaction()
 * is replaced. Before a handler runs, a PC in a stub or in that assembly is translated to the
 * original PC. A PC in the agent's C code isn't translated. See doc/design/text.md.
 */
#ifndef PB_ENGINE_PROCESS_SIGACTION_H
#define PB_ENGINE_PROCESS_SIGACTION_H
#include "engine/text/text.h"

/* If m is libc, replaces sigaction, makecontext and sigaltstack in the open batch. True: m is libc,
 * and all functions that pb_sigaction_start() needs are replaced, except prctl and the functions
 * that change masks. Context: start, the loader's hook. */
bool pb_sigaction_hook(struct pb_module *m);
/* Called once prctl and the functions that change masks are replaced, too (prctl.h, sigmask.h). */
void pb_sigaction_masks_known(void);
/* Makes SIGSEGV and SIGBUS come to the agent (doc/design/reads.md), if all functions that this
 * needs are replaced, both signals have SIG_DFL, and reads weren't turned off. True: this is done,
 * and the caller must call pb_sigmask_ask(). Context: start, after the batch was committed, while
 * no thread can be inside libc's sigaction(). */
bool pb_sigaction_start(void);
/* Stops the threads, takes over the handlers that a live program has installed, and calls
 * pb_sigaction_start(). *reads: its result. Returns 0 or -errno. Context: the agent's thread, after
 * the batch was committed that replaced sigaction(). */
int pb_sigaction_adopt(bool *reads);
/* Turns reads off for good: no further load may fault. Unless a load may still be under way, sets
 * the program's own dispositions of SIGSEGV and SIGBUS in the kernel again. But a handler of the
 * program still gets its signal through pb_signal_entry(). Context: any but the hit path. */
void pb_sigaction_stand_down(void);
/* Whether a thread that is stopped at pc may be inside libc's sigaction(), past the place that is
 * replaced. Context: the agent's thread, while the other threads are stopped. */
bool pb_in_sigaction(uint64_t pc);
/* Sets all of the program's own handlers in the kernel again. From then on, the replacement of
 * sigaction() installs no handler of the agent any more. Context: no thread is inside this
 * replacement, or inside the sigaction() of libc, which the replacement calls. If a detach has
 * given up waiting for such a thread, it calls this function again when the thread has left. */
void pb_sigaction_undo(void);
#endif
