/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * For tests of the decoder. A test writes chunks into a directory, and compares the events that the
 * reader makes of them with a text. The text has a line for each event, for example
 *
 *     exit 5 4112-2415919120 d0
 *
 * This line is the exit of a call of site 5, with the call's start and end, at depth 0. An event
 * without a duration has "@" and its time. Words for the event's flags follow at the end.
 */
#ifndef PB_TEST_READER_EVENTS_H
#define PB_TEST_READER_EVENTS_H
#include <stdbool.h>
#include <stdint.h>

#include "../recordings/gen_data.h"
#include "reader/stream.h"

#define EVENTS_SIZE	(1 << 16)

extern const char *events_dir;	/* the directory; the caller makes and removes it */
extern struct gen g;		/* writes the directory */
extern char text[EVENTS_SIZE];	/* the text of the events */
extern uint64_t unwritten;	/* how many words were never written; events() sets it */

/* Makes the directory's files. begin_chunk() also begins a chunk of thread 100 at `start`. */
void begin(void);
void begin_chunk(uint64_t start);

/* Appends the event's line to text. */
void note(const struct pb_event *ev);

/* Returns all events of the directory as lines. */
const char *events(bool by_time);

/* Ends the chunk and the recording, and returns all events in the order of time. */
const char *finish(void);
#endif
