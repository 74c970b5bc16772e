/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Finds whether there is a separate debug file. The cache's key depends on this. Context: any
 * thread. */
#ifndef PB_MODULE_DEBUG_FILE_H
#define PB_MODULE_DEBUG_FILE_H
#include <stdbool.h>
#include "module/elf/elf_file.h"

/* Whether there is a debug file for e's build-id or debug link. `path`: the path of the ELF
 * file. */
bool pb_debug_file_present(struct pb_elf *e, const char *path);
#endif
