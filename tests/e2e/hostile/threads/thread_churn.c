/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Runs 10,000 short threads, four at a time. All of them are traced.
 * @flags -DNR=10000
 * @quick -DNR=3000
 * @markers NR thread_main
 * @calls thread_main NR
 * @timeout 30
 */
#include <pthread.h>
#include "../hostile.h"

static KEEP long leaf(long x) { return opaque(x) * 2; }

static KEEP void *thread_main(void *arg)
{
	long id = (long)arg, sum = 0;
	int i;

	for (i = 0; i < 10; i++)
		sum += leaf(id);
	marker_begin((int)id);
	return (void *)sum;
}

int main(void)
{
	long i, k;

	for (i = 0; i < NR; i += 4) {
		pthread_t t[4];
		void *r;

		for (k = 0; k < 4; k++)
			check(!pthread_create(&t[k], NULL, thread_main, (void *)(i + k)));
		for (k = 0; k < 4; k++) {
			check(!pthread_join(t[k], &r));
			check_eq((long)r, 20 * (i + k));
		}
	}
	puts("10000 threads");
	return 0;
}
