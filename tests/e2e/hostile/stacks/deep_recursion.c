/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Makes 1,000,000 frames of recursion on a stack of 512 MiB, three times. Also makes the same
 * number of calls with a depth of at most 1,000. bench/part_scale.py compares the times "deep" and
 * "shallow", which the program prints.
 * @markers 3 thread_main/one_round
 * @calls recurse 6003003
 * @buffer 256M
 * @timeout 60
 */
#include <pthread.h>
#include <sys/mman.h>
#include "../hostile.h"

#define DEPTH 1000000
static uint64_t best_deep = -1, best_shallow = -1;

static KEEP long recurse(long n)
{
	return n ? opaque(recurse(n - 1)) + 1 : 0;
}

static KEEP void one_round(int n)
{
	uint64_t start = now_ns(), t;
	int i;

	for (i = 0; i < 1000; i++)
		check_eq(recurse(1000), 1000);
	t = now_ns() - start;
	best_shallow = t < best_shallow ? t : best_shallow;
	start = now_ns();
	check_eq(recurse(DEPTH), DEPTH);
	t = now_ns() - start;
	best_deep = t < best_deep ? t : best_deep;
	marker_begin(n);
}

static KEEP void *thread_main(void *arg)
{
	int n;

	for (n = 0; n < 3; n++)
		one_round(n);
	return NULL;
}

int main(void)
{
	size_t size = 512ul << 20;
	void *mem = mmap(NULL, size, PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK, -1, 0);
	pthread_attr_t attr;
	pthread_t t;

	check(mem != MAP_FAILED);
	/* touches the memory first, so that no page faults are measured */
	memset((char *)mem + size - (128ul << 20), 1, 128ul << 20);
	check(!pthread_attr_init(&attr));
	check(!pthread_attr_setstack(&attr, mem, size));
	check(!pthread_create(&t, &attr, thread_main, NULL));
	check(!pthread_join(t, NULL));
	fprintf(stderr, "figure deep %llu\nfigure shallow %llu\n",
		(unsigned long long)best_deep, (unsigned long long)best_shallow);
	puts("3 x 1000000 frames");
	return 0;
}
