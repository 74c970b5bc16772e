/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Functions that the agent stands in for, wherever they are called. Each is traced
 * as any other: what stands in for it ends as the function's own exits do.
 * Context: start, the loader's hook; in the open batch.
 */
#ifndef PB_ENGINE_PROCESS_REPLACE_H
#define PB_ENGINE_PROCESS_REPLACE_H
#include "engine/text/text.h"

/* `replacement` runs instead, a C function of at most six arguments, when the batch is in
 * force; the original is called through the pointer that `original` points to, which is set
 * before. False: not found or refused, and the pointer is as it was. The site is patched
 * even if its module is not traced. */
bool pb_replace(struct pb_module *m, const char *name, void *replacement, void *original);
/* The same by the function's address; returns where the original is called, 0. */
uint64_t pb_replace_at(struct pb_module *m, uint64_t address, void *replacement);
/* The same where the replacement ends by a jump to the original, rsp and registers as at the
 * entry: the call ends at the original's exits. */
bool pb_replace_passing(struct pb_module *m, const char *name, void *replacement, void *original);
#endif
