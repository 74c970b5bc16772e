/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The C library of another process: where it is mapped, its functions, and two short pieces of its
 * code by which called functions return. Context: any thread. */
#ifndef PB_ATTACH_LIBC_H
#define PB_ATTACH_LIBC_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct pb_range {
	uint64_t from, to;
};

struct pb_libc {
	struct pb_range text, loader;	/* executable mappings of libc and of the dynamic loader */
	uint64_t pthread_create, pthread_detach, dlopen, dlsym, dlerror;
	uint64_t getpid;	/* a function that makes one system call and returns */
	uint64_t call;		/* its instructions "syscall; ret" */
	uint64_t restore;	/* the function that returns from signal handlers: its first
				 * instruction, of 7 bytes, loads the number of rt_sigreturn, the
				 * second makes the call */
};

/* Returns 0, or -errno with the reason in *why: -ENOTSUP, the process has no such libc. */
int pb_libc_find(struct pb_libc *l, pid_t pid, int mem, const char **why);
static inline bool pb_range_holds(const struct pb_range *r, uint64_t at)
{
	return at - r->from < r->to - r->from;
}
#endif
