/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * When the program changes its credentials, libc changes the credentials of all threads that it
 * knows. libc doesn't know the agent's thread. So setuid and related functions are replaced. A
 * replacement first calls libc's function. If that succeeds, the replacement asks the agent's
 * thread to make the same system call, and waits for it, for two seconds at most.
 */
#ifndef PB_ENGINE_PROCESS_CREDS_H
#define PB_ENGINE_PROCESS_CREDS_H
#include "engine/text/text.h"

extern bool pb_creds_wanted;	/* the agent will have a thread; set before pb_creds_hook() */
/* Replaces setuid and related functions if m has them, as a part of the open batch (text.h). */
void pb_creds_hook(struct pb_module *m);
/* Called after prctl() with these arguments has succeeded. Context: the program's thread. */
void pb_creds_prctl(int op, unsigned long a, unsigned long b, unsigned long c, unsigned long d);
/* Whether the agent's thread has the user, the groups and the capabilities of the main thread.
 * After an attach they may differ: the agent's thread has those of the thread that made it, and
 * changes that the program made before setuid and related functions were replaced haven't reached
 * it. Context: the agent's thread. */
bool pb_creds_are_those_of_main(void);
/* From this call on, the agent's thread calls pb_creds_serve() every 20 ms while it waits for
 * messages. */
void pb_creds_start(void);
/* Called when the agent's thread is about to end. */
void pb_creds_end(void);
/* Called in a forked child. Forgets a request that is under way, because it is the parent's. */
void pb_creds_forget(void);
/* Makes the system call that a thread has asked for. False: the agent's thread must detach, and end
 * (pb_creds_dismiss()). Context: the agent's thread. */
bool pb_creds_serve(void);
/* Called when the program is about to set a seccomp filter for all its threads, which may kill the
 * process for the next system call of the agent's thread. Returns when the agent's thread has
 * detached and ended, or after 10 seconds. Context: the program's thread. */
void pb_creds_dismiss(void);
/* Whether a thread that is stopped at pc waits in pb_creds_dismiss(). Such a thread uses no memory
 * that a detach unmaps. */
bool pb_creds_waits(uint64_t pc);
#endif
