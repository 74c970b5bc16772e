/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Four threads throw exceptions at the same time, at different depths.
 * @markers 20000 thread_main/one_throw
 * @slow none bpf-own
 */
#include <pthread.h>
#include "../hostile.h"

static KEEP long sink(long depth, long value)
{
	if (!depth)
		throw value;
	return opaque(sink(depth - 1, value)) + 1;
}

static KEEP void one_throw(long depth, long value)
{
	long got = -1;

	try {
		sink(depth, value);
	} catch (long v) {
		got = v;
	}
	marker_begin(depth);
	check_eq(got, value);
}

static KEEP void *thread_main(void *arg)
{
	long id = (long)arg;

	for (long i = 0; i < 5000; i++)
		one_throw((i * 7 + id) % 40, id * 10000 + i);
	return arg;
}

int main()
{
	pthread_t t[4];

	for (long i = 0; i < 4; i++)
		check(!pthread_create(&t[i], nullptr, thread_main, (void *)i));
	for (long i = 0; i < 4; i++) {
		void *r;

		check(!pthread_join(t[i], &r));
		check_eq((long)r, i);
	}
	puts("4 threads, 20000 exceptions");
	return 0;
}
