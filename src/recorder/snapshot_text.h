/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Describes the contents of a snapshot, for the line that reports it. Context: any thread. */
#ifndef PB_RECORDER_SNAPSHOT_TEXT_H
#define PB_RECORDER_SNAPSHOT_TEXT_H
#include <stddef.h>

struct pb_snapshot;
/* Writes "1,234 calls, 9.9 kB" to buf, and returns buf. `dir` is the snapshot's directory, which is
 * read for the number of calls. */
const char *record_snapshot_text(const struct pb_snapshot *s, const char *dir, char *buf,
				 size_t len);
#endif
