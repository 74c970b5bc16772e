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
/* Whether this is the name or the path of a library that must come first. It ends at NUL, ':' or
 * ' '. */
bool pb_is_first_library(const char *name);
/* list: a value of LD_PRELOAD, or NULL. If its first library must come first, returns the length of
 * this library's name. Else returns 0. */
size_t pb_first_in_list(const char *list);
#endif
