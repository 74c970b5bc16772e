/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The auxiliary vector that the kernel passes to a process. */
#ifndef PB_BASE_AUXV_H
#define PB_BASE_AUXV_H
#include <stdint.h>

/* Returns the value of a type AT_* (<sys/auxv.h>) in this process's auxiliary vector. If the vector
 * doesn't have the type or can't be read, returns `if_unknown`. Reads the vector from /proc,
 * without libc. Context: not on a hit. */
uint64_t pb_auxv(uint64_t type, uint64_t if_unknown);
#endif
