/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* hold PID MILLISECONDS: stops the main thread of a process and lets its other threads run. A
 * recorder that is stopped like this seems to be busy. Prints "held" when the thread has stopped.
 * The time begins when hold gets a byte. */
#include <err.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

int main(int argc, char **argv)
{
	pid_t pid = argc == 3 ? atoi(argv[1]) : 0;
	int status;

	if (ptrace(PTRACE_SEIZE, pid, 0, 0) || ptrace(PTRACE_INTERRUPT, pid, 0, 0))
		err(77, "ptrace");
	waitpid(pid, &status, __WALL);
	puts("held");
	fflush(stdout);
	getchar();
	usleep((unsigned)atoi(argv[2]) * 1000u);
	return ptrace(PTRACE_DETACH, pid, 0, 0) != 0;
}
