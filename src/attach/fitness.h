/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Finds out, before anything is done to a process, whether it can be attached. Context: any
 * thread. */
#ifndef PB_ATTACH_FITNESS_H
#define PB_ATTACH_FITNESS_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define PB_COMM 16

/* What /proc/PID/status says of a process or thread. */
struct pb_status {
	char comm[PB_COMM];
	char state;
	pid_t tgid, tracer;
	unsigned uid;			/* the effective user id */
	unsigned seccomp;		/* 0: none; 1: strict; 2: filters */
	uint64_t pending, blocked;	/* signals */
};
/* tid: 0, or a thread of the process. Returns 0 or -errno. */
int pb_status_read(pid_t pid, pid_t tid, struct pb_status *s);

/* Returns 0, or -errno with the reason in why, as the rest of a sentence that begins with the
 * process's name. agent: path of the file that the process is to load. */
int pb_target_check(pid_t pid, const char *agent, struct pb_status *s, char *why, size_t size);
/* Explains why the kernel forbids ptrace. */
void pb_target_forbidden(pid_t pid, char *why, size_t size);
#endif
