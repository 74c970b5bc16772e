/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The loader's list of modules: those present at start, and those that come
 * and go (seen in the loader's own thread, at its debug hook: an arrival after
 * it is mapped and before it is relocated, so that nobody runs its text yet).
 */
#ifndef PB_ENGINE_PROCESS_LOADER_H
#define PB_ENGINE_PROCESS_LOADER_H
#include "engine/process/session.h"

/* Context: start. Adds all modules; -errno if the session broke. */
int pb_loader_start(struct pb_session *s, const char *exe, uint64_t self_dynamic);
/* Replaces the loader's debug hook (in the open batch). */
void pb_loader_hook(const char *session_path);
/* It is the loader's own again. Context: with the text's lock. */
void pb_loader_unhooked(void);
/* The engine's own replacements in libc, in a module that came or at start. */
void pb_hook_module(struct pb_module *m);
#endif
