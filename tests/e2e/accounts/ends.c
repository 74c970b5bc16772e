/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Starts processes with threads. The processes end in many ways: by _exit, SIGKILL, abort, exec,
 * SIGSEGV, pthread_exit of the main thread, or exit. Some processes end after a fork, or while
 * threads wait. argv[1] is the number of rounds of each thread. */
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#define THREADS 3

static unsigned long *calls;
static long rounds;
static int way;

__attribute__((noinline)) long leaf(long i)
{
	__asm__ volatile("" : : "r"(i));
	return i + 1;
}

__attribute__((noinline)) long outer(long i)
{
	return leaf(i) + leaf(i + 1);
}

static void count(unsigned long n)
{
	__atomic_add_fetch(calls, n, __ATOMIC_SEQ_CST);
}

static void *call(void *arg)
{
	volatile long sum = 0;

	for (long i = 0; i < rounds; i++)
		sum += outer(i);
	count(3ul * (unsigned long)rounds);
	__atomic_add_fetch(calls + 1 + way, 1, __ATOMIC_SEQ_CST);
	if (way == 8)
		pause();
	return NULL;
}

static void end(void)
{
	switch (way) {
	case 0:
		_exit(0);
	case 1:
		kill(getpid(), SIGKILL);
		break;
	case 2:
		abort();
	case 3:
		execl("/bin/true", "true", NULL);
		break;
	case 4:
		raise(SIGSEGV);
		break;
	case 5:
		pthread_exit(NULL);
	case 6:
		exit(0);
	case 8:
		while (__atomic_load_n(calls + 1 + way, __ATOMIC_SEQ_CST) < THREADS)
			usleep(1000);
	}
	_exit(0);
}

static void process(void)
{
	pthread_t t[THREADS];

	leaf(0);
	count(1);
	for (int i = 0; i < THREADS; i++)
		pthread_create(&t[i], NULL, call, NULL);
	if (way == 7) {
		if (!fork()) {
			leaf(2);
			count(1);
			_exit(0);
		}
		wait(NULL);
	}
	for (int i = 0; i < THREADS && way != 8; i++)
		pthread_join(t[i], NULL);
	end();
}

int main(int argc, char **argv)
{
	struct rlimit no_core = { 0 };

	rounds = argc > 1 ? atol(argv[1]) : 3000;
	calls = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	setrlimit(RLIMIT_CORE, &no_core);
	for (way = 0; way < 9; way++)
		if (!fork())
			process();
	while (wait(NULL) > 0)
		;
	printf("calls %lu %lu\n", *calls, *calls);
	return 0;
}
