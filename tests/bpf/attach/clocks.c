/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Two threads call read_clocks() many times: clocks CALLS. Then main() forbids itself reading the
 * TSC, and calls read_frozen(). */
#include <pthread.h>
#include <stdlib.h>
#include <sys/prctl.h>

static int calls;

__attribute__((noinline, noclone)) long read_clocks(long thread)
{
	__asm__ volatile("" : "+r"(thread));
	return thread + 1;
}

__attribute__((noinline, noclone)) long read_frozen(long x)
{
	__asm__ volatile("" : "+r"(x));
	return x + 1;
}

static void *work(void *thread)
{
	for (int i = 0; i < calls; i++)
		read_clocks((long)thread);
	return NULL;
}

int main(int argc, char **argv)
{
	pthread_t t[2];

	calls = argc > 1 ? atoi(argv[1]) : 1;
	for (long i = 0; i < 2; i++)
		if (pthread_create(&t[i], NULL, work, (void *)i))
			return 2;
	for (int i = 0; i < 2; i++)
		pthread_join(t[i], NULL);
	if (prctl(PR_SET_TSC, PR_TSC_SIGSEGV))
		return 3;
	read_frozen(1);
	return 0;
}
