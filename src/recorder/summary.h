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
	const char *left;		/* for a process that was attached or that outlives its
					 * recording: what it does now, for example "runs on"; else
					 * NULL */
	char name[16];			/* that process's name */
};
/* Writes the last meta records, prints the closing lines and returns the exit status. */
int record_end(struct record_server *s, struct pb_drain *d, struct record_threads *t,
	       const struct record_outcome *out);
/* Reports that the process was never traced, and returns the exit status. If its agent has sent a
 * reason, the reason was printed before. */
int record_nothing(const struct record_server *s, const struct record_outcome *out);
#endif
