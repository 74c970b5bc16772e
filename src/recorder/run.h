/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The program is started and served until all is over. Context: the main thread. */
#ifndef PB_RECORDER_RUN_H
#define PB_RECORDER_RUN_H

struct record_modules;
struct record_options;
struct record_ring;
struct record_session;
struct record_target;

/* Starts the program, serves until all is over; returns the exit status. */
int record_run(struct record_options *o, const struct record_target *t,
	       struct record_session *s, struct record_ring *ring, struct record_modules *m);
#endif
