/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Recognises runtimes by the symbols and sections of a file, so that users know what to expect of a
 * trace. Most runtimes are those of languages (V8, Go, ...). Some are libraries, for example
 * greenlet and AddressSanitizer. Runtimes use stacks, code or calls in other ways than C. A runtime
 * changes the analysis in four cases. If its stacks have little room, the analysis gets the flag
 * PB_AN_SMALL_STACKS. Code without unwind tables usually counts as assembly (analysis/depth.c),
 * but not if the runtime has its own kind of stacks. Functions that the runtime copies are refused.
 * If the runtime preempts functions, their jumps must not replace several instructions
 * (analysis/sites.c).
 */
#ifndef PB_MODULE_RUNTIMES_H
#define PB_MODULE_RUNTIMES_H
#include <stdbool.h>
#include <stdint.h>
#include "module/elf/elf_file.h"

/* Returns the runtimes that the file contains or belongs to, as bits. The file is not trusted.
 * Context: any thread. */
uint32_t pb_runtimes_find(struct pb_elf *e);
/* Returns the runtimes whose files have a section of this name, as bits. */
uint32_t pb_runtimes_of_section(const char *name);
/* pb_runtime_name() returns the name of a bit's runtime. pb_runtime_policy() returns a text that
 * says which code of this runtime is traced and why. Both return NULL if there is no such
 * runtime. */
const char *pb_runtime_name(unsigned bit);
const char *pb_runtime_policy(unsigned bit);
/* True if at least one of these runtimes has code that has no unwind tables and doesn't use the
 * stack as C does. */
bool pb_runtime_has_own_stacks(uint32_t bits);
/* True if one of these runtimes copies the function of this name to another address, and runs the
 * copy. The name has len bytes, and needs no NUL after them. */
bool pb_runtime_copies(uint32_t bits, const char *name, size_t len);
/* True if one of these runtimes may stop the function of this name at any instruction, keep the
 * instruction's address in memory, and continue there at any later time. */
bool pb_runtime_preempts(uint32_t bits, const char *name, size_t len);
/* True if the functions of at least one of these runtimes run on stacks with little room. */
bool pb_runtime_has_small_stacks(uint32_t bits);
#endif
