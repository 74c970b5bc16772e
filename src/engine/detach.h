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
#endif
