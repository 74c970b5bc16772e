/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Makes calls while `run_returns periods` unhooks returns and hooks them again.
 *
 *   spans N     makes 2 * N calls. One call begins while returns are hooked and ends while they
 *               are unhooked. The next call begins unhooked and ends hooked, and so on. Then makes
 *               N more calls that begin hooked and end unhooked. Prints "0" to request unhooked
 *               returns, or "1" to request hooked returns. Continues after it has read a byte from
 *               stdin
 *   rounds      makes 1,000 rounds of calls at the start and after each byte on stdin
 *   storm       handlers interrupt the calls of threads, and some of the handlers leave by jumps.
 *               One thread forks. After a '1' on stdin, all calls are recorded. After a '0', calls
 *               may be missing. The program answers with the same byte. At the end of stdin it
 *               prints "calls LOW HIGH": the least and the greatest number of calls that may be
 *               recorded
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define KEEP __attribute__((noipa))
#define THREADS 3

static void ask(char c)
{
	char answer;

	if (write(1, &c, 1) != 1 || read(0, &answer, 1) != 1)
		_exit(3);
}

/* ---- spans ---------------------------------------------------------------- */

KEEP long leaf(long i)
{
	__asm__ volatile("" : : "r"(i));
	return i + 1;
}

KEEP void span(char c)
{
	ask(c);
	__asm__ volatile("");
}

/* Isn't traced. Its frame is large, so its calls of leaf() have lower return slots than an earlier
 * call of span(). An agent that still considers that call of span() open, and looks only at the
 * slots, would record leaf() as a callee of span(). */
KEEP long deeper(long i)
{
	volatile char room[512];

	room[i] = 0;
	return leaf(i) + leaf(i) + room[i];
}

static void spans(int n)
{
	static const volatile char which[] = { '0', '1' };

	/* makes all calls of span() from the same place */
	for (int i = 0; i < 2 * n; i++) {
		span(which[i % 2]);
		if (i % 2)
			deeper(i % 16);
	}
	for (int i = 0; i < n; i++) {
		span('0');
		ask('1');
		deeper(i % 16);
	}
}

KEEP long outer(long i)
{
	return leaf(i) + leaf(i + 1);
}

static void rounds(void)
{
	char one = '1', c;

	do {
		for (int i = 0; i < 1000; i++)
			outer(i);
	} while (write(1, &one, 1) == 1 && read(0, &c, 1) == 1);
}

/* ---- storm ---------------------------------------------------------------- */

static struct shared {
	unsigned long epoch;	/* odd while calls are recorded */
	unsigned long certain, most, jumps, forks;	/* certain: calls that must be recorded;
							 * most: calls that may be recorded */
	int stop;
} *shared;

static __thread sigjmp_buf env;
static __thread volatile sig_atomic_t in_batch, handled;
static pthread_t threads[THREADS];

KEEP long nested_leaf(long i)
{
	__asm__ volatile("" : : "r"(i));
	return i + 1;
}

static unsigned long epoch(void)
{
	return __atomic_load_n(&shared->epoch, __ATOMIC_SEQ_CST);
}

static void count(unsigned long *n, unsigned long add)
{
	__atomic_add_fetch(n, add, __ATOMIC_SEQ_CST);
}

static void were_made(unsigned long before, unsigned long calls)
{
	if (before % 2 && before == epoch())
		count(&shared->certain, calls);
}

static void on_signal(int sig)
{
	unsigned long before = epoch();

	count(&shared->most, 2);
	nested_leaf(nested_leaf(sig));
	were_made(before, 2);
	if (in_batch && ++handled % 2 == 0) {
		count(&shared->jumps, 1);
		siglongjmp(env, 1);
	}
}

static void batch(long i)
{
	unsigned long before = epoch();

	count(&shared->most, 3);
	if (sigsetjmp(env, 1)) {
		in_batch = 0;
		return;
	}
	in_batch = 1;
	outer(i);
	in_batch = 0;
	were_made(before, 3);
}

/* The child's calls are recorded if the parent's calls were recorded at the fork. */
static void fork_one(void)
{
	unsigned long before = epoch();
	pid_t pid = fork();

	if (!pid) {
		int on = before % 2 && before == epoch();

		for (int i = 0; i < 20; i++) {
			count(&shared->most, 3);
			outer(i);
			if (on)
				count(&shared->certain, 3);
		}
		_exit(0);
	}
	count(&shared->forks, 1);
	while (pid > 0 && waitpid(pid, NULL, 0) < 0)
		;
}

static void *work(void *arg)
{
	for (long i = 1; !__atomic_load_n(&shared->stop, __ATOMIC_RELAXED); i++) {
		batch(i);
		if (!arg && i % 3000 == 0)
			fork_one();
	}
	return NULL;
}

static void *kick(void *arg)
{
	for (unsigned i = 0; !__atomic_load_n(&shared->stop, __ATOMIC_RELAXED); i++) {
		usleep(200);
		pthread_kill(threads[i % THREADS], SIGUSR1);
	}
	return NULL;
}

static void storm(void)
{
	pthread_t kicker;
	char c;

	shared = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	signal(SIGUSR1, on_signal);
	for (long i = 0; i < THREADS; i++)
		pthread_create(&threads[i], NULL, work, (void *)i);
	pthread_create(&kicker, NULL, kick, NULL);
	while (read(0, &c, 1) == 1) {
		if (epoch() % 2 != (c == '1'))
			count(&shared->epoch, 1);
		if (write(1, &c, 1) != 1)
			_exit(3);
	}
	shared->stop = 1;
	pthread_join(kicker, NULL);
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	printf("calls %lu %lu, %lu jumps, %lu forks\n", shared->certain,
	       shared->most + shared->jumps, shared->jumps, shared->forks);
}

int main(int argc, char **argv)
{
	if (argc > 1 && !strcmp(argv[1], "spans"))
		spans(atoi(argv[2]));
	else if (argc > 1 && !strcmp(argv[1], "rounds"))
		rounds();
	else
		storm();
	return 0;
}
