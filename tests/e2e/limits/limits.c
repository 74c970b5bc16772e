/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Makes many threads, nested calls or coroutines. The tracer must keep a state for each of them,
 * because all of them have open calls. Prints the number of calls, and the largest amount of
 * anonymous memory that was measured.
 *
 *   limits threads N		N threads at the same time, each with two open calls
 *   limits deep N		N nested calls
 *   limits registered N AT KIND
 *				N coroutines, AT of them at a time; makecontext registers their
 *				stacks
 *   limits guessed N AT KIND	like "registered", but the tracer isn't notified of stack switches
 *
 * Each coroutine is destroyed half-way, while it has open calls. KIND says what becomes of its
 * stack. "unmapped": it is unmapped. "overwritten": it gets other data and is never a stack again.
 * "reused": a later coroutine uses it.
 */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <ucontext.h>
#include "../switch_stack.h"

#define STACK		16384ul		/* bytes of a coroutine's stack; a thread has four times as
					 * many */
#define NOINLINE	__attribute__((noinline))

static unsigned long calls;
static long anonymous;		/* KiB of anonymous memory */

static void die(const char *what)
{
	perror(what);
	exit(3);
}

static void measure(void)
{
	FILE *f = fopen("/proc/self/status", "r");
	char line[256];
	long kib;

	while (f && fgets(line, sizeof(line), f))
		if (sscanf(line, "RssAnon: %ld kB", &kib) == 1 && kib > anonymous)
			anonymous = kib;
	if (f)
		fclose(f);
}

NOINLINE long leaf(long x)
{
	__asm__ volatile("" : "+r"(x));
	return x + 1;
}

/* ---- threads ----------------------------------------------------------------- */

static pthread_barrier_t all_there, all_measured;
static unsigned long thread_calls;	/* changed atomically */

NOINLINE long inner(long x)
{
	x = leaf(x);
	pthread_barrier_wait(&all_there);
	pthread_barrier_wait(&all_measured);
	x = leaf(x);
	__asm__ volatile("" : "+r"(x));
	return x;
}

NOINLINE long outer(long x)
{
	x = leaf(inner(leaf(x)));
	__asm__ volatile("" : "+r"(x));
	return x;
}

static void *thread(void *arg)
{
	outer(1);
	__atomic_fetch_add(&thread_calls, 6, __ATOMIC_RELAXED);
	return NULL;
}

static void threads(long n)
{
	pthread_t *ids = calloc((size_t)n, sizeof(*ids));
	pthread_attr_t attr;

	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, 4 * STACK);
	pthread_barrier_init(&all_there, NULL, (unsigned)n + 1);
	pthread_barrier_init(&all_measured, NULL, (unsigned)n + 1);
	for (long i = 0; i < n; i++)
		if (pthread_create(&ids[i], &attr, thread, NULL))
			die("pthread_create");
	pthread_barrier_wait(&all_there);
	measure();
	pthread_barrier_wait(&all_measured);
	for (long i = 0; i < n; i++)
		pthread_join(ids[i], NULL);
	calls = thread_calls;
}

/* ---- depth ------------------------------------------------------------------- */

NOINLINE long deep(long n)
{
	long x = n;

	calls++;
	if (n > 1)
		x = deep(n - 1) + 1;
	else
		measure();
	__asm__ volatile("" : "+r"(x));
	return x;
}

static void *deep_thread(void *arg)
{
	deep(*(long *)arg);
	return NULL;
}

static void go_deep(long n)
{
	pthread_attr_t attr;
	pthread_t t;

	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, (size_t)n * 64 + (1 << 20));
	if (pthread_create(&t, &attr, deep_thread, &n))
		die("pthread_create");
	pthread_join(t, NULL);
}

/* ---- coroutines --------------------------------------------------------------- */

static void *here, *there;	/* stack pointers of main and the coroutine */
static ucontext_t context_here, context_there;
static int registered;

NOINLINE long in_third(long x)
{
	calls++;
	if (registered)
		swapcontext(&context_there, &context_here);
	else
		SWITCH(&there, here);
	__asm__ volatile("" : "+r"(x));
	return x;
}

NOINLINE long in_second(long x)
{
	calls += 2;
	x = in_third(leaf(x));
	__asm__ volatile("" : "+r"(x));
	return x;
}

NOINLINE long in_first(long x)
{
	calls += 2;
	x = in_second(leaf(x));
	__asm__ volatile("" : "+r"(x));
	return x;
}

__attribute__((used)) static void begin(void)
{
	in_first(1);
	abort();
}

/* Runs a coroutine until it is half-way. */
NOINLINE void start(char *stack)
{
	calls += 2;
	leaf(2);
	if (registered) {
		getcontext(&context_there);
		context_there.uc_stack.ss_sp = stack;
		context_there.uc_stack.ss_size = STACK;
		makecontext(&context_there, begin, 0);
		swapcontext(&context_here, &context_there);
	} else {
		SWITCH(&here, stack_begin(stack + STACK, begin));
	}
}

static char *new_stack(void)
{
	char *p = mmap(NULL, STACK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED)
		die("mmap");
	return p;
}

static void coroutines(long n, long at, const char *kind)
{
	char **stacks = calloc((size_t)at, sizeof(*stacks)), *overwritten[64] = { 0 };

	for (long i = 0; i < n; i++) {
		char **s = &stacks[i % at], **o = &overwritten[i % 64];

		if (!*s) {
			*s = new_stack();
		} else if (!strcmp(kind, "unmapped")) {
			char *fresh = new_stack();

			munmap(*s, STACK);
			*s = fresh;
		} else if (!strcmp(kind, "overwritten")) {
			if (*o)
				munmap(*o, STACK);
			memset(*s, 0x55, STACK);
			*o = *s;
			*s = new_stack();
		}
		start(*s);
		if (i == n / 2 || i == n - 1)
			measure();
	}
}

int main(int argc, char **argv)
{
	long n = argc > 2 ? atol(argv[2]) : 1000;

	if (argc < 3)
		return 2;
	if (!strcmp(argv[1], "threads"))
		threads(n);
	else if (!strcmp(argv[1], "deep"))
		go_deep(n);
	else if (argc == 5 && (!strcmp(argv[1], "registered") || !strcmp(argv[1], "guessed"))) {
		registered = !strcmp(argv[1], "registered");
		coroutines(n, atol(argv[3]), argv[4]);
	}
	printf("calls %lu\nmemory %ld\n", calls, anonymous);
	return 0;
}
