/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Finds the recorder of a process. Context: the main thread. */
#ifndef PB_CLI_SESSION_FIND_H
#define PB_CLI_SESSION_FIND_H
#include <stdint.h>

struct pb_control;
/* Connects to the session that traces the process or, if pid is 0, to the only session. Returns 0,
 * or 1 after an error line of the command. */
int cli_session_find(const char *command, uint32_t pid, struct pb_control **c);
/* Reads the argument that names a command's only process. *pid is 0 before the first call. Returns
 * 0, or EINVAL after an error line of the command. */
int cli_session_pid(const char *command, const char *arg, uint32_t *pid);
/* Returns the PID of the recorder that traces the process and serves its control files; 0: none. */
uint32_t cli_session_recorder(uint32_t pid);
#endif
