/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Finds the libraries that a running process has loaded. Context: any thread. */
#ifndef PB_RECORDER_LOADED_H
#define PB_RECORDER_LOADED_H
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* Calls visit() with the path of each library that the process has loaded, until visit() returns
 * false. The paths come from the loader's own list, because the agent asks for analyses by these
 * paths. If the list can't be read, the paths of all files with executable mappings are used
 * instead. A path may occur more than once. The executable's path may be among them. */
void record_loaded_each(pid_t pid, bool (*visit)(void *arg, const char *path), void *arg);
/* A library whose file has been deleted or replaced since the process has loaded it. */
struct record_deleted {
	char *path;			/* as in the loader's list */
	uint64_t bias;			/* load address minus link-time address */
	uint64_t start, end;		/* the mapping of the file's first page */
};
/* Lists these libraries. *list gets an array, which the caller frees by record_loaded_free().
 * Returns the number of its elements. */
unsigned record_loaded_deleted(pid_t pid, struct record_deleted **list);
void record_loaded_free(struct record_deleted *list, unsigned nr);
/* The mapping of a file's first page. */
struct record_first {
	uint64_t start;
	dev_t dev;
	ino_t ino;
};
/* Lists these mappings. *list gets an array, which the caller frees. Returns the number of its
 * elements. */
unsigned record_loaded_firsts(pid_t pid, struct record_first **list);
/* Returns false if the process has loaded another file with this bias than the open file fd,
 * according to the list. Compares devices and inodes. For some file systems, the list of mappings
 * shows other numbers. So if they differ, compares the contents with the process's memory. */
bool record_loaded_is(pid_t pid, const struct record_first *list, unsigned nr, uint64_t bias,
		      int fd);
/* Finds the first library in the loader's list for whose path the callback is() returns true. *bias
 * gets its load address minus its link-time address. Returns false if there is none, or if the list
 * can't be read. */
bool record_loaded_bias(pid_t pid, bool (*is)(const char *path), uint64_t *bias);
/* If this line of /proc/PID/maps is an executable mapping of a file, returns the file's path, which
 * is a part of the line; else NULL. Changes the line. */
char *record_loaded_file(char *line);
#endif
