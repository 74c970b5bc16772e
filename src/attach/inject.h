/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Brings the agent into a running process. See doc/design/attach.md. Context: a thread of the
 * observer, which mustn't wait for other children meanwhile.
 */
#ifndef PB_ATTACH_INJECT_H
#define PB_ATTACH_INJECT_H
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct pb_inject {
	pid_t pid;
	const char *agent;	/* path of the agent's file */
	const char *session;	/* path of the recorder's socket, for the agent */
};

struct pb_injected {
	pid_t borrowed;		/* the thread that was borrowed */
	uint64_t stop_ns;	/* how long this thread was stopped */
	uint64_t total_ns;
};

/* Makes the process load the agent, and calls the agent's patchbay_attach(). Returns 0. On failure,
 * returns -errno with one line for the user in err, and the process is as before: -ESRCH, there is
 * no such process; -EPERM, the kernel forbids it; -EBUSY, the process is traced already; -ENOTSUP,
 * a process of this kind can't be attached; -EAGAIN, it may work later; -EPROTO, another version of
 * the agent is there; other errors are the target's own. */
int pb_inject(const struct pb_inject *in, struct pb_injected *out, char *err, size_t size);
#endif
