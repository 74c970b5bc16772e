/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Fuzzes the reader of .gcc_except_table, the tables of landing pads. The input is the section. The
 * fuzzer reads a table at each of TABLES offsets in the section. */
#include <stdlib.h>
#include <string.h>

#include "driver.h"
#include "mini_elf.h"
#include "module/analysis/stages.h"
#include "seeds.h"

#define TABLES 8

static void check_marks(const struct pb_an *an)
{
	const struct pb_range *r = &an->ranges.v[0];

	/* no bit may be set for a byte after the range */
	for (uint64_t i = r->size; i < (r->size / 64 + 1) * 64; i++)
		FUZZ_CHECK(!pb_bit_test(r->reached, i));
	for (uint64_t i = 0; i < r->size; i++)
		FUZZ_CHECK(!pb_bit_test(r->called, i));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct pb_an an = { .path = "fuzz", .debug_fd = -1 };
	size_t file_size;
	uint8_t *file = mini_elf(".gcc_except_table", data, size, &file_size);
	const char *why;

	FUZZ_CHECK(!pb_elf_open_memory(&an.elf, file, file_size, false, &why));
	FUZZ_CHECK(!pb_ranges_read(&an, &why));
	FUZZ_CHECK(an.ranges.n == 1);
	for (unsigned i = 0; i < TABLES; i++) {
		struct pb_fde f = { .start = MINI_CODE + 64 * i, .end = MINI_CODE + 64 * i + 64,
				    .lsda = MINI_SECTION + size * i / TABLES };

		pb_vec_push(&an.cfi.fdes, f);
	}
	FUZZ_CHECK(!pb_lsda_read(&an, &why));
	check_marks(&an);
	free(an.ranges.v[0].reached);
	free(an.ranges.v[0].called);
	pb_vec_free(&an.ranges);
	pb_cfi_free(&an.cfi);
	pb_elf_close(&an.elf);
	return 0;
}

void fuzz_seeds(void)
{
	fuzz_seed_sections(".gcc_except_table");
}
