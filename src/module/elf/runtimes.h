/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Recognises, by what a file contains, language runtimes that use stacks, code or calls in other
 * ways than C. Users thus learn what to expect of a trace. The code alone determines what is
 * traced, with one exception: code without unwind tables counts as assembly (analysis/depth.c),
 * unless its runtime is known to have stacks of its own.
 */
#ifndef PB_MODULE_RUNTIMES_H
#define PB_MODULE_RUNTIMES_H
#include <stdbool.h>
#include <stdint.h>
#include "module/elf/elf_file.h"

/* The runtimes that the file contains or belongs to, as bits. The file is not trusted. Context: any
 * thread. */
uint32_t pb_runtimes_find(struct pb_elf *e);
/* The runtime of a bit: its name, and a text on which of its code is traced and why. Both functions
 * return NULL if there is no such runtime. */
const char *pb_runtime_name(unsigned bit);
const char *pb_runtime_policy(unsigned bit);
/* Does any of these runtimes have code without unwind tables that does not use the stack as C
 * does? */
bool pb_runtime_has_own_stacks(uint32_t bits);
#endif
