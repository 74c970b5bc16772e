/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Finds the recorder of a process. */
#ifndef PB_CLI_SESSION_H
#define PB_CLI_SESSION_H
#include <stdint.h>

struct pb_control;
/* Connects to the session that traces the process or, if pid is 0, to the only session. Returns 0,
 * or 1 after an error line of the command. */
int cli_session_find(const char *command, uint32_t pid, struct pb_control **c);
#endif
