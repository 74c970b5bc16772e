/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Follows exec. At its start the agent took its variables out of the environment.
 * They are put back into the environment of an exec whose image can load the agent.
 */
#ifndef PB_ENGINE_PROCESS_EXEC_H
#define PB_ENGINE_PROCESS_EXEC_H
#include <stdbool.h>
#include "engine/text/text.h"

/* preload: our library's path; session: the socket's. Context: start. */
void pb_exec_start(const char *preload, const char *session, bool follow);
/* Replaces execve, execveat and fexecve, if m has them (in the open batch). */
void pb_exec_hook(struct pb_module *m);
#endif
