/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A library that is preloaded into victim.c's program. It counts the calls of
 * __cyg_profile_func_enter by function and by caller. The caller is the last function that was
 * entered and not left. A jump may leave functions without a call of __cyg_profile_func_exit. Such
 * functions count as left when the function that called them is left. At the end, the library
 * writes lines of the form "caller function count" to $CYG_COUNT. Functions are given by their
 * link-time addresses. A caller of 0 means that there is no caller.
 */
#define _GNU_SOURCE
#include <link.h>
#include <stdio.h>
#include <stdlib.h>

#define EDGES 4096
#define DEPTH 4096

struct edge {
	void *caller, *fn;
	long count;
};

static struct edge edges[EDGES];
static void *open_calls[DEPTH];
static unsigned long depth;

void __cyg_profile_func_enter(void *fn, void *call_site);
void __cyg_profile_func_exit(void *fn, void *call_site);

static void count(void *caller, void *fn)
{
	unsigned long i = ((unsigned long)fn * 31 + (unsigned long)caller) >> 2;

	/* the loop ends, since edges[] has more places than there are edges */
	while (edges[i % EDGES].fn &&
	       (edges[i % EDGES].fn != fn || edges[i % EDGES].caller != caller))
		i++;
	edges[i % EDGES].fn = fn;
	edges[i % EDGES].caller = caller;
	edges[i % EDGES].count++;
}

void __cyg_profile_func_enter(void *fn, void *call_site)
{
	count(depth ? open_calls[depth - 1] : NULL, fn);
	if (depth == DEPTH)
		abort();
	open_calls[depth++] = fn;
}

void __cyg_profile_func_exit(void *fn, void *call_site)
{
	while (depth && open_calls[--depth] != fn)
		;
}

static int first_module(struct dl_phdr_info *info, size_t size, void *bias)
{
	*(unsigned long *)bias = info->dlpi_addr;
	return 1;
}

__attribute__((destructor)) static void write_counts(void)
{
	const char *path = getenv("CYG_COUNT");
	FILE *f = path ? fopen(path, "w") : NULL;
	unsigned long bias = 0, i;

	if (!f)
		return;
	dl_iterate_phdr(first_module, &bias);
	for (i = 0; i < EDGES; i++)
		if (edges[i].fn)
			fprintf(f, "%lx %lx %ld\n",
				edges[i].caller ? (unsigned long)edges[i].caller - bias : 0,
				(unsigned long)edges[i].fn - bias, edges[i].count);
	fclose(f);
}
