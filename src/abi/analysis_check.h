/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Checks whether a mapped analysis (abi/analysis.h) is safe to use.
 *
 * The agent maps a file that another process wrote. After this check every accessor of
 * abi/analysis_access.h stays inside the map. Strings are terminated and tables are sorted. Windows
 * and slots lie in the text, and don't overlap. Each slot is in reach of its window's short jump.
 * Each recipe lies inside the file's table of recipes, and its fixups lie inside its code. The
 * check can't tell whether the file describes the module in memory. To find out, the caller must
 * compare the file's build-id with the module's build-id. Before the caller patches a window, it
 * must also compare the window's bytes in the file (orig[] in struct pb_recipe) with the bytes in
 * memory.
 *
 * Context: any (no libc, no allocation, no locks, no SSE). The time that the check takes grows
 * almost linearly with the size of the tables. The map must not change after the check, so pass a
 * private copy, a sealed memfd, or a file that only Patchbay writes.
 *
 * Returns 0 or -EINVAL. `map` must be aligned to 8.
 */
#ifndef PB_ABI_ANALYSIS_CHECK_H
#define PB_ABI_ANALYSIS_CHECK_H
#include <stddef.h>

int pb_analysis_check(const void *map, size_t size);
#endif
