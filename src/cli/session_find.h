/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Finds the session that traces a process. Context: the main thread. */
#ifndef PB_CLI_SESSION_FIND_H
#define PB_CLI_SESSION_FIND_H
#include <stdbool.h>
#include <stdint.h>

struct pb_control;
/* Connects to the session that traces the process or, if pid is 0, to the only session of this
 * user. Returns 0. On failure, prints an error for `command` and returns 1. */
int cli_session_find(const char *command, uint32_t pid, struct pb_control **c);
/* Returns whether this error of pb_control_open(), or of a request, means that the session has
 * ended. Its socket may be left from a recorder that was killed. */
bool cli_session_ended(int err);
/* Parses a PID, for a command that takes only one. *pid must be 0 before the first call. Returns 0.
 * On failure, prints an error for `command` and returns EINVAL. */
int cli_session_pid(const char *command, const char *arg, uint32_t *pid);
/* Returns the PID of the recorder that traces the process and serves its control files; 0: none. */
uint32_t cli_session_recorder(uint32_t pid);
#endif
