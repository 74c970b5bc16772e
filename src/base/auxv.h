/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef PB_BASE_AUXV_H
#define PB_BASE_AUXV_H
#include <stdint.h>

/* Returns the value of a type AT_* (<sys/auxv.h>) in the process's auxiliary vector. Reads the
 * vector from /proc, without libc. Context: not on a hit. */
uint64_t pb_auxv(uint64_t type, uint64_t if_unknown);
#endif
