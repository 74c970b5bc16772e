/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What /proc says of a process that runs already, and that is to be recorded. Context: any
 * thread. */
#ifndef PB_RECORDER_RUNNING_H
#define PB_RECORDER_RUNNING_H
#include <stdio.h>
#include <sys/types.h>

struct record_target;

/* Fills t for a process that runs already. Returns the arguments of its command line, NULL at the
 * end; or NULL, after an error line: there is no such process, or it may not be looked at. The
 * caller frees the array and its first element. */
char **record_running_target(struct record_target *t, pid_t pid);
/* Opens the list of the process's mappings. Returns NULL if it may not be read. */
FILE *record_running_maps(pid_t pid);
/* Returns the path in a line of that list, which is changed, if the line is the executable mapping
 * of a file; else NULL. */
char *record_running_file(char *line);
#endif
