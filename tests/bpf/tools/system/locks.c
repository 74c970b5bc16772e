/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A pool of threads with a queue. Threads hold mutexes and wait for conditions, and jobs wait in
 * the queue. The program prints what it counted.
 *
 *   locks THREADS JOBS
 */
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include "../own.h"

struct job {
	unsigned number, us;
	struct job *next;
};

static pthread_mutex_t queue_lock = PTHREAD_MUTEX_INITIALIZER,
	total_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t more = PTHREAD_COND_INITIALIZER;
static struct job *first, **last = &first;
static unsigned long locked[2], waited, total;
static int ended;

ALONE void enqueue(struct job *j)
{
	*last = j;
	last = &j->next;
}

ALONE struct job *dequeue(void)
{
	struct job *j = first;

	first = j->next;
	if (!first)
		last = &first;
	return j;
}

/* Stands for a payment. The arguments are its account and its amount. */
ALONE unsigned long pay(unsigned account, unsigned long amount)
{
	return account + amount;
}

ALONE int wait_for_more(void)
{
	return pthread_cond_wait(&more, &queue_lock);
}

static void lock(int which)
{
	pthread_mutex_lock(which ? &total_lock : &queue_lock);
	__atomic_fetch_add(&locked[which], 1, __ATOMIC_RELAXED);
}

ALONE struct job *next_job(void)
{
	struct job *j = NULL;

	lock(0);
	while (!first && !ended) {
		waited++;
		wait_for_more();
	}
	if (first)
		j = dequeue();
	pthread_mutex_unlock(&queue_lock);
	return j;
}

static void *worker(void *arg)
{
	for (struct job *j; (j = next_job()); free(j)) {
		struct timespec t = { .tv_nsec = j->us * 1000l };

		if (j->us)
			nanosleep(&t, NULL);
		pay(j->number % 4, j->number);
		lock(1);
		total += j->number;
		pthread_mutex_unlock(&total_lock);
	}
	return NULL;
}

static void add_job(unsigned number)
{
	struct job *j = calloc(1, sizeof(*j));

	j->number = number;
	j->us = number % 16 == 0 ? 500 : 0;
	lock(0);
	enqueue(j);
	pthread_cond_signal(&more);
	pthread_mutex_unlock(&queue_lock);
}

int main(int argc, char **argv)
{
	int threads = argc > 1 ? atoi(argv[1]) : 4;
	unsigned jobs = argc > 2 ? (unsigned)atoi(argv[2]) : 200;
	pthread_t id[64];
	int all;

	own_output();
	for (int i = 0; i < threads && i < 64; i++)
		pthread_create(&id[i], NULL, worker, NULL);
	do {				/* loops until every thread has waited once */
		sched_yield();
		lock(0);
		all = waited >= (unsigned long)threads;
		pthread_mutex_unlock(&queue_lock);
	} while (!all);
	for (unsigned i = 0; i < jobs; i++)
		add_job(i);
	lock(0);
	ended = 1;
	pthread_cond_broadcast(&more);
	pthread_mutex_unlock(&queue_lock);
	for (int i = 0; i < threads && i < 64; i++)
		pthread_join(id[i], NULL);
	printf("locked %p %lu\nlocked %p %lu\n", (void *)&queue_lock, locked[0],
	       (void *)&total_lock, locked[1]);
	printf("waited all %lu\njobs all %u\n", waited, jobs);
	for (unsigned a = 0; a < 4; a++) {
		unsigned long sum = 0, n = 0;

		for (unsigned i = a; i < jobs; i += 4, n++)
			sum += i;
		printf("paid %u %lu\npayments %u %lu\n", a, sum, a, n);
	}
	return total != (unsigned long)jobs * (jobs - 1) / 2;
}
