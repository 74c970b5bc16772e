/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Called when the observer has closed the connection, or asks for a detach. The program
 * goes on as if it had never been traced. See doc/design/text.md. Context: the agent's thread. */
#ifndef PB_ENGINE_DETACH_H
#define PB_ENGINE_DETACH_H
#include <stdbool.h>

struct pb_session;

/* Restores the text. Returns when every byte of it is as in the file, however long this takes.
 * s: the session whose recorder has asked for the detach, and still takes records until tracing has
 * stopped; its connection is closed at the end. NULL: the recorder is gone. Unmaps the ring, if no
 * thread can be in our code any more. Returns false if a thread may be. */
bool pb_detach(struct pb_session *s);

/* The same in a forked child, whose agent has no thread. False: some text couldn't be restored.
 * Context: right after the fork, in the replacement of fork, with signals blocked; no code of the
 * agent is interrupted. */
bool pb_detach_child(void);
/* The same in a forked child that runs, and may have threads. Does all that pb_detach_child() has
 * left to do. Returns as pb_detach() does. Context: a thread that the injection has made. */
bool pb_detach_inherited(void);
#endif
