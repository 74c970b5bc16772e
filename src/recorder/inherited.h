/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Detaches children that a traced process has forked. They have inherited its agent, but not its
 * connection to the recorder. Context: the main thread, when all agents have detached. */
#ifndef PB_RECORDER_INHERITED_H
#define PB_RECORDER_INHERITED_H
#include <sys/types.h>

struct record_options;
struct record_server;

/* Makes the agent leave each process that still maps the ring, except the process `pid`. Closes the
 * ring (pb_drain_close_ring()). The recorder must not be needed for answers any more. */
void record_inherited_leave(const struct record_options *o, const struct record_server *server,
			    pid_t pid);
#endif
