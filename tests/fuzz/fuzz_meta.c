/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Runs every view on a data directory with a broken meta file. The meta file has the session, the
 * clocks, images, modules, threads and notes. The directory's other files are intact, so that every
 * view uses the meta file's data.
 */
#include <stdlib.h>
#include <string.h>

#include "../unit/recordings/gen_data.h"
#include "abi/messages.h"
#include "base/base.h"
#include "driver.h"
#include "views.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct fuzz_file files[FUZZ_NR_FILES];

	if (!files[FUZZ_CHUNKS].data)
		fuzz_scenario("threads", 1, files);
	struct fuzz_file broken[FUZZ_NR_FILES] = {
		files[FUZZ_CHUNKS], { data, size }, files[FUZZ_MODULE],
	};
	fuzz_run_views(fuzz_store(broken));
	return 0;
}

/* The length of each record type, without the text that may follow. */
static const uint32_t body[] = {
	[PB_META_CLOCK] = sizeof(struct pb_meta_clock),
	[PB_META_IMAGE] = sizeof(struct pb_meta_image),
	[PB_META_MODULE] = sizeof(struct pb_meta_module),
	[PB_META_MODULE_GONE] = sizeof(struct pb_meta_module),
	[PB_META_REFUSED] = sizeof(struct pb_meta_refused),
	[PB_META_READY] = sizeof(struct pb_msg_ready),
	[PB_META_THREAD] = sizeof(struct pb_ring_thread),
	[PB_META_EXIT] = sizeof(struct pb_meta_exit),
	[PB_META_END] = sizeof(struct pb_meta_end),
	[PB_META_DISCARDED] = sizeof(struct pb_meta_discarded),
};

/* Inserts a new record of a random type. Most of its numbers are small. */
static size_t add_record(struct fuzz_rng *r, uint8_t *data, size_t size, size_t max, size_t at)
{
	uint32_t type = (uint32_t)fuzz_random(r) % (PB_META_DISCARDED + 2);
	uint32_t len = type < pb_array_size(body) ? body[type] : 0;
	struct pb_meta m = { type, len + (uint32_t)fuzz_below(r, 40) };
	size_t whole = sizeof(m) + pb_align_up((size_t)m.len, 8);

	if (whole > max - size)
		return size;
	memmove(data + at + whole, data + at, size - at);
	memcpy(data + at, &m, sizeof(m));
	for (size_t i = sizeof(m); i < whole; i += 4) {
		uint32_t v = (uint32_t)(fuzz_random(r) % 4 ? fuzz_below(r, 5) : fuzz_nasty(r));

		memcpy(data + at + i, &v, 4);
	}
	return size + whole;
}

size_t fuzz_mutate(uint8_t *data, size_t size, size_t max, unsigned seed)
{
	size_t at = sizeof(struct pb_data_header), skip;
	struct fuzz_rng r;
	struct pb_meta m = { 0 };

	fuzz_rng_seed(&r, seed);
	if (size < at)
		return size;
	/* go to a random record */
	for (skip = fuzz_below(&r, 16); skip && size - at >= sizeof(m); skip--) {
		memcpy(&m, data + at, sizeof(m));
		if (m.len > size - at - sizeof(m) - 8)
			break;
		at += sizeof(m) + pb_align_up((size_t)m.len, 8);
		if (at > size)
			return size;
	}
	if (fuzz_random(&r) % 4 == 0)
		return add_record(&r, data, size, max, at);
	if (size > at)
		fuzz_poke(&r, data, size, at + 4 * fuzz_below(&r, 2 + m.len / 4));
	return size;
}

void fuzz_seeds(void)
{
	for (int i = 0; gen_scenarios[i]; i++) {
		struct fuzz_file files[FUZZ_NR_FILES];

		fuzz_scenario(gen_scenarios[i], 1, files);
		fuzz_seed(files[FUZZ_META].data, files[FUZZ_META].size);
		for (int k = 0; k < FUZZ_NR_FILES; k++)
			free((void *)files[k].data);
	}
}
