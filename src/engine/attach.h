/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* An attach brings the agent into a program that runs already (doc/design/attach.md). */
#ifndef PB_ENGINE_ATTACH_H
#define PB_ENGINE_ATTACH_H
#include <stdbool.h>
#include <stdint.h>

/* Claims the agent for one recorder. Returns false if the agent is claimed already. A preloaded
 * agent keeps the claim for good. Context: start. */
bool pb_attach_claim(void);

/* To attach, the injector (src/attach) makes the process call this function. session: path of the
 * recorder's socket. agent: path of the agent's file, for LD_PRELOAD at an exec. protocol:
 * PB_PROTOCOL of the recorder. Starts the agent's thread, and doesn't wait for it. Returns 0 or
 * -errno. -EPROTO: the agent is another version. -EBUSY: it traces already. -EAGAIN: it hasn't left
 * a former recording yet, or isn't connected to its recorder yet. -ENOTRECOVERABLE: it couldn't
 * leave a former recording. -EALREADY: it was preloaded. Other errors: no thread could be made, or
 * there was no memory.
 *
 * The function also stores its result in *answer. Then it waits until the injector stores another
 * value there. If the injector was killed, the wait ends after some seconds. Context: a thread that
 * libc made, in which all signals but libc's SIGSETXID are blocked; one at a time. */
int patchbay_attach(const char *session, const char *agent, uint32_t protocol, int *answer);

/* When the recording ends, the injector makes each process that a traced process has forked, and
 * that still has the ring, call this function. Takes the inherited agent's jumps, handlers and ring
 * out of this process. Does nothing in any other process. Has the arguments of patchbay_attach(),
 * but uses only `protocol` and `answer`. Returns 0, -EPROTO, or -EBUSY if threads may still be in
 * the agent's code. Context: as above. */
int patchbay_leave(const char *session, const char *agent, uint32_t protocol, int *answer);
#endif
