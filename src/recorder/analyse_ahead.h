/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Analyses that are made in threads before an agent asks for them. Context: the main thread. */
#ifndef PB_RECORDER_ANALYSE_AHEAD_H
#define PB_RECORDER_ANALYSE_AHEAD_H

#define RECORD_MAX_LIBRARIES 512

struct record_options;
struct record_target;
struct stat;

struct record_ahead;
/* Begins to analyse the program and its libraries, in threads; NULL: it can't. */
struct record_ahead *record_ahead_start(const struct record_options *o,
					const struct record_target *t);
/* The program (0) and the libraries that it is linked with; NULL: no more. May
 * wait for the list. */
const char *record_ahead_path(struct record_ahead *a, unsigned i);
/* A descriptor of the file's analysis if one was made (may wait for it), or -1; *stubs_fd is set
 * where the file of its stubs was made, too. */
int record_ahead_take(struct record_ahead *a, const struct stat *st, const char *path,
		      int *stubs_fd);
/* On the program's first start until all is analysed: then its agent never waits. */
void record_ahead_wait(struct record_ahead *a);
void record_ahead_stop(struct record_ahead *a);
/* How the modules are analysed: PB_MODULE_*. */
unsigned record_module_flags(const struct record_options *o);
#endif
