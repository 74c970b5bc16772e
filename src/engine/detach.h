/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Detaches the agent after the observer has closed the connection or asked for a detach. The
 * program goes on as if it had never been traced. See doc/design/text.md. Context: the agent's
 * thread. */
#ifndef PB_ENGINE_DETACH_H
#define PB_ENGINE_DETACH_H
#include <stdbool.h>

struct pb_session;

/* Restores the text. If the threads can't be stopped, tries again until it succeeds, however long
 * this takes. After other errors, gives up after about 40 seconds; some text then stays patched. s:
 * the session whose recorder has asked for the detach. This recorder takes records until tracing
 * has stopped, and is notified if the detach gives up; at the end the connection is closed. NULL:
 * the recorder is gone. If the text is restored and no thread is in our code any more, unmaps the
 * ring, and returns true. Otherwise the ring stays mapped, and the result is false. */
bool pb_detach(struct pb_session *s);

/* Like pb_detach(), but in a forked child, whose agent has no thread. False: some text couldn't be
 * restored. Context: right after the fork, in the replacement of fork, with signals blocked; no
 * code of the agent is interrupted. */
bool pb_detach_child(void);
/* Like pb_detach(NULL), but in a forked child that has run on and may have threads by now. In this
 * child, pb_detach_child() has restored only a part of the text, or wasn't called, because the
 * child was forked without libc. Returns what pb_detach() returns. Context: a thread that the
 * injection has made. */
bool pb_detach_inherited(void);
#endif
