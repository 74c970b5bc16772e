/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Detaches children that a traced process has forked. They have inherited its agent, but not its
 * connection to the recorder. Context: the main thread, when all agents have detached. */
#ifndef PB_RECORDER_INHERITED_H
#define PB_RECORDER_INHERITED_H
#include <stdbool.h>
#include <sys/types.h>

struct record_options;
struct record_server;
struct record_signals;

/* Makes the agent leave each process that still maps the ring, except the process `pid`. Closes the
 * ring (pb_drain_close_ring()). The recorder must not be needed for answers any more.
 *
 * Takes at most 20 s, for all processes together; if `hurry` is set, half a second. Reads the
 * signals meanwhile, and a signal that ends recordings ends the wait. (SIGCHLD is
 * read, too, so the caller must look for dead children after this.) If processes keep the agent,
 * prints a line with their number and some of their names. */
void record_inherited_leave(const struct record_options *o, const struct record_server *server,
			    pid_t pid, const struct record_signals *signals, bool hurry);
#endif
