/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Starts argv[1] threads, one after the other. Each thread's stack and TCB are at a new address. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

#define STACK 32768ul

static volatile unsigned long sink;

__attribute__((noinline)) void leaf(unsigned long i)
{
	sink += i;
}

static void *call(void *arg)
{
	for (unsigned long i = 0; i < 10; i++)
		leaf(i);
	return arg;
}

int main(int argc, char **argv)
{
	unsigned long n = argc > 1 ? strtoul(argv[1], NULL, 10) : 18000;
	char *stacks = mmap(NULL, n * STACK, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	for (unsigned long i = 0; i < n; i++) {
		pthread_attr_t a;
		pthread_t t;

		pthread_attr_init(&a);
		pthread_attr_setstack(&a, stacks + i * STACK, STACK);
		if (pthread_create(&t, &a, call, NULL))
			return 1;
		pthread_join(t, NULL);
		madvise(stacks + i * STACK, STACK, MADV_DONTNEED);
	}
	printf("calls %lu %lu\n", n * 10, n * 10);
	return 0;
}
