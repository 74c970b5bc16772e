/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Ends a recording: writes its last meta records and prints the closing lines. Context: the main
 * thread. */
#ifndef PB_RECORDER_SUMMARY_H
#define PB_RECORDER_SUMMARY_H
#include <stdbool.h>
#include <sys/types.h>

struct pb_drain;
struct record_server;
struct record_threads;

struct record_outcome {
	int status;			/* status of the main process, as waitpid() gives it */
	bool exited;
	pid_t pid;
	bool gone;			/* a process that was attached has ended */
};
/* Writes the last meta records, prints the closing lines and returns the exit status. */
int record_end(struct record_server *s, struct pb_drain *d, struct record_threads *t,
	       const struct record_outcome *out);
#endif
