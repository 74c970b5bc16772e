/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Finds out how much memory an object's maps may take at once when they are made. */
#include <stdio.h>

#include "bpfload/load_make.h"

#define MEMORY_MAX	(1ull << 32)	/* enough for the largest ring buffer, which takes 2 GB,
					 * and other maps */

static uint64_t available(void)
{
	FILE *f = fopen("/proc/meminfo", "re");
	uint64_t kb, bytes = MEMORY_MAX;
	char line[128];

	while (f && fgets(line, sizeof(line), f))
		if (sscanf(line, "MemAvailable: %lu kB", &kb) == 1)
			bytes = kb << 10;
	if (f)
		fclose(f);
	return bytes;
}

uint64_t pb_bpf_make_memory(uint64_t memory)
{
	if (!memory)
		memory = available();
	return memory < MEMORY_MAX ? memory : MEMORY_MAX;
}
