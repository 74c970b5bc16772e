/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Ends a recording: writes its last meta records and prints the closing lines. Context: the main
 * thread. */
#ifndef PB_RECORDER_SUMMARY_H
#define PB_RECORDER_SUMMARY_H

struct pb_drain;
struct record_outcome;
struct record_server;
struct record_threads;

/* Writes the last meta records, prints the closing lines and returns the exit status. */
int record_end(struct record_server *s, struct pb_drain *d, struct record_threads *t,
	       const struct record_outcome *out);
/* Reports that the process was never traced, and returns the exit status. If its agent has sent a
 * reason, the reason was printed before. */
int record_nothing(const struct record_server *s, const struct record_outcome *out);
#endif
