/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Replaces functions of the program by functions of the agent, for all callers. A replaced function
 * is traced like any other function: the end of the replacement ends the call, unless the
 * replacement jumps to the original.
 * Context: the agent's start, or the loader's hook. A batch of changes to the text must be open.
 */
#ifndef PB_ENGINE_PROCESS_REPLACE_H
#define PB_ENGINE_PROCESS_REPLACE_H
#include "engine/text/text.h"

/* Once the batch is committed, `replacement` runs instead of the function. It is a C function of at
 * most six arguments. original: points to the function pointer by which the original is called; the
 * pointer is set at once. False: the function isn't found or is refused, and the pointer is
 * unchanged. The site is patched even if its module is not traced. */
bool pb_replace(struct pb_module *m, const char *name, void *replacement, void *original);
/* Like pb_replace(), but finds the function by its address. Returns the address for calls of the
 * original, or 0. */
uint64_t pb_replace_at(struct pb_module *m, uint64_t address, void *replacement);
/* Like pb_replace(), but for a replacement that ends by a jump to the original. At this jump, rsp
 * and the registers are as at the entry. The call ends at the original's exits. */
bool pb_replace_passing(struct pb_module *m, const char *name, void *replacement, void *original);
#endif
