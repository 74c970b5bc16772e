/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Allocates blocks of known sizes in known callers. Keeps some blocks and frees the other blocks.
 * Usage: heap ROUNDS */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include "../own.h"

void *kept[4096];		/* not static: otherwise the compiler might drop the stores */
static unsigned nr_kept;

ALONE void keep_small(void)
{
	kept[__atomic_fetch_add(&nr_kept, 1, __ATOMIC_RELAXED)] = malloc(1234);
}

ALONE void keep_large(void)
{
	kept[__atomic_fetch_add(&nr_kept, 1, __ATOMIC_RELAXED)] = calloc(10, 777);
}

ALONE void drop(void)
{
	char *p = malloc(4321);

	p = realloc(p, 8765);
	__asm__ volatile("" : : "r"(p) : "memory");
	free(p);
}

static void *thread(void *arg)
{
	int rounds = (int)(long)arg;

	for (int i = 0; i < rounds; i++) {
		drop();
		keep_small();
		if (i % 4 == 0)
			keep_large();
	}
	return NULL;
}

int main(int argc, char **argv)
{
	int rounds = argc > 1 ? atoi(argv[1]) : 20;
	pthread_t id[3];

	own_output();
	for (int i = 0; i < 3; i++)
		pthread_create(&id[i], NULL, thread, (void *)(long)rounds);
	for (int i = 0; i < 3; i++)
		pthread_join(id[i], NULL);
	printf("kept 1234 %d\nkept 7770 %d\ndropped 4321 %d\ndropped 8765 %d\n", 3 * rounds,
	       3 * ((rounds + 3) / 4), 3 * rounds, 3 * rounds);
	return nr_kept != 3u * (unsigned)rounds + 3u * (unsigned)((rounds + 3) / 4);
}
