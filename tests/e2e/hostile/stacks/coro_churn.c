/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The main thread and another thread abandon NR coroutines each half-way, with calls open on the
 * coroutines' stacks. The agent must guess the stacks' bounds. Some stacks are unmapped. The other
 * stacks belong to a pool and are used again. Signals come all the time. Memory for open calls must
 * not run out. Coroutines that are kept until the end must return.
 * @flags -DNR=500000
 * @quick -DNR=50000
 * @markers NR/500 churn/after_some
 * @calls body 2*NR+10
 * @no_return 4*NR+100
 * @timeout 30
 * @slow none none-own bpf-own
 */
#include <pthread.h>
#include <signal.h>
#include <sys/time.h>
#include "coro.h"

#define POOL	64
#define KEPT	5

static volatile int ticks;

static void on_alrm(int sig) { ticks++; }

static KEEP void after_some(int n) { marker_begin(n); opaque(n); }

static KEEP void churn(void)
{
	struct coro kept[KEPT], c;
	char *pool[POOL];
	uint64_t seed = 7;
	int i;

	for (i = 0; i < POOL; i++)
		pool[i] = malloc(CORO_STACK);
	for (i = 0; i < KEPT; i++) {
		coro_start(&kept[i], coro_map(), i + 2);
		resume(&kept[i]);
	}
	for (i = 0; i < NR; i++) {
		uint32_t r = next_random(&seed);

		if (r % 16) {
			coro_start(&c, pool[r / 16 % POOL], (int)(r >> 16) % 4);
			resume(&c);
		} else {
			coro_churn(1);
		}
		if (i % 1000 == 0)
			after_some(i);
	}
	for (i = 0; i < KEPT; i++) {
		check_eq(kept[i].sum, 0);
		resume(&kept[i]);
		check_eq(kept[i].sum, i + 3);
	}
}

static KEEP void *thread_main(void *arg)
{
	churn();
	return NULL;
}

int main(void)
{
	struct sigaction sa = { .sa_handler = on_alrm, .sa_flags = SA_RESTART | SA_ONSTACK };
	struct itimerval it = { { 0, 2000 }, { 0, 2000 } }, off = { { 0 } };
	stack_t ss = { .ss_size = 65536, .ss_sp = malloc(65536) };
	pthread_t t;

	check(!sigaltstack(&ss, NULL));
	check(!sigaction(SIGALRM, &sa, NULL) && !setitimer(ITIMER_REAL, &it, NULL));
	check(!pthread_create(&t, NULL, thread_main, NULL));
	churn();
	check(!pthread_join(t, NULL));
	check(!setitimer(ITIMER_REAL, &off, NULL) && ticks > 10);
	printf("%d coroutines\n", 2 * (NR + KEPT));
	return 0;
}
