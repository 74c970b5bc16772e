/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Threads end by pthread_exit or pthread_cancel (deferred, asynchronous, while blocked) deep inside
 * hooked calls. Clean-up handlers must run in order, the destructors of keys must run, and the next
 * thread's call tree must be right.
 * @markers 1200 main/one_thread
 */
#include <pthread.h>
#include <semaphore.h>
#include "../hostile.h"

static pthread_key_t key;
static sem_t deep_sem;
static volatile int order, key_runs;
static volatile unsigned long spins;

static void cleanup(void *arg) { order = order * 10 + (int)(long)arg; }
static void key_destructor(void *arg) { key_runs++; }

static KEEP long end_here(int how)
{
	switch (how) {
	case 0:
		pthread_exit((void *)17);
	case 1:
		sem_post(&deep_sem);
		for (;;)
			pause();
	case 2:
		pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, NULL);
		sem_post(&deep_sem);
		for (;;)
			spins = spins + 1;
	}
	return 0;
}

static KEEP long level(int depth, int how)
{
	long r;

	if (!depth)
		return end_here(how);
	if (depth > 3)
		return opaque(level(depth - 1, how)) + 1;
	pthread_cleanup_push(cleanup, (void *)(long)depth);
	r = opaque(level(depth - 1, how)) + 1;
	pthread_cleanup_pop(0);
	return r;
}

static KEEP void *thread_main(void *arg)
{
	pthread_setspecific(key, arg);
	level(20, (int)(long)arg - 1);
	return NULL;
}

static KEEP void one_thread(int how, int n)
{
	pthread_t t;
	void *r;

	order = 0;
	check(!pthread_create(&t, NULL, thread_main, (void *)(long)(how + 1)));
	if (how) {
		while (sem_wait(&deep_sem))
			;
		check(!pthread_cancel(t));
	}
	check(!pthread_join(t, &r));
	check(r == (how ? PTHREAD_CANCELED : (void *)17));
	check_eq(order, 123);
	marker_begin(n);
}

int main(void)
{
	int n;

	check(!pthread_key_create(&key, key_destructor));
	check(!sem_init(&deep_sem, 0, 0));
	for (n = 0; n < 1200; n++)
		one_thread(n % 3, n);
	check_eq(key_runs, 1200);
	puts("1200 threads ended");
	return 0;
}
