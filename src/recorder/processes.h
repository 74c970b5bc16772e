/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Finds out which processes are traced. Context: any thread. */
#ifndef PB_RECORDER_PROCESSES_H
#define PB_RECORDER_PROCESSES_H
#include <stdbool.h>
#include <sys/types.h>

struct record_ring;
struct record_session;

/* Returns a descriptor of the ring, to be sent to one agent. The caller closes it unless it is
 * r->fd. */
int record_procs_share(struct record_ring *r);
/* True if any process still maps the ring. */
bool record_procs_alive(const struct record_ring *r);
/* True if a process has called exec and its new agent hasn't mapped the ring yet.
 * record_procs_alive() alone would miss this process. */
bool record_procs_starting(const struct record_session *s, const struct record_ring *r);
/* The processes that map the ring, for messages. A hidden process has a thread in the ring's table,
 * but the recorder can't find out whether it maps the ring. */
struct record_procs {
	pid_t first, first_hidden;	/* 0: none */
	unsigned nr, hidden;		/* `nr` doesn't count hidden processes */
};
/* Calls visit() for each process that maps the ring and that the recorder may look at. */
void record_procs_each(const struct record_ring *r, void (*visit)(void *arg, pid_t pid), void *arg);
/* Fills *p. */
void record_procs_scan(const struct record_ring *r, struct record_procs *p);
#endif
