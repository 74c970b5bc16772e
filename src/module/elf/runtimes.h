/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Runtimes that do with stacks, code or calls what C doesn't: recognised by what is in the
 * file, so that a trace's reader knows what to expect of it. What is traced of them follows from
 * their code; a name decides only whether code without unwind tables is taken for assembly (analysis/depth.c).
 */
#ifndef PB_MODULE_RUNTIMES_H
#define PB_MODULE_RUNTIMES_H
#include <stdbool.h>
#include <stdint.h>
#include "module/elf/elf_file.h"

/* Bits of those that the file has, or belongs to. Hostile files are safe. Context: any thread. */
uint32_t pb_runtimes_find(struct pb_elf *e);
/* Of one bit: its name, and what is traced of it and why. NULL: there is no such runtime. */
const char *pb_runtime_name(unsigned bit);
const char *pb_runtime_policy(unsigned bit);
/* Is there one among them whose code without unwind tables doesn't use the stack as C does? */
bool pb_runtime_has_own_stacks(uint32_t bits);
#endif
