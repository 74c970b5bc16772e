/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* late MS PROGRAM ARGS...: traces the program with ptrace. When a thread has ended, reaps it MS
 * milliseconds late. Until then the thread counts as a thread of the program. */
#include <err.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

int main(int argc, char **argv)
{
	int status, sig;
	pid_t pid = fork(), id;
	siginfo_t info;

	if (!pid) {
		if (ptrace(PTRACE_TRACEME, 0, NULL, NULL))
			err(3, "ptrace");
		execv(argv[2], argv + 2);
		err(1, "%s", argv[2]);
	}
	if (waitpid(pid, &status, 0) != pid || !WIFSTOPPED(status))
		return WEXITSTATUS(status);
	if (ptrace(PTRACE_SETOPTIONS, pid, NULL, PTRACE_O_TRACECLONE | PTRACE_O_EXITKILL))
		err(3, "ptrace");
	ptrace(PTRACE_CONT, pid, NULL, NULL);
	for (;;) {
		if (waitid(P_ALL, 0, &info, WEXITED | WSTOPPED | WNOWAIT | __WALL))
			err(1, "waitid");
		if (info.si_code == CLD_EXITED && info.si_pid != pid)
			usleep(1000 * (useconds_t)atoi(argv[1]));
		id = waitpid(info.si_pid, &status, __WALL);
		if (WIFSTOPPED(status)) {
			/* the program must not get a signal for the first stop of a new thread, or
			 * for a ptrace event */
			sig = id != pid && WSTOPSIG(status) == SIGSTOP ? 0 :
			      status >> 16 ? 0 : WSTOPSIG(status);
			ptrace(PTRACE_CONT, id, NULL, sig);
		} else if (id == pid) {
			return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
		}
	}
}
