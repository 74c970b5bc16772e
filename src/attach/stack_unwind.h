/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Unwinds the stack of a stopped thread by the CFI of the modules (elfutils' libdwfl). The scan of
 * stack_scan.h also finds old words of earlier calls. The unwinder finds only the calls that the
 * thread is in, but it fails if a module has no CFI, for example code of a JIT compiler.
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
 * innermost first, in `calls`, which has room for ATTACH_UNWIND_MAX. Returns their number, or
 * -ENODATA: there are more calls, a signal handler, code without CFI, or code of a file in which
 * the search for CFI would have no limit (has_table()). */
int attach_unwind(struct attach_unwind *u, const struct user_regs_struct *r, uint64_t *calls);
#endif
