/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Counts __cyg_profile_func_enter by function; preloaded into the victim.
 * Written to $CYG_COUNT at the end: "link-time address, count" lines.
 */
#define _GNU_SOURCE
#include <link.h>
#include <stdio.h>
#include <stdlib.h>

#define SLOTS 4096
static struct { void *fn; long count; } table[SLOTS];

void __cyg_profile_func_enter(void *fn, void *caller);
void __cyg_profile_func_exit(void *fn, void *caller);

void __cyg_profile_func_enter(void *fn, void *caller)
{
	unsigned long i = ((unsigned long)fn >> 2) % SLOTS;

	while (table[i].fn && table[i].fn != fn)
		i = (i + 1) % SLOTS;
	table[i].fn = fn;
	table[i].count++;
}

void __cyg_profile_func_exit(void *fn, void *caller) { }

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
	for (i = 0; i < SLOTS; i++)
		if (table[i].fn)
			fprintf(f, "%lx %ld\n", (unsigned long)table[i].fn - bias, table[i].count);
	fclose(f);
}
