/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Finds out in which code a thread may be. Looks at the words of the used part of the thread's
 * stack, without unwinding. Old words of earlier calls may remain in unused parts of frames. So the
 * answer may name code that the thread has left. But it never misses code that the thread is in, if
 * that code's return address is at most 64 KiB above the stack pointer. Context: the injector's
 * thread.
 */
#ifndef PB_ATTACH_STACK_SCAN_H
#define PB_ATTACH_STACK_SCAN_H
#include "attach/libc_map.h"
#include "attach/subject.h"

#define ATTACH_IN_LOADER	1	/* a call of the loader is on the stack */
#define ATTACH_IN_HANDLER	2	/* a signal handler is on the stack, and it isn't certain
					 * that the handler has interrupted an idle system call
					 * (idle_call.h). So the interrupted code may hold a
					 * lock */
#define ATTACH_IN_LIBC		4	/* a call inside libc is on the stack, other than libc's
					 * calls of main(), start routines and callbacks */
#define ATTACH_IN_LOCKING	8	/* a call of a function of the kind ATTACH_LOCKING is on the
					 * stack */
#define ATTACH_IN_UNSURE	16	/* a call in libc is on the stack whose function is of the
					 * kind ATTACH_UNSURE */
#define ATTACH_IN_ALLOCATOR	32	/* a call in attach_locks.allocator is on the stack */
#define ATTACH_UNREADABLE	64

unsigned attach_stack_scan(const struct attach_subject *s, const struct attach_libc *l,
			   uint64_t sp);
/* Returns the same flags for the return addresses that attach_unwind() has found. The thread is in
 * all of these calls. */
unsigned attach_calls_judge(const struct attach_subject *s, const struct attach_libc *l,
			    const uint64_t *calls, size_t nr);
#endif
