/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Starts the program that is recorded. Context: the main thread. */
#ifndef PB_RECORDER_START_PROGRAM_H
#define PB_RECORDER_START_PROGRAM_H
#include <signal.h>
#include <stdbool.h>
#include <sys/types.h>

struct record_start {
	const char *path;
	char **argv, **env;
	/* settings that the program gets in place of the recorder's own */
	const sigset_t *mask;
	const struct sigaction *pipe;	/* for SIGPIPE */
};
/* Sets the actions of two signals that this process may have inherited:
 * - SIGXFSZ is ignored. So writes beyond the limit of file sizes (ulimit -f) fail with EFBIG. The
 *   signal would kill this process without a message.
 * - SIGCHLD gets its default action. If SIGCHLD were ignored, the kernel would reap children, and
 *   waitpid() would never return them.
 * The started program gets the former actions. To be called once, when the process starts. */
void record_signals_prepare(void);
/* Returns 0, or the exit status after an error line. */
int record_start_program(const struct record_start *s, pid_t *pid);
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
/* Returns a signal that came after record_signals_take() and asks for an end; 0: there is none.
 * Called just before the program is started: the terminal has sent such a signal to the recorder
 * alone. If the program were started nevertheless, ^C would be lost. */
int record_signals_early(const struct record_signals *s);
#endif
