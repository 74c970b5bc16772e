/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * namespace_fork LIBRARY: stops the recorder, which is the parent process, and forks while dlopen
 * waits for the recorder in another thread. The child has the same PID as this process, in a PID
 * namespace of its own. The child must end. Exits with 77 if there is no such child.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define HEARTBEAT_US	150000	/* after this time the recorder has sent a heartbeat */
#define CHILD_S		20	/* a child that hasn't ended by then waits for ever */

static volatile int loads, loaded;

static void *load(void *library)
{
	while (!loads)
		usleep(1000);
	dlopen(library, RTLD_NOW);
	loaded = 1;
	return NULL;
}

/* Returns whether the agent's thread exists, for which dlopen waits. */
static int waits(void)
{
	char text[4096];
	int fd = open("/proc/self/status", O_RDONLY | O_CLOEXEC);
	ssize_t n = read(fd, text, sizeof(text) - 1);

	close(fd);
	text[n > 0 ? n : 0] = 0;
	return strstr(text, "\nThreads:\t3\n") != NULL;
}

/* The first process of the namespace. Sets the PID before the one that its next process gets. */
static void first_process(pid_t next, int ready)
{
	char text[32];
	int fd = open("/proc/sys/kernel/ns_last_pid", O_WRONLY), n;

	n = snprintf(text, sizeof(text), "%d", next - 1);
	if (fd >= 0 && write(fd, text, (size_t)n) == n)
		write(ready, "x", 1);
	close(ready);
	for (;;)
		pause();
}

/* Returns the PID of the first process of a new namespace, or -1. */
static pid_t make_namespace(void)
{
	int ready[2];
	pid_t pid, own = getpid();
	char c;

	if (pipe(ready) || unshare(CLONE_NEWPID))
		return -1;
	pid = fork();
	if (!pid)
		first_process(own, ready[1]);
	close(ready[1]);
	if (read(ready[0], &c, 1) == 1)
		return pid;
	kill(pid, SIGKILL);
	return -1;
}

int main(int argc, char **argv)
{
	pid_t recorder = getppid(), own = getpid(), first, child;
	int status = -1;
	pthread_t t;

	/* a thread that has changed its namespace can make no other thread */
	if (pthread_create(&t, NULL, load, argv[1]))
		return 1;
	first = make_namespace();
	if (first < 0)
		return 77;
	usleep(HEARTBEAT_US);
	kill(recorder, SIGSTOP);
	loads = 1;
	while (!waits() && !loaded)
		;
	child = fork();
	if (!child)
		_exit(getpid() == own ? 0 : 77);
	kill(recorder, SIGCONT);
	for (int i = 0; i < CHILD_S * 100 && !waitpid(child, &status, WNOHANG); i++)
		usleep(10000);
	kill(first, SIGKILL);
	pthread_join(t, NULL);
	if (WIFEXITED(status) && WEXITSTATUS(status) == 77)
		return 77;
	printf("child: status %#x\n", (unsigned)status);
	return 0;
}
