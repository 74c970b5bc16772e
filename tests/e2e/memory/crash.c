/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Dies three calls deep: by a fault or, if it has an argument, by abort(). First it prints how many
 * kB of its memory a core file would hold. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A core file has only mappings without the flag "dd" (don't dump). Of these mappings, unlinked
 * shared memory counts as a whole. If a page of a private mapping was written, all resident pages
 * of the mapping count. */
static void print_dumped(void)
{
	char line[4096], perms[8], path[4096] = "";
	unsigned long lo, hi, from, size = 0, rss = 0, anonymous = 0, sum = 0;
	int shared = 0;
	FILE *f = fopen("/proc/self/smaps", "r");

	while (f && fgets(line, sizeof(line), f)) {
		if (sscanf(line, "%lx-%lx %7s %lx", &lo, &hi, perms, &from) == 4) {
			shared = perms[3] == 's';
			size = (hi - lo) / 1024;
			strcpy(path, line);
		} else if (sscanf(line, "Rss: %lu", &rss) == 1 ||
			   sscanf(line, "Anonymous: %lu", &anonymous) == 1) {
			continue;
		} else if (!strncmp(line, "VmFlags:", 8) && !strstr(line, " dd")) {
			if (shared && strstr(path, "(deleted)"))
				sum += size;
			else if (!shared && anonymous)
				sum += rss;
		}
	}
	printf("dumped %lu kB\n", sum);
	fflush(stdout);
}

__attribute__((noinline)) int inner(volatile int *p)
{
	if (p == (int *)8)
		abort();
	return *p;
}

__attribute__((noinline)) int middle(volatile int *p)
{
	return inner(p) + 1;
}

__attribute__((noinline)) int outer(volatile int *p)
{
	return middle(p) + 1;
}

int main(int argc, char **argv)
{
	print_dumped();
	return outer((int *)(argc > 1 ? 8L : 16L));
}
