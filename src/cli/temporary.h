/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Directories for data that is removed when the command ends. Context: the main thread. */
#ifndef PB_CLI_TEMPORARY_H
#define PB_CLI_TEMPORARY_H
#include <limits.h>

#define CLI_TEMPORARY (PATH_MAX + 8)	/* size of a path that cli_temporary_make() makes */
/* Makes a new temporary directory. Sets `dir` to the path of a data directory inside it; this data
 * directory doesn't exist yet. Returns 0, or 1 after an error line of the command. */
int cli_temporary_make(const char *command, char dir[CLI_TEMPORARY]);
/* Removes the data directory and the temporary directory around it. Changes `dir`. */
void cli_temporary_remove(char dir[CLI_TEMPORARY]);
#endif
