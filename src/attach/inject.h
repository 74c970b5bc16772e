/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Brings the agent into a running process that was started without it. doc/design/injection.md
 * describes each step, and what the process sees of it.
 *
 * Context: any ordinary thread that traces no thread of the process. While pb_inject() runs, the
 * calling thread traces two threads of the process. So no thread of the caller's own process may
 * wait for "any child" meanwhile, unless it uses __WNOTHREAD.
 */
#ifndef PB_ATTACH_INJECT_H
#define PB_ATTACH_INJECT_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct pb_inject {
	pid_t pid;
	const char *agent;	/* path of libpatchbay.so.0 */
	const char *session;	/* path of the recorder's socket */
	bool leave;		/* a traced process has forked this process, and the inherited agent
				 * must detach from it */
	bool children;		/* children are traced, too. They need the paths of the agent and of
				 * the socket, so an attach that would have to pass descriptors in
				 * place of these paths is refused */
	/* When the injector gives up, although its own limits allow it to wait longer. Another
	 * thread may change *limit meanwhile. 0 and NULL: never. After a time-out, one of the
	 * process's threads may be traced until the calling thread ends. */
	uint64_t until;
	const _Atomic uint64_t *limit;
};

/* Values of *answer (see pb_inject()), besides the agent's answer, which is 0 or negative. NONE:
 * the agent hasn't answered yet. SEEN: the injector has read the answer. */
enum { PB_ANSWER_NONE = 1, PB_ANSWER_SEEN };

struct pb_injected {
	uint64_t stop_ns;	/* how long the borrowed thread was stopped */
	uint64_t total_ns;
	pid_t borrowed;		/* the thread that called pthread_create() */
	bool called;		/* the agent's function was called. After a time-out it runs on */
};

/* Makes the process load the agent in a new thread, and then call one of these functions there: the
 * second function if in->leave is set, else the first:
 *
 *	int patchbay_attach(const char *session, const char *agent, uint32_t protocol, int *answer)
 *	int patchbay_leave(const char *session, const char *agent, uint32_t protocol, int *answer)
 *
 * The new thread blocks all signals but libc's SIGSETXID. protocol is PB_PROTOCOL. The function
 * stores its result, 0 or -errno, in *answer. It waits until the injector stores PB_ANSWER_SEEN
 * there, and then returns its result. If the injector was killed, it returns after some seconds.
 *
 * pb_inject() returns 0 if the function has answered 0. Otherwise it returns -errno and writes one
 * line for the user to err: what is wrong with the process, and what to do. The process runs on as
 * before. */
int pb_inject(const struct pb_inject *in, struct pb_injected *out, char *err, size_t size);
#endif
