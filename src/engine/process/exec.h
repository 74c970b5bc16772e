/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Following exec. The agent took its variables out of the environment; they
 * are put back into the environment of an exec whose image can load it.
 */
#ifndef PB_ENGINE_PROCESS_EXEC_H
#define PB_ENGINE_PROCESS_EXEC_H
#include <stdbool.h>
#include "engine/text/text.h"

/* preload: our library's path; session: the socket's. Context: start. */
void pb_exec_start(const char *preload, const char *session, bool follow);
/* Replaces execve and kin, if m has them (in the open batch). */
void pb_exec_hook(struct pb_module *m);
#endif
