/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Follows the dynamic loader's list of modules: those present at start, and those that come and go.
 * The loader calls _dl_debug_state(), a function for debuggers, before and after each change of the
 * list. The agent replaces this function by one of its own, the loader's hook. The hook runs in the
 * thread that loads or unloads the module. When it sees a new module, the module is mapped but not
 * relocated, so no thread runs its text yet.
 */
#ifndef PB_ENGINE_PROCESS_LOADER_H
#define PB_ENGINE_PROCESS_LOADER_H
#include "engine/process/session.h"

/* Adds all modules. exe: the path of the executable; self_dynamic: the address of the agent's own
 * dynamic section. Returns 0, or -errno if the session broke. Context: start. */
int pb_loader_start(struct pb_session *s, const char *exe, uint64_t self_dynamic);
/* Adds all modules of a program that runs already, and installs the loader's hook. Context: the
 * agent's thread, with the lock of the text. The function may release the lock for a while. */
int pb_loader_attach(struct pb_session *s, const char *exe, uint64_t self_dynamic,
		     const char *session_path);
/* Must be called after functions have been replaced in all modules that pb_loader_attach() added,
 * or after an error. During an attach, the loader's hook adds and removes no modules until then. */
void pb_loader_attached(void);
/* Installs the loader's hook, as a part of the open batch (text.h). */
void pb_loader_hook(const char *session_path);
/* Called when the loader's hook has been removed: the loader calls its own function again. Context:
 * with the lock of the text. */
void pb_loader_unhooked(void);
/* Replaces functions of m by functions of the engine. Called at the start, or when m was loaded. */
void pb_hook_module(struct pb_module *m);
#endif
