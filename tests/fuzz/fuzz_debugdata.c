/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Fuzzes the reader of .gnu_debugdata, an xz stream that contains an ELF file of symbols. If the
 * input's first byte is 0xfd, the input is the xz stream itself. Otherwise the input is the ELF
 * file, and the fuzzer packs it as packagers do. No ELF file begins with 0xfd.
 */
#include <lzma.h>
#include <stdlib.h>
#include <string.h>

#include "driver.h"
#include "mini_elf.h"
#include "module/analysis/stages.h"
#include "seeds.h"

static uint8_t *pack(const uint8_t *data, size_t size, size_t *packed)
{
	size_t room = lzma_stream_buffer_bound(size);
	uint8_t *v = malloc(room + size);

	*packed = 0;
	if (size && data[0] == 0xfd) {
		memcpy(v, data, size);
		*packed = size;
	} else {
		FUZZ_CHECK(lzma_easy_buffer_encode(0, LZMA_CHECK_CRC32, NULL, data, size, v, packed,
						   room) == LZMA_OK);
	}
	return v;
}

static void check_candidates(const struct pb_an *an)
{
	const struct pb_range *r = &an->ranges.v[0];

	for (size_t i = 0; i < an->cands.n; i++) {
		const struct pb_cand *c = &an->cands.v[i];

		FUZZ_CHECK(c->addr >= r->addr && c->addr - r->addr < r->size);
		FUZZ_CHECK(c->size <= r->size - (c->addr - r->addr));
		FUZZ_CHECK(c->len && strnlen(c->name, c->len) == c->len);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct pb_an an = { .path = "fuzz", .debug_fd = -1 };
	size_t packed_size, file_size;
	uint8_t *packed = pack(data, size, &packed_size);
	uint8_t *file = mini_elf(".gnu_debugdata", packed, packed_size, &file_size);
	const char *why;

	free(packed);
	FUZZ_CHECK(!pb_elf_open_memory(&an.elf, file, file_size, false, &why));
	FUZZ_CHECK(!pb_ranges_read(&an, &why));
	pb_debug_files_open(&an);
	FUZZ_CHECK(an.debug_fd < 0);
	FUZZ_CHECK(!pb_symbols_read(&an, &why));
	check_candidates(&an);
	pb_vec_free(&an.cands);
	pb_vec_free(&an.labels);
	free(an.ranges.v[0].reached);
	free(an.ranges.v[0].called);
	pb_vec_free(&an.ranges);
	for (unsigned i = 0; i < an.nr_debug; i++)
		pb_elf_close(&an.debug[i]);
	pb_elf_close(&an.elf);
	return 0;
}

/* Adds a seed whose symbols have addresses in the code. */
static void seed_symbols(void)
{
	static const Elf64_Sym sym[] = {
		{ 0 },
		{ 1, ELF64_ST_INFO(STB_GLOBAL, STT_FUNC), 0, 1, MINI_CODE, 16 },
		{ 3, ELF64_ST_INFO(STB_LOCAL, STT_FUNC), 0, 1, MINI_CODE + 16, 0 },
		{ 5, ELF64_ST_INFO(STB_LOCAL, STT_NOTYPE), 0, 1, MINI_CODE + 32, 0 },
		{ 7, ELF64_ST_INFO(STB_GLOBAL, STT_GNU_IFUNC), 0, 1, MINI_CODE + 48, 99999 },
	};
	static const char names[] = "\0a\0b\0c\0d@@V";
	uint8_t both[sizeof(sym) + sizeof(names)];
	Elf64_Ehdr eh;
	Elf64_Shdr sh;
	size_t size;
	uint8_t *file;

	memcpy(both, sym, sizeof(sym));
	memcpy(both + sizeof(sym), names, sizeof(names));
	file = mini_elf(".symtab", both, sizeof(both), &size);
	memcpy(&eh, file, sizeof(eh));
	/* section 2 is the symbol table. Section 1 becomes the string table, whose bytes follow the
	 * symbols */
	memcpy(&sh, file + eh.e_shoff + 2 * sizeof(sh), sizeof(sh));
	sh.sh_type = SHT_SYMTAB;
	sh.sh_size = sizeof(sym);
	sh.sh_link = 1;
	memcpy(file + eh.e_shoff + 2 * sizeof(sh), &sh, sizeof(sh));
	sh.sh_type = SHT_STRTAB;
	sh.sh_offset += sizeof(sym);
	sh.sh_size = sizeof(names);
	memcpy(file + eh.e_shoff + sizeof(sh), &sh, sizeof(sh));
	fuzz_seed(file, size);
	free(file);
}

static void seed_file(const char *path, const uint8_t *data, size_t size)
{
	size_t packed;
	uint8_t *v = pack(data, size, &packed);

	fuzz_seed(data, size);
	fuzz_seed(v, packed);
	free(v);
}

void fuzz_seeds(void)
{
	seed_symbols();
	fuzz_each_elf(40000, seed_file);
}
