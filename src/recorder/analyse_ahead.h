/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Analyses modules in separate threads before an agent asks for the analyses. Context: the main
 * thread. */
#ifndef PB_RECORDER_ANALYSE_AHEAD_H
#define PB_RECORDER_ANALYSE_AHEAD_H

#define RECORD_MAX_LIBRARIES 512

struct record_options;
struct record_target;
struct stat;

struct record_ahead;
/* Starts threads that analyse the program and its libraries. Returns NULL on failure. */
struct record_ahead *record_ahead_start(const struct record_options *o,
					const struct record_target *t);
/* Returns the path of the program (i = 0) or of a library that it is linked with. For a process
 * that runs already, the libraries are those that it has loaded. Returns NULL if i is greater than
 * the number of libraries. May wait for the list of libraries. If the list takes too long, only the
 * libraries that are already listed count. */
const char *record_ahead_path(struct record_ahead *a, unsigned i);
/* Returns a descriptor of the file's analysis, which the caller then owns. Returns -1 if no
 * analysis was made, if it was taken before, or if the analysed file isn't the file with the status
 * st. May wait for a thread that analyses the file. If a descriptor is returned, *stubs_fd gets a
 * descriptor of the file of stubs, or -1. */
int record_ahead_take(struct record_ahead *a, const struct stat *st, const char *path,
		      int *stubs_fd);
/* Waits until the program is analysed. If the cache didn't have the program's analysis, waits until
 * all files are analysed, so that agents rarely wait. Ends early if the list of libraries takes too
 * long. */
void record_ahead_wait(struct record_ahead *a);
void record_ahead_stop(struct record_ahead *a);
/* Returns the flags with which modules are analysed: PB_MODULE_*. */
unsigned record_module_flags(const struct record_options *o);
#endif
