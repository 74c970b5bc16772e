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
	const struct sigaction *pipe, *xfsz;	/* for SIGPIPE and SIGXFSZ */
};
/* Returns 0, or the exit status after an error line. */
int record_start_program(const struct record_start *s, pid_t *pid);
#endif
