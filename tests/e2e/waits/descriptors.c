/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The agent must have no descriptor among the program's descriptors, and must hold none of the
 * program's files open.
 *
 *   descriptors PLUGIN
 *
 * First, the program opens a pipe and executes itself. When the new image closes the pipe's writing
 * end, the reading end must get end-of-file. Then the program closes all its descriptors from 3 on,
 * and duplicates one socket to the numbers FROM to TO - 1. It counts the messages that arrive at
 * the socket's peer. Meanwhile, clients request a long file from the agent's thread, and another
 * thread calls dlopen and dlclose. The program ends when it gets a byte.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define FROM	10
#define TO	300
#define READER	8
#define WRITER	9

static const char *plugin;
static volatile int stop;
static int loads;

static void *load(void *arg)
{
	while (!stop) {
		void *h = dlopen(plugin, RTLD_NOW);

		if (!h)
			errx(1, "%s", dlerror());
		dlclose(h);
		loads++;
	}
	return arg;
}

static int asked_to_end(void)
{
	struct pollfd p = { 0, POLLIN, 0 };

	return poll(&p, 1, 1) != 0;
}

static void execute_again(char **argv)
{
	char *again[] = { argv[0], argv[1], "again", NULL };
	int fds[2];

	if (pipe2(fds, O_CLOEXEC))
		err(1, "pipe");
	dup2(fds[0], READER);
	dup2(fds[1], WRITER);
	execv(argv[0], again);
}

int main(int argc, char **argv)
{
	static char message[1 << 16];
	int pair[2], foreign = 0, open_ones = 0;
	pthread_t thread;
	char c;

	if (argc == 2) {
		execute_again(argv);
		err(1, "%s", argv[0]);
	}
	for (int fd = 3; fd < 1024; fd++)
		open_ones += fcntl(fd, F_GETFD) >= 0;
	close(WRITER);
	if (read(READER, &c, 1) != 0)
		errx(1, "the pipe has another writer");
	puts("ready");
	fflush(stdout);
	/* waits until the clients have begun their requests */
	sleep(1);
	for (int fd = 3; fd < 1024; fd++)
		close(fd);
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair))
		err(1, "socketpair");
	for (int fd = FROM; fd < TO; fd++)
		dup2(pair[0], fd);
	plugin = argv[1];
	if (pthread_create(&thread, NULL, load, NULL))
		errx(1, "no thread");
	while (!asked_to_end())
		while (recv(pair[1], message, sizeof(message), MSG_DONTWAIT) > 0)
			foreign++;
	stop = 1;
	pthread_join(thread, NULL);
	for (int fd = FROM; fd < TO; fd++)
		if (close(fd))
			errx(1, "descriptor %d is gone", fd);
	printf("%d open at start, %d foreign messages\n", open_ones, foreign);
	return 0;
}
