/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * exec_at_stop THREADS: a program that executes another one while its threads are being stopped. A
 * thread waits until the helper of a stop traces the main thread, and then executes `echo`. With
 * more threads it is likelier that the helper hasn't come to this thread yet. Prints "ready PID"
 * first.
 */
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void *idle(void *arg)
{
	for (;;)
		pause();
	return arg;
}

static void read_text(const char *path, char *text, size_t size)
{
	int fd = open(path, O_RDONLY);
	ssize_t n = fd < 0 ? 0 : read(fd, text, size - 1);

	text[n > 0 ? n : 0] = 0;
	if (fd >= 0)
		close(fd);
}

/* Whether the main thread's tracer is the helper of a stop. */
static int is_stopped(void)
{
	char path[64], text[4096], *at;

	snprintf(path, sizeof(path), "/proc/self/task/%d/status", (int)getpid());
	read_text(path, text, sizeof(text));
	at = strstr(text, "TracerPid:");
	if (!at || !atoi(at + 10))
		return 0;
	snprintf(path, sizeof(path), "/proc/%d/comm", atoi(at + 10));
	read_text(path, text, sizeof(text));
	return !strcmp(text, "patchbay-stop\n");
}

static void *execute(void *arg)
{
	while (!is_stopped())
		usleep(20);
	execlp("echo", "echo", "executed", NULL);
	return arg;
}

int main(int argc, char **argv)
{
	pthread_attr_t small;
	pthread_t t;

	pthread_attr_init(&small);
	pthread_attr_setstacksize(&small, 65536);
	for (int i = argc > 1 ? atoi(argv[1]) : 0; i > 0; i--)
		pthread_create(&t, &small, idle, NULL);
	pthread_create(&t, &small, execute, NULL);
	printf("ready %d\n", (int)getpid());
	fflush(stdout);
	idle(NULL);
	return 0;
}
