/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Starts the program that is recorded. Context: the main thread. */
#ifndef PB_RECORDER_START_PROGRAM_H
#define PB_RECORDER_START_PROGRAM_H
#include <signal.h>
#include <stdbool.h>
#include <sys/types.h>

/* Sets the actions of two signals that this process may have inherited:
 * - SIGXFSZ is ignored. So writes beyond the limit of file sizes (ulimit -f) fail with EFBIG. The
 *   signal would kill this process without a message.
 * - SIGCHLD gets its default action. If SIGCHLD were ignored, the kernel would reap children, and
 *   waitpid() would never return them.
 * The started program gets the former actions. To be called once, when the process starts. */
void record_signals_prepare(void);
/* The signals that the recorder reads from a descriptor while it runs. */
struct record_signals {
	sigset_t before;	/* the mask of signals before record_signals_take() */
	sigset_t ending;	/* the signals that end a recording, without those that this process
				 * was started to ignore, for example by nohup */
	int fd;			/* reports ignored signals, too */
};

/* Blocks the signals. From now on a signal doesn't end this process, so all that is made for the
 * recording is also removed. */
void record_signals_take(struct record_signals *s);
/* Returns whether the signal asks for the end of a recording. */
bool record_signals_end(const struct record_signals *s, int sig);

struct record_start {
	const char *path;
	char **argv, **env;
	const struct record_signals *signals;
	const struct sigaction *pipe;	/* the program's action for SIGPIPE, in place of the
					 * recorder's own */
};
/* Starts the program with the mask of signals that this process had before record_signals_take().
 * Returns 0 and the process in *pid, or the exit status after an error line. If a signal that asks
 * for an end came after record_signals_take() and before the child was there, the program isn't
 * executed: the terminal has sent the signal to the recorder alone, so ^C would be lost. */
int record_start_program(const struct record_start *s, pid_t *pid);
#endif
