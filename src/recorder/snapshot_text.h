/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Describes a snapshot, for the line that reports it: its contents, and the call that asked for it.
 * Context: any thread. */
#ifndef PB_RECORDER_SNAPSHOT_TEXT_H
#define PB_RECORDER_SNAPSHOT_TEXT_H
#include <stddef.h>
#include <stdint.h>

struct pb_snapshot;
/* Writes "1,234 calls, 9.9 kB" to buf, and returns buf. `dir` is the snapshot's directory, which is
 * read for the number of calls. */
const char *record_snapshot_text(const struct pb_snapshot *s, const char *dir, char *buf,
				 size_t len);
/* Writes a text about the call that asked for a snapshot to buf: "parse took 25.120 ms". `by` is
 * PB_SNAPSHOT_BY(), and `dir` the directory of the recording, which has the function's name. */
void record_snapshot_call(const char *dir, uint64_t by, char *buf, size_t len);
#endif
