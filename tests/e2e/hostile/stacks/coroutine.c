/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Runs coroutines with swapcontext. After each yield, a coroutine continues on any of three
 * threads. It yields from inside nested calls. Coroutines with odd numbers are abandoned half-way.
 * Their stacks are filled with garbage and used again.
 * @markers 3000 worker/after_resume
 * @calls coro_entry 1000
 * @timeout 30
 */
#include <pthread.h>
#include <sys/mman.h>
#include <ucontext.h>
#include "../hostile.h"

#define NR 1000
#define STACK 65536
#define YIELDS 4

struct coro {
	ucontext_t ctx, *back;
	char *stack;
	int id, step, done;
	long sum;
};

static struct coro coros[NR];
static char *free_stacks[NR];
static int nr_free, queue[NR * 16], head, tail, finished, dropped, yields;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* Never inlined, because the coroutine may continue on another thread. */
static KEEP void yield(struct coro *c)
{
	c->step++;
	check(!swapcontext(&c->ctx, c->back));
}

static KEEP long nested(struct coro *c, int depth)
{
	long r;

	if (!depth) {
		yield(c);
		return opaque(1);
	}
	r = opaque(nested(c, depth - 1)) + 1;
	return r;
}

static KEEP void coro_entry(unsigned lo, unsigned hi)
{
	struct coro *c = (struct coro *)((uintptr_t)lo | (uintptr_t)hi << 32);
	int i;

	for (i = 0; i < YIELDS; i++)
		c->sum += nested(c, (c->id + i) % 13);
	c->done = 1;
	setcontext(c->back);
	die("a finished coroutine ran on");
}

static char *stack_get(void)
{
	char *s;

	if (nr_free)
		return free_stacks[--nr_free];
	s = mmap(NULL, STACK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	check(s != MAP_FAILED);
	return s;
}

static void coro_start(struct coro *c, int id)
{
	c->id = id;
	c->stack = stack_get();
	check(!getcontext(&c->ctx));
	c->ctx.uc_stack.ss_sp = c->stack;
	c->ctx.uc_stack.ss_size = STACK;
	c->ctx.uc_link = NULL;
	makecontext(&c->ctx, (void (*)(void))coro_entry, 2,
		    (unsigned)(uintptr_t)c, (unsigned)((uintptr_t)c >> 32));
}

static KEEP void after_resume(int n) { marker_begin(n); opaque(n); }

/* Runs a coroutine until it yields or ends. */
static KEEP void resume(struct coro *c)
{
	ucontext_t here;

	c->back = &here;
	check(!swapcontext(&here, &c->ctx));
}

static long want_sum(int id)
{
	long w = 0;
	int i;

	for (i = 0; i < YIELDS; i++)
		w += (id + i) % 13 + 1;
	return w;
}

static KEEP void *worker(void *arg)
{
	for (;;) {
		struct coro *c = NULL;
		int mark = 0, id;

		pthread_mutex_lock(&lock);
		if (finished + dropped == NR) {
			pthread_mutex_unlock(&lock);
			return NULL;
		}
		if (head < tail)
			c = &coros[queue[head++]];
		pthread_mutex_unlock(&lock);
		if (!c) {
			sched_yield();
			continue;
		}
		id = c->id;
		resume(c);
		pthread_mutex_lock(&lock);
		if (c->done) {
			check_eq(c->sum, want_sum(id));
			finished++;
			mark = 1;
			free_stacks[nr_free++] = c->stack;
		} else if (c->step == 2 && id % 2) {
			memset(c->stack, 0xa5, STACK);
			free_stacks[nr_free++] = c->stack;
			dropped++;
			mark = 1;
		} else {
			yields++;
			queue[tail++] = id;
		}
		pthread_mutex_unlock(&lock);
		if (mark) {
			after_resume(id);
			after_resume(id + 1);
			after_resume(id + 2);
		}
	}
}

int main(void)
{
	pthread_t t[2];
	int i, batch;

	/* makes coroutines in batches, so that later batches use freed stacks */
	for (batch = 0; batch < 10; batch++) {
		pthread_mutex_lock(&lock);
		finished = dropped = 0;
		head = tail = 0;
		for (i = batch * (NR / 10); i < (batch + 1) * (NR / 10); i++) {
			coro_start(&coros[i], i);
			queue[tail++] = i;
		}
		finished = NR - NR / 10;
		pthread_mutex_unlock(&lock);
		for (i = 0; i < 2; i++)
			check(!pthread_create(&t[i], NULL, worker, NULL));
		worker(NULL);
		for (i = 0; i < 2; i++)
			check(!pthread_join(t[i], NULL));
	}
	printf("%d coroutines, %d yields\n", NR, yields);
	return 0;
}
