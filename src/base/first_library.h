/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Libraries that must come first in a process. AddressSanitizer's runtimes end the program if
 * another library comes before them. So Patchbay preloads such a runtime before the agent.
 * The agent's constructor still runs first (-z initfirst).
 *
 * Context: any but the hit path; also a vfork child.
 */
#ifndef PB_FIRST_LIBRARY_H
#define PB_FIRST_LIBRARY_H
#include <stdbool.h>
#include <stddef.h>

#define PB_FIRST_MAX	64

/* If the ELF file needs a library that must come first, stores the library's name and returns true.
 * Else returns false. */
bool pb_first_library(int fd, char name[PB_FIRST_MAX]);
/* Whether this name or path, of `len` bytes, is that of a library that must come first. */
bool pb_is_first_library(const char *name, size_t len);
/* Finds the next name in a value of LD_PRELOAD, between *at and `end`. Sets *at to the name, and
 * returns the name's length. Returns 0 if there are no more names. As in the loader, blanks and
 * colons separate names, and empty names don't count. */
size_t pb_next_in_list(const char **at, const char *end);
/* list: a value of LD_PRELOAD, of `len` bytes. If its first library must come first, sets *first to
 * this library's name, and returns the name's length. Else returns 0. */
size_t pb_first_in_list(const char *list, size_t len, const char **first);
#endif
