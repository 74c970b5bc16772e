/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Fuzzes pb_analysis_check() with broken analysis files. The agent maps analysis files from the
 * cache into the traced program. Readers map analysis files of a data directory. So a file that
 * passes pb_analysis_check() must be safe for all code that uses it.
 */
#include <stdlib.h>
#include <string.h>

#include "driver.h"
#include "module/analysis/analyse.h"
#include "module/analysis/stages.h"
#include "seeds.h"
#include "use_analysis.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	/* pb_analysis_check() also checks the alignment; malloc aligns to 16 bytes */
	uint8_t *copy = malloc(size ? size : 1);

	if (size)
		memcpy(copy, data, size);
	if (!pb_analysis_check(copy, size))
		use_analysis((const struct pb_analysis *)copy);
	free(copy);
	return 0;
}

/* Changes a field of the header, a function, a recipe, or another table. */
size_t fuzz_mutate(uint8_t *data, size_t size, size_t max, unsigned seed)
{
	struct pb_analysis a;
	struct fuzz_rng r;
	size_t at;

	fuzz_rng_seed(&r, seed);
	if (size < sizeof(a))
		return size;
	memcpy(&a, data, sizeof(a));
	switch (fuzz_random(&r) % 8) {
	case 0:
		at = fuzz_below(&r, sizeof(a) / 4) * 4;
		break;
	case 1: case 2:
		at = a.funcs_offset + fuzz_below(&r, a.nr_funcs) * sizeof(struct pb_func) +
		     fuzz_below(&r, sizeof(struct pb_func));
		break;
	case 3:
		at = a.nops_offset + fuzz_below(&r, a.nr_nops) * sizeof(struct pb_nop) +
		     fuzz_below(&r, sizeof(struct pb_nop));
		break;
	case 4:
		at = a.recipes_offset + fuzz_below(&r, a.recipes_size);
		break;
	case 5: case 6:
		/* a byte of any table from the windows to the inexits; these tables are adjacent */
		at = a.windows_offset +
		     fuzz_below(&r, a.inexits_offset + a.nr_funcs - a.windows_offset + 1);
		break;
	default:
		at = fuzz_below(&r, size);
	}
	fuzz_poke(&r, data, size, at);
	return size;
}

static void seed_file(const char *path, const uint8_t *data, size_t size)
{
	static const unsigned flags[] = { PB_MODULE_ALL_SITES,
					  PB_MODULE_ALL_SITES | PB_MODULE_RETURNS };

	for (unsigned i = 0; i < 2; i++) {
		uint8_t *copy = malloc(size), *blob;
		size_t blob_size;
		const char *why;

		memcpy(copy, data, size);
		if (pb_analyse_memory(copy, size, path, flags[i], &blob, &blob_size, &why))
			return;
		fuzz_seed(blob, blob_size);
		free(blob);
	}
}

void fuzz_seeds(void)
{
	fuzz_each_elf(100000, seed_file);
}
