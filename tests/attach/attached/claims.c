/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Several threads call the agent's function patchbay_attach() at the same time, like several
 * injectors. This program plays the recorder, too. It answers nothing, so an agent that is attached
 * waits. In each round, at most one of the threads may attach. Then the connection is closed, which
 * ends the attach. Once, all threads call the function again before the connection is closed: then
 * they must not hear that the agent is recording, because its recorder may be gone.
 *
 *   claims AGENT ROUNDS SOCKET
 */
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>
#include "abi/messages.h"
#include "attach/inject.h"

#define THREADS	4

static int (*attach)(const char *session, const char *agent, uint32_t protocol, int *answer);
static volatile int answers[THREADS];
static pthread_barrier_t begin;
static struct sockaddr_un at = { .sun_family = AF_UNIX };

static void *caller(void *arg)
{
	int *answer = arg;

	for (;;) {
		pthread_barrier_wait(&begin);
		attach(at.sun_path, "/nowhere/agent", PB_PROTOCOL, answer);
	}
	return NULL;
}

static void close_connections(int listener, int nr)
{
	while (nr--)
		close(accept(listener, NULL, NULL));
	usleep(3000);	/* so that the agent's thread has probably ended */
}

/* Lets all threads call the function. Returns how many of them have attached. *again: how many of
 * them have got -EAGAIN. */
static int call_all(int *again)
{
	int attached = 0;

	*again = 0;
	for (int i = 0; i < THREADS; i++)
		answers[i] = PB_ANSWER_NONE;
	pthread_barrier_wait(&begin);
	for (int i = 0; i < THREADS; i++) {
		while (answers[i] == PB_ANSWER_NONE)
			usleep(50);
		if (answers[i] && answers[i] != -EBUSY && answers[i] != -EAGAIN) {
			printf("answer %d\n", answers[i]);
			exit(1);
		}
		attached += !answers[i];
		*again += answers[i] == -EAGAIN;
		answers[i] = PB_ANSWER_SEEN;
	}
	return attached;
}

static int one_round(int listener, int twice)
{
	int again, attached = call_all(&again);

	if (attached && twice && (call_all(&again) || !again)) {
		puts("no thread was to try again");
		exit(1);
	}
	close_connections(listener, attached);
	return attached;
}

int main(int argc, char **argv)
{
	int listener = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	void *agent = dlopen(argv[1], RTLD_NOW);
	int rounds = atoi(argv[2]), attached = 0;
	pthread_t t;

	attach = agent ? (int (*)(const char *, const char *, uint32_t, int *))
			 dlsym(agent, "patchbay_attach") : NULL;
	if (!attach) {
		puts(dlerror());
		return 1;
	}
	snprintf(at.sun_path, sizeof(at.sun_path), "%s", argv[3]);
	if (bind(listener, (struct sockaddr *)&at, sizeof(at)) || listen(listener, 100)) {
		perror(argv[3]);
		return 1;
	}
	pthread_barrier_init(&begin, NULL, THREADS + 1);
	for (int i = 0; i < THREADS; i++)
		pthread_create(&t, NULL, caller, (void *)&answers[i]);
	for (int n = 0; n < rounds; n++) {
		int now = one_round(listener, !n);

		if (now > 1) {
			printf("%d threads attached in round %d\n", now, n);
			return 1;
		}
		attached += now;
	}
	printf("%d attached\n", attached);
	return !attached;
}
