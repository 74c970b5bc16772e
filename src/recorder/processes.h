/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Which processes are traced. Context: any thread. */
#ifndef PB_RECORDER_PROCESSES_H
#define PB_RECORDER_PROCESSES_H
#include <stdbool.h>
#include <sys/types.h>

struct record_ring;
struct record_session;

/* The ring's file for one agent, to be sent, and closed if it isn't r->fd. */
int record_procs_share(struct record_ring *r);
/* Whether some process still maps the ring. */
bool record_procs_alive(const struct record_ring *r);
/* Whether a process has just executed an image whose agent hasn't
 * mapped the ring yet: a look at record_procs_alive() alone would miss it. */
bool record_procs_starting(const struct record_session *s, const struct record_ring *r);
/* The processes that map the ring, for messages. Hidden are those that seem to, but may not be
 * looked at. */
struct record_procs {
	pid_t first, first_hidden;
	unsigned nr, hidden;
};
void record_procs_scan(const struct record_ring *r, struct record_procs *p);
#endif
