/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Unwinds the stack of a stopped thread by the CFI of the modules (elfutils' libdwfl).
 * stack_scan.h has a simpler method, which looks at all words of the stack. It finds the calls that
 * the thread is in, but also words that earlier calls have left. The unwinder finds only the calls
 * that the thread is in. It fails in code without CFI, for example in code of a JIT compiler.
 * Context: the injector's thread.
 */
#ifndef PB_ATTACH_STACK_UNWIND_H
#define PB_ATTACH_STACK_UNWIND_H
#include <sys/user.h>
#include "attach/subject.h"

#define ATTACH_UNWIND_MAX 512	/* calls */

struct attach_unwind;

/* Prepares to unwind, with the modules that the process has now. To be called before the thread is
 * stopped, because it takes some milliseconds. NULL: the modules can't be read. */
struct attach_unwind *attach_unwind_begin(struct attach_subject *s);
void attach_unwind_end(struct attach_unwind *u);

/* Stores the return addresses of all calls that a stopped thread with these registers is in,
 * innermost first, in `calls`, which has room for ATTACH_UNWIND_MAX. Returns their number. Returns
 * -ENODATA if there are more than ATTACH_UNWIND_MAX calls, or if the stack has a frame of a signal
 * handler, of code without CFI, or of a file in which the search for CFI would have no limit
 * (has_table() in stack_unwind.c). */
int attach_unwind(struct attach_unwind *u, const struct user_regs_struct *r, uint64_t *calls);
#endif
