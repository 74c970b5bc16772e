/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Threads end, and images are replaced, in the middle of a call. The program reads one command from
 * each line of its input, and answers each with a line.
 *
 *   threads N   N threads, one after the other, end by pthread_exit() in worker()
 *   spawn N     N children, one after the other, execute true in child()
 *   replace     the program executes itself in launch()
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define NOINLINE __attribute__((noinline, noipa))

NOINLINE void leaf(void)
{
	__asm__ volatile("");
}

NOINLINE void *worker(void *arg)
{
	leaf();
	pthread_exit(arg);
}

NOINLINE void child(void)
{
	leaf();
	execlp("true", "true", NULL);
	_exit(1);
}

NOINLINE void launch(char *path)
{
	leaf();
	execl(path, path, NULL);
	abort();
}

static void threads(int n)
{
	pthread_t t;

	while (n--)
		if (pthread_create(&t, NULL, worker, NULL) || pthread_join(t, NULL))
			abort();
}

static void spawn(int n)
{
	while (n--) {
		pid_t pid = fork();

		if (!pid)
			child();
		if (pid < 0 || waitpid(pid, NULL, 0) != pid)
			abort();
	}
}

NOINLINE void again(void)
{
	leaf();
	__asm__ volatile("");
}

int main(int argc, char **argv)
{
	char line[64], word[16];
	int n;

	setvbuf(stdin, NULL, _IONBF, 0);
	setvbuf(stdout, NULL, _IOLBF, 0);
	again();
	printf("pid %d\n", (int)getpid());
	while (fgets(line, sizeof(line), stdin) && sscanf(line, "%15s %d", word, &n) > 0) {
		if (!strcmp(word, "threads"))
			threads(n);
		else if (!strcmp(word, "spawn"))
			spawn(n);
		else if (!strcmp(word, "replace"))
			launch(argv[0]);
		puts("ok");
	}
	return argc < 1;
}
