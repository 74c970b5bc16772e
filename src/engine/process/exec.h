/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Follows exec. When the agent starts, it removes its own variables from the program's environment.
 * If the image of an exec can load the agent, these variables are put back into the environment of
 * this exec.
 */
#ifndef PB_ENGINE_PROCESS_EXEC_H
#define PB_ENGINE_PROCESS_EXEC_H
#include <stdbool.h>
#include "engine/text/text.h"

/* preload: the path of our library; session: the path of the socket; follow: whether images of an
 * exec are traced. Context: start. */
void pb_exec_start(const char *preload, const char *session, bool follow);
/* In the open batch, replaces execve, execveat and fexecve if m has them. */
void pb_exec_hook(struct pb_module *m);
#endif
