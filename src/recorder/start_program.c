/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Blocks the recorder's signals, which it reads from a signalfd, then forks and executes the
 * program in the child. The recorder and the child are connected by two sockets:
 *
 *	the recorder sends a byte	the child may execute the program. If the recorder ends
 *					before that, the child ends, too
 *	the child sends an errno	execve() has failed
 *	the child's socket is closed	the program runs
 *
 * Until the child exists, the terminal sends ^C to the recorder alone. So when the child exists,
 * the recorder checks whether such a signal has come (early()). Later signals reach the child, too.
 * They stay pending there until the child restores its signal mask.
 */
#include <errno.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
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

/* Returns a signal that came after record_signals_take() and ends the recording; 0: there is
 * none. */
static int early(const struct record_signals *s)
{
	sigset_t pending;

	sigpending(&pending);
	for (unsigned i = 0; i < pb_array_size(ending); i++)
		if (sigismember(&pending, ending[i]) == 1 && record_signals_end(s, ending[i]))
			return ending[i];
	return 0;
}

/* Runs in the child, so it makes only async-signal-safe calls. */
static void run_child(const struct record_start *s, int sock)
{
	ssize_t n;
	int e;

	do
		n = read(sock, &e, 1);
	while (n < 0 && errno == EINTR);
	if (n != 1)
		_exit(127);
	sigaction(SIGPIPE, s->pipe, NULL);
	sigaction(SIGXFSZ, &old_xfsz, NULL);
	sigaction(SIGCHLD, &old_chld, NULL);
	sigprocmask(SIG_SETMASK, &s->signals->before, NULL);
	execve(s->path, s->argv, s->env);
	e = errno;
	if (write(sock, &e, sizeof(e))) {
	}
	_exit(127);
}

static int cant_start(const struct record_start *s)
{
	return record_error("%s: can't be started: %s%s", s->path, strerror(errno),
			    pb_say_limit(errno));
}

/* Lets the child execute the program. Returns 0, or the exit status after an error line. If the
 * program is executed, the child's socket is closed before the agent can connect. */
static int let_go(const struct record_start *s, int sock)
{
	int e, sig = early(s->signals);

	if (sig) {
		record_error("SIG%s came before the program was started; nothing was recorded",
			     sigabbrev_np(sig));
		return 128 + sig;
	}
	if (send(sock, "", 1, MSG_NOSIGNAL) != 1 || read(sock, &e, sizeof(e)) != sizeof(e))
		return 0;
	record_error("%s: %s", s->path, strerror(e));
	return 126;
}

int record_start_program(const struct record_start *s, pid_t *pid)
{
	int socks[2], status;

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, socks))
		return cant_start(s);
	*pid = fork();
	if (!*pid) {
		close(socks[0]);
		run_child(s, socks[1]);
	}
	close(socks[1]);
	status = *pid < 0 ? cant_start(s) : let_go(s, socks[0]);
	close(socks[0]);	/* a child that still waits ends */
	if (status && *pid > 0)
		waitpid(*pid, NULL, 0);
	if (status)
		*pid = 0;
	return status;
}
