/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What the agent does when a signal arrives, and the table of the program's handlers. sigaction.c
 * fills the table. See doc/design/text.md.
 */
#ifndef PB_ENGINE_PROCESS_SIGNAL_ENTRY_H
#define PB_ENGINE_PROCESS_SIGNAL_ENTRY_H
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>

#define PB_SIGNALS 65

typedef void pb_handler_fn(int sig, siginfo_t *info, void *uc);

/* The kernel's struct sigaction. */
struct pb_kernel_sigaction {
	void *handler;
	uint64_t flags;
	void *restorer;
	uint64_t mask;
};

/* The program's handlers. The kernel has pb_signal_entry() in place of each of them. */
extern pb_handler_fn *pb_handlers[PB_SIGNALS];
/* The flags that the program set for SIGSEGV or SIGBUS: `flags` with a handler, `default_flags`
 * with SIG_DFL. */
extern struct pb_handler_flags {
	int flags, default_flags;
} pb_handler_flags[PB_SIGNALS];

/* SIGSEGV and SIGBUS come to the agent first. */
static inline bool pb_signal_is_fault(int sig)
{
	return sig == SIGSEGV || sig == SIGBUS;
}

/* If the program has set SIG_DFL for SIGSEGV or SIGBUS, the kernel has this handler instead. */
void pb_signal_default(int sig, siginfo_t *info, void *context);
/* Like pb_signal_default(), but for a signal whose disposition the program has never set. */
void pb_signal_default_at_start(int sig, siginfo_t *info, void *context);
/* Called at a detach, when the program's own handlers are in the kernel again. From now on, the
 * ends of handlers that run already aren't looked at. Context: the other threads are stopped. */
void pb_signal_leave(void);
#endif
