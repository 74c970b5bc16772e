/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Writes the text that describes a recording: the program, the machine, the options. Context: the
 * main thread. */
#ifndef PB_RECORDER_SESSION_META_H
#define PB_RECORDER_SESSION_META_H

struct pb_datadir;
struct record_options;
struct record_target;

/* Returns 0 or -errno. */
int record_session_meta(const struct record_options *o, const struct record_target *t,
			struct pb_datadir *d);
#endif
