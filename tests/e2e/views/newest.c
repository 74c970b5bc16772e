// SPDX-License-Identifier: LGPL-2.1-or-later
/* newest N: a second thread makes N calls, which are most of the calls, and then 100 calls of
 * at_last(). After that, the main thread makes 100 calls of at_last(), in a chunk that it opened
 * long before. */
#include <pthread.h>
#include <stdlib.h>

__attribute__((noipa)) static int often(int x) { return x + 1; }
__attribute__((noipa)) static int at_first(int x) { return x + 2; }
__attribute__((noipa)) static int at_last(int x) { return x + 3; }

static int some_more(int x)
{
	for (int i = 0; i < 100; i++)
		x = at_last(x);
	return x;
}

static void *work(void *arg)
{
	int x = 0;

	for (long n = *(long *)arg; n--;)
		x = often(x);
	return some_more(x) ? NULL : arg;
}

int main(int argc, char **argv)
{
	long n = atol(argv[1]);
	int x = at_first(0);
	pthread_t t;

	if (pthread_create(&t, NULL, work, &n) || pthread_join(t, NULL))
		return 1;
	return some_more(x) < 0;
}
