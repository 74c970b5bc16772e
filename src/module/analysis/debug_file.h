/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Finds whether there is a separate debug file: the cache's key depends on it. Context: any
 * thread. */
#ifndef PB_MODULE_DEBUG_FILE_H
#define PB_MODULE_DEBUG_FILE_H
#include <stdbool.h>
#include "module/elf/elf_file.h"

/* Looks for the debug file of the build-id or the debug link; `path` is the ELF file's. */
bool pb_debug_file_present(struct pb_elf *e, const char *path);
#endif
