/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Records a program that it starts, or a process that it attaches to. Context: the main thread. */
#ifndef PB_RECORDER_RUN_H
#define PB_RECORDER_RUN_H

struct record_modules;
struct record_options;
struct record_ring;
struct record_session;
struct record_signals;
struct record_target;

/* Starts the program, or attaches to the process o->pid. Serves agents until no process is traced,
 * or until the recording is ended earlier. Writes the data. Returns the exit status. */
int record_run(struct record_options *o, const struct record_target *t,
	       struct record_session *s, struct record_ring *ring, struct record_modules *m,
	       const struct record_signals *signals);
#endif
