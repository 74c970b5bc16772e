/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The eBPF program of forked.bpf.c kills the child after it has reserved a record in the child.
 * After that, the parent makes 50 more calls.
 *
 * forked outlived SECONDS: a child sleeps and makes no call. The eBPF program interrupts the parent
 * after it has reserved a record. The handler makes 10 calls and kills the parent.
 *
 * forked maps: a child makes no call. It prints how many maps of eBPF programs it has mapped.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

__attribute__((noinline, noclone)) int call(int x)
{
	__asm__ volatile("" : "+r"(x));
	return x * 3 + (x >> 2);
}

static void on_usr1(int sig)
{
	for (int i = 1; i <= 10; i++)
		call(i);
	raise(SIGKILL);
}

static int outlived(const char *seconds)
{
	/* the agent can't defer the signal, because SA_RESETHAND takes its handler away */
	struct sigaction sa = { .sa_handler = on_usr1, .sa_flags = (int)SA_RESETHAND };
	pid_t child;

	call(0);
	child = fork();
	if (!child) {
		for (int fd = 0; fd < 3; fd++)
			close(fd);
		sleep((unsigned)atoi(seconds));
		_exit(0);
	}
	printf("sleeper %d\n", (int)child);
	fflush(stdout);
	sigaction(SIGUSR1, &sa, NULL);
	call(8888);
	return 98;
}

static int print_maps(void)
{
	pid_t child;
	int nr = 0;

	call(0);
	child = fork();
	if (!child) {
		char line[512], mode[5];
		FILE *f = fopen("/proc/self/maps", "r");

		while (f && fgets(line, sizeof(line), f))
			/* the agent may be in such a directory, too, but it isn't shared */
			nr += sscanf(line, "%*s %4s", mode) == 1 && mode[3] == 's' &&
			      strstr(line, "/bpf/");
		printf("maps %d\n", f ? nr : -1);
		fflush(stdout);
		_exit(0);
	}
	return waitpid(child, NULL, 0) != child;
}

int main(int argc, char **argv)
{
	int status = 0;

	if (argc > 2)
		return outlived(argv[2]);
	if (argc > 1)
		return print_maps();
	call(0);
	pid_t child = fork();

	if (!child) {
		call(7777);
		_exit(0);
	}
	waitpid(child, &status, 0);
	for (int i = 1; i <= 50; i++) {
		call(i);
		usleep(5000);
	}
	return WIFSIGNALED(status) ? WTERMSIG(status) : 99;
}
