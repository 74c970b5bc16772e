/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Makes requests. A request begins with a call of submit() and ends with a call of complete().
 * Requests don't end in the order in which they began. The program also makes queries, pretends to
 * collect garbage on several threads, and runs a state machine. It prints the counts of each part.
 *
 *   requests ROUNDS
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "../own.h"

/* in requests.h, the fields have another order, so tools must find them by CO-RE */
struct ticket {
	unsigned long id;
	struct {
		unsigned short op;
		unsigned char urgent;
	} what;
	struct ticket *next;
	unsigned bytes;
	char name[12];
};

ALONE int submit(struct ticket *r)
{
	return (int)r->bytes;
}

ALONE int complete(struct ticket *r, int error)
{
	return error;
}

ALONE int query(const char *text, unsigned us)
{
	struct timespec t = { .tv_nsec = us * 1000l };

	return us ? nanosleep(&t, NULL) : (int)strlen(text);
}

ALONE void gc_begin(int generation)
{
	__asm__ volatile("");
}

ALONE void gc_end(int generation, unsigned freed)
{
	__asm__ volatile("");
}

ALONE int step(int s)
{
	return (s * 7 + 1) & 3;
}

static void naps(unsigned us)
{
	struct timespec t = { .tv_nsec = us * 1000l };

	nanosleep(&t, NULL);
}

static void io(int rounds)
{
	unsigned n[3][2] = { 0 }, errors = 0;
	unsigned long bytes[3] = { 0 };
	struct ticket *r = calloc(8, sizeof(*r));

	for (int i = 0; i < rounds; i++) {
		for (int k = 0; k < 8; k++) {
			r[k] = (struct ticket){ .id = (unsigned long)(i * 8 + k),
				.next = k ? &r[k - 1] : NULL, .bytes = (unsigned)(512 << k),
				.what.op = (unsigned short)((i + k) % 3),
				.what.urgent = (i * k) % 5 == 1 };
			snprintf(r[k].name, sizeof(r[k].name), "r%d", k);
			submit(&r[k]);
			n[r[k].what.op][r[k].what.urgent]++;
			bytes[r[k].what.op] += r[k].bytes;
		}
		naps(300);
		for (int k = 7; k >= 0; k--)
			errors += complete(&r[(k * 3) & 7], k == 5 ? -5 : 0) != 0;
	}
	for (int i = 0; i < 3; i++)
		printf("io%d 0 %u\nio%d 1 %u\nbytes %d %lu\n", i, n[i][0], i, n[i][1], i, bytes[i]);
	printf("errors all %u\nsize of %zu\n", errors, sizeof(*r));
	free(r);
}

static void queries(int rounds)
{
	static const char *const texts[] = {
		"SELECT a FROM t", "UPDATE t SET a = 1", "DELETE FROM t", "SELECT SLEEP()" };

	for (int i = 0; i < rounds; i++)
		for (unsigned k = 0; k < 4; k++)
			query(texts[k], k == 3 ? 12000 : 0);
	printf("slow all %d\nquick all %d\n", rounds, 3 * rounds);
}

static void *collector(void *arg)
{
	int rounds = (int)(long)arg;

	for (int i = 0; i < rounds; i++) {
		gc_begin(i % 3);
		if (i % 3 == 2)
			naps(3000);
		gc_end(i % 3, (unsigned)i * 10);
	}
	return NULL;
}

static void collections(int rounds)
{
	pthread_t id[3];

	for (int i = 0; i < 3; i++)
		pthread_create(&id[i], NULL, collector, (void *)(long)rounds);
	for (int i = 0; i < 3; i++)
		pthread_join(id[i], NULL);
	for (int g = 0; g < 3; g++)
		printf("gc %d %d\n", g, 3 * ((rounds + 2 - g) / 3));
}

static void states(int rounds)
{
	unsigned n[4] = { 0 };

	for (int i = 0, s = 0; i < 100 * rounds; i++) {
		n[s]++;
		s = (step(s) + i) & 3;
	}
	step(9);
	for (int i = 0; i < 4; i++)
		printf("state %d %u\n", i, n[i]);
}

int main(int argc, char **argv)
{
	int rounds = argc > 1 ? atoi(argv[1]) : 10;

	own_output();
	io(rounds);
	queries(rounds);
	collections(rounds);
	states(rounds);
	return 4;
}
