/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Removes this command's temporary directories if a signal ends it. While a recorder runs, it reads
 * its signals itself, and the signals are blocked. But before that, for example during the analysis
 * of a large program, a signal ends the command at once. Context: the main thread, without signals
 * blocked in cli_tidy_begin().
 */
#ifndef PB_CLI_TIDY_H
#define PB_CLI_TIDY_H

/* Blocks the signals that end the command. Must be called before the directory is made, and
 * followed by cli_tidy_end(). */
void cli_tidy_begin(void);
/* Unblocks the signals. From now on, until cli_tidy_forget(), such a signal first removes the
 * directory with all that is in it. dir: an absolute or relative path, which stays unchanged and
 * valid; NULL: the directory wasn't made. */
void cli_tidy_end(const char *dir);
/* The directory is removed already, or stays. */
void cli_tidy_forget(const char *dir);
#endif
