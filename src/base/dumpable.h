/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Makes the process dumpable for a moment, so that a helper without CAP_SYS_PTRACE may trace its
 * threads. Afterwards the process has its own state again, even if the program has called
 * prctl(PR_SET_DUMPABLE) meanwhile. Context: no libc is needed.
 */
#ifndef PB_BASE_DUMPABLE_H
#define PB_BASE_DUMPABLE_H
#include <stdbool.h>
#include <stdint.h>

/* Begins a loan: if the process isn't dumpable, makes it dumpable. With CAP_SYS_PTRACE, this isn't
 * needed, and nothing changes. */
void pb_dumpable_lend(void);
/* Ends the loan, if there is one. A child that is forked during a loan inherits it. So each forked
 * child calls this function, or pb_dumpable_forked(). */
void pb_dumpable_return(void);
/* The program is about to fork. Returns an opaque word for pb_dumpable_forked(). */
uint32_t pb_dumpable_fork_begins(void);
/* Called in the child. fork(2) copies the state first, and the memory later. If a loan ends in
 * between, the child inherits only the state. This function ends such a loan, too. (If the program
 * has made itself dumpable just when a stop has begun, the child isn't dumpable.) */
void pb_dumpable_forked(uint32_t before);

/* The program is about to set the value 0 or 1. From now on the state is this value at the end of a
 * loan. If the value is 0, this also holds if the program's call fails, or if a child is forked
 * before the call. Returns an opaque word for pb_dumpable_asked(). */
uint32_t pb_dumpable_ask(uint32_t value);
/* The program's call has been made. Returns true if the caller must call pb_dumpable_ask() and make
 * the call again, because a loan has begun meanwhile. before: the result of pb_dumpable_ask(). */
bool pb_dumpable_asked(uint32_t value, bool failed, uint32_t before);

/* Returns whether the process is dumpable only because of a loan. *value gets its state without the
 * loan. */
bool pb_dumpable_is_lent(int *value);
/* Number of loans that have begun. It is raised at the moment at which pb_dumpable_is_lent() begins
 * to return true, before the state changes. */
uint32_t pb_dumpable_loans(void);
#endif
