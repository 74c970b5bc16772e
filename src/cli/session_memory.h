/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Takes a snapshot of a session's records while the program runs. Context: the main thread. */
#ifndef PB_CLI_SESSION_MEMORY_H
#define PB_CLI_SESSION_MEMORY_H
#include <stdbool.h>
#include <stdint.h>

struct pb_control;
struct pb_snapshot;

/* Which records a snapshot has. */
enum cli_snapshot {
	CLI_SNAPSHOT_ALL,	/* all records in the ring; the session must be in overwrite mode */
	CLI_SNAPSHOT_OPEN,	/* only the newest chunk of each thread, which has its open calls */
};
/* Copies the ring of a session into the new data directory `dir`. Sets all of *s, including the
 * results. Returns 0. On failure, prints an error for `command` and returns 1. */
int cli_session_snapshot(const char *command, struct pb_control *c, enum cli_snapshot which,
			 const char *dir, struct pb_snapshot *s);
#endif
