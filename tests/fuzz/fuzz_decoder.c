/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Runs every view on a broken data directory: broken chunks, and broken files to which the chunks
 * refer. A view may report that it can't read a file. No view may crash or hang. If the files are
 * small, no view may need much memory.
 *
 * The input is three files: chunks, meta and a module. Each file's length precedes the file.
 */
#include <stdlib.h>
#include <string.h>

#include "../unit/recordings/gen_data.h"
#include "driver.h"
#include "views.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fuzz_file files[FUZZ_NR_FILES];
	struct fuzz_input in = { data, size };

	for (int i = 0; i < FUZZ_NR_FILES; i++)
		files[i].data = fuzz_take_block(&in, 4, &files[i].size);
	fuzz_run_views(fuzz_store(files));
	return 0;
}

/* Returns a random word: a record, a time, or any number. */
static uint64_t interesting(struct fuzz_rng *r)
{
	uint64_t site = fuzz_random(r) % 12, time = GEN_START + fuzz_random(r) % 100000;

	switch (fuzz_random(r) % 8) {
	case 0:
		return fuzz_nasty(r);
	case 1:
		return time << PB_TIME_SHIFT | site << PB_SITE_SHIFT | PB_TAG_ENTRY;
	case 2:
		return time << PB_TIME_SHIFT | site << PB_SITE_SHIFT | PB_TAG_EXIT;
	case 3:
		return time << PB_LEAF_SHIFT | fuzz_random(r) % 5000 << PB_DUR_SHIFT |
		       site << PB_SITE_SHIFT | PB_TAG_LEAF;
	case 4: case 5:
		return pb_ext_word((enum pb_ext_type)(fuzz_random(r) % (PB_NR_EXT_TYPES + 1)),
				   (unsigned)(fuzz_random(r) % 5), (uint32_t)site,
				   time & 0xfffffff);
	case 6:
		return time;
	default:
		return fuzz_random(r);
	}
}

/* Makes one change in f, and returns the new length. f has room for 2 * len bytes. */
static size_t mutate_file(struct fuzz_rng *r, uint8_t *f, size_t len)
{
	size_t at = fuzz_below(r, len) & ~(size_t)7, n;
	uint64_t word = interesting(r);

	if (len < 16)
		return len;
	switch (fuzz_random(r) % 8) {
	case 0:		/* copy a piece to another place */
		n = fuzz_below(r, 512) & ~(size_t)7;
		if (at + n <= len && n < len)
			memmove(f + (fuzz_below(r, len - n) & ~(size_t)7), f + at, n);
		return len;
	case 1:		/* append a copy of the file's last part, so that chunks occur twice, and
			 * the stacks of open calls become deeper */
		n = fuzz_random(r) % 4 ? 0 : len - at;
		memcpy(f + len, f + at, n);
		return len + n;
	case 2:
		fuzz_poke(r, f, len, at + fuzz_random(r) % 2 * 4);
		return len;
	default:
		if (at + 8 <= len)
			memcpy(f + at, &word, 8);
		return len;
	}
}

static size_t pack(uint8_t *to, size_t max, const struct fuzz_file files[FUZZ_NR_FILES])
{
	size_t size = 0;

	for (int i = 0; i < FUZZ_NR_FILES; i++) {
		size_t room = max - size < 4 ? 0 : max - size - 4;
		uint32_t len = (uint32_t)(files[i].size < room ? files[i].size : room);

		if (max - size < 4)
			break;
		memcpy(to + size, &len, 4);
		memcpy(to + size + 4, files[i].data, len);
		size += 4 + len;
	}
	return size;
}

size_t fuzz_mutate(uint8_t *data, size_t size, size_t max, unsigned seed)
{
	struct fuzz_file files[FUZZ_NR_FILES];
	struct fuzz_input in = { data, size };
	struct fuzz_rng r;

	fuzz_rng_seed(&r, seed);
	/* choose the chunks file most of the time */
	size_t target = fuzz_random(&r) % 4 ? FUZZ_CHUNKS : fuzz_below(&r, FUZZ_NR_FILES);

	for (size_t i = 0; i < FUZZ_NR_FILES; i++) {
		const uint8_t *p = fuzz_take_block(&in, 4, &files[i].size);
		uint8_t *copy = malloc(2 * files[i].size + 1);

		memcpy(copy, p, files[i].size);
		files[i].data = copy;
		if (i == target)
			files[i].size = mutate_file(&r, copy, files[i].size);
	}
	size = pack(data, max, files);
	for (size_t i = 0; i < FUZZ_NR_FILES; i++)
		free((void *)files[i].data);
	return size;
}

void fuzz_seeds(void)
{
	uint8_t *all = malloc(FUZZ_INPUT_MAX);

	for (int i = 0; gen_scenarios[i]; i++) {
		struct fuzz_file files[FUZZ_NR_FILES];

		fuzz_scenario(gen_scenarios[i], 200, files);
		fuzz_seed(all, pack(all, FUZZ_INPUT_MAX, files));
		for (int k = 0; k < FUZZ_NR_FILES; k++)
			free((void *)files[k].data);
	}
	free(all);
}
