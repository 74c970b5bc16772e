/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Takes the signals, forks and executes. The child reports a failed exec through a pipe. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/base.h"
#include "reader/say.h"
#include "recorder/start_program.h"
#include "recorder/texts.h"

static struct sigaction old_xfsz, old_chld;

void record_signals_prepare(void)
{
	struct sigaction ignore = { .sa_handler = SIG_IGN }, normal = { .sa_handler = SIG_DFL };

	sigaction(SIGXFSZ, &ignore, &old_xfsz);
	sigaction(SIGCHLD, &normal, &old_chld);
}

/* Runs in the child, so it makes only async-signal-safe calls. */
static void run_child(const struct record_start *s, int err_fd)
{
	int e;

	sigaction(SIGPIPE, s->pipe, NULL);
	sigaction(SIGXFSZ, &old_xfsz, NULL);
	sigaction(SIGCHLD, &old_chld, NULL);
	sigprocmask(SIG_SETMASK, s->mask, NULL);
	execve(s->path, s->argv, s->env);
	e = errno;
	if (write(err_fd, &e, sizeof(e))) {
	}
	_exit(127);
}

int record_start_program(const struct record_start *s, pid_t *pid)
{
	int fds[2], e = 0;

	if (pipe2(fds, O_CLOEXEC))
		return record_error("%s: can't be started: %s%s", s->path, strerror(errno),
				    pb_say_limit(errno));
	*pid = fork();
	if (!*pid)
		run_child(s, fds[1]);
	close(fds[1]);
	if (*pid < 0) {
		close(fds[0]);
		return record_error("%s: can't be started: %s%s", s->path, strerror(errno),
				    pb_say_limit(errno));
	}
	/* a successful exec closes the child's end of the pipe, so this read ends before the agent
	 * can connect */
	if (read(fds[0], &e, sizeof(e)) != sizeof(e))
		e = 0;
	close(fds[0]);
	if (!e)
		return 0;
	waitpid(*pid, NULL, 0);
	*pid = 0;
	record_error("%s: %s", s->path, strerror(e));
	return 126;
}

static const int ending[] = { SIGINT, SIGQUIT, SIGTERM, SIGHUP };

void record_signals_take(struct record_signals *s)
{
	struct sigaction act;
	sigset_t set;

	sigemptyset(&set);
	sigemptyset(&s->ending);
	for (unsigned i = 0; i < pb_array_size(ending); i++) {
		sigaddset(&set, ending[i]);
		if (!sigaction(ending[i], NULL, &act) && act.sa_handler != SIG_IGN)
			sigaddset(&s->ending, ending[i]);
	}
	sigaddset(&set, SIGUSR1);
	sigaddset(&set, SIGUSR2);
	sigaddset(&set, SIGCHLD);
	sigprocmask(SIG_BLOCK, &set, &s->before);
	s->fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
}

bool record_signals_end(const struct record_signals *s, int sig)
{
	return sigismember(&s->ending, sig) == 1;
}

int record_signals_early(const struct record_signals *s)
{
	sigset_t pending;

	sigpending(&pending);
	for (unsigned i = 0; i < pb_array_size(ending); i++)
		if (sigismember(&pending, ending[i]) == 1 && record_signals_end(s, ending[i]))
			return ending[i];
	return 0;
}
