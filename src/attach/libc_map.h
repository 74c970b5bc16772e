/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Finds the addresses that the injector needs in the libc and the loader of a process: functions to
 * call, and short sequences of instructions that every libc contains (doc/design/injection.md).
 * Context: the injector's thread, before it stops a thread.
 */
#ifndef PB_ATTACH_LIBC_MAP_H
#define PB_ATTACH_LIBC_MAP_H
#include <stdbool.h>
#include <stdint.h>
#include "attach/libc_locks.h"
#include "attach/subject.h"

struct attach_libc {
	/* functions */
	uint64_t pthread_create, pthread_detach, dlopen, dlsym, dlerror;
	/* instructions */
	uint64_t start;		/* getppid(): mov $110, %eax; syscall; ret */
	uint64_t call;		/* its syscall instruction */
	uint64_t pop_rdi;	/* pop %rdi; ret */
	uint64_t pop_rsp;	/* pop %rsp; ret */
	uint64_t restore;	/* mov $15, %rax; syscall: rt_sigreturn */
	/* Addresses of code. borrow.c and stack_scan.c compare a thread's return addresses with
	 * them, to find out whether the thread can be borrowed. */
	struct attach_range text, loader, vdso;
	struct attach_range start_main;	/* __libc_start_main(), which calls main() */
	struct attach_locks locks;
};

/* The size of a syscall instruction. */
#define ATTACH_SYSCALL_SIZE 2

/* Finds all addresses. The caller must have read the mappings and opened mem. Returns 0, or -errno
 * with the user's line. In both cases, attach_libc_free() frees `locks`. */
int attach_libc_find(struct attach_subject *s, struct attach_libc *l);
void attach_libc_free(struct attach_libc *l);
#endif
