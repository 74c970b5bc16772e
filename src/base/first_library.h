/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A library that must come before all others in a process. The runtimes of AddressSanitizer look,
 * and end the program if another one does: so they are preloaded before the agent, which runs
 * first all the same (-z initfirst).
 *
 * Context: any but the hit path; a vfork child, too.
 */
#ifndef PB_FIRST_LIBRARY_H
#define PB_FIRST_LIBRARY_H
#include <stdbool.h>
#include <stddef.h>

#define PB_FIRST_MAX	64

/* The name by which the ELF file needs such a library; false: it needs none. */
bool pb_first_library(int fd, char name[PB_FIRST_MAX]);
/* Is it the name of one? It ends at any of NUL, ':' and ' '. */
bool pb_is_first_library(const char *name);
#endif
