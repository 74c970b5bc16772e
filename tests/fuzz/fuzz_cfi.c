/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Fuzzes the reader of .eh_frame: reads the section, and up to ROWS rows of each FDE. */
#include <stdlib.h>
#include <string.h>

#include "driver.h"
#include "mini_elf.h"
#include "module/elf/cfi.h"
#include "module/analysis/stages.h"
#include "seeds.h"

#define ROWS 64		/* the number of rows that are checked in one FDE */

static void walk(const struct pb_cfi *c, const struct pb_fde *f)
{
	struct pb_cfi_cursor cur;
	uint64_t step = (f->end - f->start) / ROWS + 1;

	FUZZ_CHECK(f->cie < c->cies.n && f->start && f->start < f->end);
	FUZZ_CHECK(f->insns <= f->insns_end);
	pb_cfi_start(&cur, c, f);
	for (uint64_t at = f->start; at < f->end; at += step) {
		pb_cfi_advance(&cur, at);
		FUZZ_CHECK(cur.loc > at);
		FUZZ_CHECK(cur.p <= cur.end);
		FUZZ_CHECK(cur.row.cfa_reg < 16 || cur.row.cfa_reg == PB_REG_NONE);
		if (at == f->start)
			FUZZ_CHECK(f->entry ==
				   (cur.row.cfa_reg == PB_REG_RSP && cur.row.cfa_off == 8));
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct pb_cfi c;
	struct pb_elf e;
	const char *why;
	size_t file_size;
	uint8_t *file = mini_elf(".eh_frame", data, size, &file_size);

	FUZZ_CHECK(!pb_elf_open_memory(&e, file, file_size, false, &why));
	FUZZ_CHECK(pb_cfi_read(&c, &e));
	for (size_t i = 0; i < c.fdes.n; i++) {
		long found = pb_cfi_find(&c, c.fdes.v[i].start);

		walk(&c, &c.fdes.v[i]);
		FUZZ_CHECK(!i || c.fdes.v[i - 1].start <= c.fdes.v[i].start);
		FUZZ_CHECK(found >= (long)i && c.fdes.v[found].start == c.fdes.v[i].start);
	}
	FUZZ_CHECK(pb_cfi_find(&c, 0) < 0);
	pb_cfi_free(&c);
	pb_elf_close(&e);
	return 0;
}

void fuzz_seeds(void)
{
	fuzz_seed_sections(".eh_frame");
}
