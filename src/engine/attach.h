/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* An attach brings the agent into a program that has long been running (doc/design/attach.md). */
#ifndef PB_ENGINE_ATTACH_H
#define PB_ENGINE_ATTACH_H
#include <stdbool.h>
#include <stdint.h>

/* The agent traces for one recorder at a time. Returns false if it does so already. A preloaded
 * agent keeps the claim. Context: start. */
bool pb_attach_claim(void);

/* The one function of the agent that the injection calls (src/attach). session: path of the
 * recorder's socket. agent: path of the agent's file, for LD_PRELOAD at an exec. protocol:
 * PB_PROTOCOL of the recorder. Starts the agent's thread, and doesn't wait for it. Returns 0 or
 * -errno. -EPROTO: the agent is another version. -EBUSY: it traces already, or threads may still be
 * in its code after a detach. -EALREADY: it was preloaded. Others: no thread or memory. Context: a
 * thread that libc made, with all signals blocked; one at a time. */
int patchbay_attach(const char *session, const char *agent, uint32_t protocol);

/* Called in a process that was forked by one that is traced, when the recording ends: detaches what
 * the process has inherited. Does nothing in any other process. The arguments that it has in common
 * with patchbay_attach() aren't used. Returns 0, -EPROTO, or -EBUSY if threads may still be in the
 * agent's code. Context: as above. */
int patchbay_leave(const char *session, const char *agent, uint32_t protocol);
#endif
