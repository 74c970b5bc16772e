/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Makes calls whose count, arguments, results and callers are known. The program counts its calls
 * and prints a line "WHAT KEY COUNT" for each count. For each call of say(), it prints the line
 * "say NUMBER TEXT".
 *
 *   calls THREADS CALLS
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "../own.h"

static unsigned long sizes[32], rests[97], kinds[3][32];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static long calls;

ALONE unsigned work(unsigned size, unsigned kind)
{
	return size % 97;
}

ALONE int nap(unsigned us)
{
	struct timespec t = { .tv_nsec = us * 1000l };

	return nanosleep(&t, NULL);
}

ALONE size_t say(const char *text, unsigned number)
{
	return strlen(text) + number;
}

/* leaf() calls nothing, but has a frame, so it begins with `push %rbp`. At this instruction, the
 * frame pointer is still the caller's. If Linux 6.11 or later finds this instruction at a probe, it
 * takes the return address from the top of the stack. */
ALONE unsigned leaf(unsigned v)
{
	__asm__ volatile("" : : "r"(__builtin_frame_address(0)));
	return v * 3;
}

ALONE unsigned left(unsigned v)
{
	return leaf(v) + 1;
}

ALONE unsigned right(unsigned v)
{
	return leaf(v) + 2;
}

ALONE unsigned both(unsigned v)
{
	unsigned a = left(v);

	return a + right(v) + 3;
}

static unsigned bucket(unsigned long v)
{
	return v ? 63 - (unsigned)__builtin_clzl(v) : 0;
}

static void *thread(void *arg)
{
	unsigned long s[32] = { 0 }, r[97] = { 0 }, k[3][32] = { 0 };
	unsigned seed = (unsigned)(long)arg * 2654435761u;

	for (long i = 0; i < calls; i++) {
		unsigned size = (seed = seed * 1103515245 + 12345) >> i % 31,
			kind = (unsigned)i % 3;

		r[work(size, kind)]++;
		s[bucket(size)]++;
		k[kind][bucket(size)]++;
	}
	pthread_mutex_lock(&lock);
	for (int i = 0; i < 32; i++) {
		sizes[i] += s[i];
		for (int j = 0; j < 3; j++)
			kinds[j][i] += k[j][i];
	}
	for (int i = 0; i < 97; i++)
		rests[i] += r[i];
	pthread_mutex_unlock(&lock);
	return NULL;
}

static void sleepers(void)
{
	static const unsigned us[] = { 150, 600, 2500, 9000 };

	for (unsigned i = 0; i < 4; i++) {
		for (unsigned k = 0; k < 12 - 3 * i; k++)
			nap(us[i]);
		printf("nap %u %u\n", us[i], 12 - 3 * i);
	}
}

ALONE void talkers(void)
{
	static const char *const texts[] = { "", "a", "SELECT 1", "caf\xc3\xa9",
		"a text of more than sixty-three characters, of which the last ones are left out "
		"by the tool" };
	size_t total = 0;

	for (unsigned i = 0; i < 5; i++) {
		total += say(texts[i], i);
		printf("say %u %s\n", i, texts[i]);
	}
	printf("said total %zu\n", total);
}

ALONE unsigned walks(void)
{
	unsigned sum = 0;

	for (unsigned i = 0; i < 30; i++)
		sum += left(i);
	for (unsigned i = 0; i < 12; i++)
		sum += right(i);
	for (unsigned i = 0; i < 5; i++)
		sum += both(i);
	return sum;
}

int main(int argc, char **argv)
{
	int threads = argc > 1 ? atoi(argv[1]) : 2;
	pthread_t id[64];

	own_output();
	calls = argc > 2 ? atol(argv[2]) : 1000;
	for (int i = 0; i < threads && i < 64; i++)
		pthread_create(&id[i], NULL, thread, (void *)(i + 1l));
	for (int i = 0; i < threads && i < 64; i++)
		pthread_join(id[i], NULL);
	for (int i = 0; i < 32; i++)
		printf("size %d %lu\nkind0 %d %lu\nkind1 %d %lu\nkind2 %d %lu\n", i, sizes[i], i,
		       kinds[0][i], i, kinds[1][i], i, kinds[2][i]);
	for (int i = 0; i < 97; i++)
		printf("rest %d %lu\n", i, rests[i]);
	sleepers();
	talkers();
	printf("sum of %u\n", walks());
	return 3;
}
