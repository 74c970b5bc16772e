/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Runs the program under the recorder. Context: the main thread. */
#ifndef PB_RECORDER_RUN_H
#define PB_RECORDER_RUN_H

struct record_modules;
struct record_options;
struct record_ring;
struct record_session;
struct record_target;

/* Starts the program and serves agents until no process is traced. Returns the exit status. */
int record_run(struct record_options *o, const struct record_target *t,
	       struct record_session *s, struct record_ring *ring, struct record_modules *m);
#endif
