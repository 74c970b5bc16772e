/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Starts the program that is recorded. Context: the main thread. */
#ifndef PB_RECORDER_START_PROGRAM_H
#define PB_RECORDER_START_PROGRAM_H
#include <signal.h>
#include <sys/types.h>

struct record_start {
	const char *path;
	char **argv, **env;
	/* settings that the program gets in place of the recorder's own */
	const sigset_t *mask;
	const struct sigaction *pipe;	/* for SIGPIPE */
};
/* Makes writes beyond the limit of file sizes (ulimit -f) fail with EFBIG, where the signal SIGXFSZ
 * would kill this process without a message. The started program gets the former action. To be
 * called once, when the process starts. */
void record_ignore_xfsz(void);
/* Returns 0, or the exit status after an error line. */
int record_start_program(const struct record_start *s, pid_t *pid);
#endif
