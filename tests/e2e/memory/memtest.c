/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Tests the program's writable anonymous memory, including the thread's TLS, as Redis' crash report
 * does. Each part is overwritten with patterns, compared and restored. The stack isn't tested.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PART (64 << 10)
#define MOST 512

static unsigned long regions[MOST][2];

__attribute__((noinline)) int memtest_address(unsigned long *p, unsigned long n)
{
	int bad = 0;

	for (unsigned long i = 0; i < n; i++)
		*(volatile unsigned long *)&p[i] = (unsigned long)&p[i];
	for (unsigned long i = 0; i < n; i++)
		bad += *(volatile unsigned long *)&p[i] != (unsigned long)&p[i];
	return bad;
}

__attribute__((noinline)) void memtest_fill(unsigned long *p, unsigned long n, unsigned long v)
{
	for (unsigned long i = 0; i < n; i++)
		*(volatile unsigned long *)&p[i] = v;
}

__attribute__((noinline)) int memtest_compare(unsigned long *p, unsigned long n, unsigned long v)
{
	int bad = 0;

	for (unsigned long i = 0; i < n; i++)
		bad += *(volatile unsigned long *)&p[i] != v;
	return bad;
}

__attribute__((noinline)) void memtest_copy(unsigned long *to, const unsigned long *from,
					    unsigned long n)
{
	for (unsigned long i = 0; i < n; i++)
		*(volatile unsigned long *)&to[i] = from[i];
}

__attribute__((noinline, optimize("no-stack-protector")))
int memtest_part(unsigned long *p, unsigned long n)
{
	unsigned long saved[PART / 8], bad;

	memtest_copy(saved, p, n);
	bad = memtest_address(p, n);
	memtest_fill(p, n, 0);
	bad += memtest_compare(p, n, 0);
	memtest_fill(p, n, 0x5555555555555555);
	bad += memtest_compare(p, n, 0x5555555555555555);
	memtest_fill(p, n, ~0ul);
	bad += memtest_compare(p, n, ~0ul);
	memtest_copy(p, saved, n);
	return (int)bad;
}

__attribute__((noipa)) int work(int x)
{
	return x * 3 + 1;
}

int main(void)
{
	int n = 0, bad = 0, x = 0;
	char line[1024];
	FILE *f = fopen("/proc/self/maps", "r");

	while (fgets(line, sizeof(line), f))
		if (strstr(line, "rw") && strstr(line, "00:00") && !strstr(line, "stack") &&
		    n < MOST)
			n += sscanf(line, "%lx-%lx", &regions[n][0], &regions[n][1]) == 2;
	for (int i = 0; i < 1000; i++)
		x = work(x);
	for (int i = 0; i < n; i++) {
		for (unsigned long at = regions[i][0]; at < regions[i][1]; at += PART) {
			unsigned long left = regions[i][1] - at;

			/* the test itself uses regions[] */
			if (at < (unsigned long)(regions + MOST) &&
			    (unsigned long)regions < at + PART)
				continue;
			bad += memtest_part((unsigned long *)at, (left < PART ? left : PART) / 8);
		}
	}
	for (int i = 0; i < 1000; i++)
		x = work(x);
	printf("%d bad words, %d\n", bad, x);
	return bad != 0;
}
