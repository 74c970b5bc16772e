/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A program to attach to: a server whose three threads make worker processes all the time, by fork,
 * by posix_spawn, and by a direct system call. A worker computes, allocates, catches a signal, and
 * ends with a known status. Some workers also fork another worker, and live for a while. A worker
 * that was made by the direct system call only computes. On SIGTERM the program prints how many
 * workers ended with another status.
 *
 *   attach_forks
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define FORKERS 3
#define STATUS 42

static volatile sig_atomic_t stop, caught;
static unsigned long workers, errors;

__attribute__((noinline)) static unsigned fib(unsigned n)
{
	return n < 2 ? n : fib(n - 1) + fib(n - 2);
}

static void on_signal(int sig)
{
	caught++;
}

static int computes(void)
{
	char *p[100];

	for (int i = 0; i < 100; i++) {
		p[i] = malloc((size_t)i * 50 + 1);
		memset(p[i], i, (size_t)i * 50 + 1);
	}
	for (int i = 0; i < 100; i++) {
		if (p[i][i * 50] != i)
			return 0;
		free(p[i]);
	}
	return fib(15) == 610;
}

static int works(int depth)
{
	struct timespec moment = { 0, 30000000 };
	int before = caught, status;
	pid_t pid;

	raise(SIGUSR1);
	if (!computes() || caught != before + 1)
		return 1;
	if (depth) {
		pid = fork();
		if (!pid)
			_exit(works(depth - 1));
		if (waitpid(pid, &status, 0) != pid || status != STATUS << 8)
			return 2;
		nanosleep(&moment, NULL);
	}
	return computes() ? STATUS : 3;
}

static pid_t make_worker(unsigned kind)
{
	char *argv[] = { "attach_forks", "worker", NULL };
	extern char **environ;
	pid_t pid = -1;

	switch (kind % 4) {
	case 0:
	case 1:
		pid = fork();
		break;
	case 2:
		pid = (pid_t)syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);
		break;
	case 3:
		if (posix_spawn(&pid, "/proc/self/exe", NULL, NULL, argv, environ))
			pid = -1;
		return pid;
	}
	/* after the direct system call, malloc's locks may be held by a thread that doesn't exist
	 * in the child, so the child must not allocate */
	if (!pid)
		_exit(kind % 4 == 2 ? fib(15) == 610 ? STATUS : 4 : works(kind % 8 == 1));
	return pid;
}

static void *forks(void *arg)
{
	for (unsigned kind = 0; !stop; kind++) {
		pid_t pid = make_worker(kind);
		int status = 0;

		if (pid < 0 || waitpid(pid, &status, 0) != pid || status != STATUS << 8) {
			__atomic_add_fetch(&errors, 1, __ATOMIC_RELAXED);
			fprintf(stderr, "worker %d of kind %u: status %x\n", pid, kind % 8, status);
		}
		__atomic_add_fetch(&workers, 1, __ATOMIC_RELAXED);
	}
	return arg;
}

int main(int argc, char **argv)
{
	pthread_t t[FORKERS];
	sigset_t term;
	int sig;

	signal(SIGUSR1, on_signal);
	if (argc > 1)
		return works(0);
	sigemptyset(&term);
	sigaddset(&term, SIGTERM);
	pthread_sigmask(SIG_BLOCK, &term, NULL);
	for (int i = 0; i < FORKERS; i++)
		pthread_create(&t[i], NULL, forks, NULL);
	puts("ready");
	fflush(stdout);
	sigwait(&term, &sig);
	stop = 1;
	for (int i = 0; i < FORKERS; i++)
		pthread_join(t[i], NULL);
	printf("workers %lu\nerrors %lu\n", workers, errors);
	return errors != 0;
}
