/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The interpreter once more, with a look at all that it touches. Linked in place of
 * the machine's own. */
#include "checked.h"
#define PB_BPF_CHECKED
#define CHECKED(run, addr, size)	checked_access(run, (uint64_t)(addr), size)
#define STACK_BEGINS(run, stack)	checked_stack_begins((uint64_t)(stack))
#define STACK_ENDS(run)			checked_stack_ends()
#define CALLS(run, fn, r)		checked_call(run, fn, r)
#include "../../src/bpf/interp.c"
