/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Libraries that must come first in a process. AddressSanitizer's runtimes check that, and end the
 * program if another library comes before them. So they are preloaded before the agent. The
 * agent's constructor nevertheless runs first (-z initfirst).
 *
 * Context: any but the hit path; also a vfork child.
 */
#ifndef PB_FIRST_LIBRARY_H
#define PB_FIRST_LIBRARY_H
#include <stdbool.h>
#include <stddef.h>

#define PB_FIRST_MAX	64

/* Stores the name by which the ELF file needs such a library. False: it needs none. */
bool pb_first_library(int fd, char name[PB_FIRST_MAX]);
/* Is this the name of such a library? The name ends at NUL, ':' or ' '. */
bool pb_is_first_library(const char *name);
#endif
