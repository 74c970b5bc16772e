/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The libraries that a running process has loaded. Context: any thread. */
#ifndef PB_RECORDER_LOADED_H
#define PB_RECORDER_LOADED_H
#include <stdbool.h>
#include <sys/types.h>

/* Calls visit() with the path of each library that the process has loaded, until visit() returns
 * false. The paths are those of the loader's own list, with which the agent asks for analyses. If
 * that list can't be read, they are the files whose mappings are executable. Paths may occur more
 * than once, and the executable's may be among them. */
void record_loaded_each(pid_t pid, bool (*visit)(void *arg, const char *path), void *arg);
/* Returns the path in a line of /proc/PID/maps, which is changed, if the line is an executable
 * mapping of a file; else NULL. */
char *record_loaded_file(char *line);
#endif
