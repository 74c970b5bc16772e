/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Makes the agent like one that was just loaded, for the next attach. All its variables get their
 * initial values, except those that are declared PB_LASTING (base/base.h). Its memory is unmapped,
 * except the threads' states (renew.c), the copy of the initial values, and the page of
 * pb_renew_spared(). Context: the thread that calls patchbay_attach(), when no thread is in the
 * agent's code and the agent's own thread has ended.
 */
#ifndef PB_ENGINE_RENEW_H
#define PB_ENGINE_RENEW_H
#include <stdbool.h>
#include <stdint.h>

/* Keeps a copy of the initial values. Returns 0 or -errno. Context: the first attach, before the
 * agent has changed a variable. */
int pb_renew_keep(void);
/* Whether there is such a copy. */
bool pb_renew_possible(void);
void pb_renew(void);
/* Returns a page that pb_renew() leaves as it is, and that is wiped in a forked child. NULL: the
 * page can't be mapped. Context: any thread. */
void *pb_renew_spared(void);
/* How often pb_renew() was called. */
extern uint32_t pb_renewals;
#endif
