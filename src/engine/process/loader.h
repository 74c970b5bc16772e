/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Follows the loader's list of modules: those present at start, and those that come and go. The
 * loader's debug hook reports changes, in the thread that loads. When the hook reports a new
 * module, it is mapped but not relocated, so no thread runs its text yet.
 */
#ifndef PB_ENGINE_PROCESS_LOADER_H
#define PB_ENGINE_PROCESS_LOADER_H
#include "engine/process/session.h"

/* Context: start. Adds all modules; -errno if the session broke. */
int pb_loader_start(struct pb_session *s, const char *exe, uint64_t self_dynamic);
/* Replaces the loader's debug hook (in the open batch). */
void pb_loader_hook(const char *session_path);
/* The debug hook is the loader's own again. Context: with the text's lock. */
void pb_loader_unhooked(void);
/* Replaces functions of m by the engine's: at start, or when m has come. */
void pb_hook_module(struct pb_module *m);
#endif
