/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Fuzzes the whole analysis with hostile ELF files. For any bytes, the analysis must end within
 * seconds. It must return either an error, or a usable analysis that passes pb_analysis_check().
 */
#include <elf.h>
#include <stdlib.h>
#include <string.h>

#include "base/clean_text.h"
#include "driver.h"
#include "module/analysis/analyse.h"
#include "module/analysis/stages.h"
#include "seeds.h"
#include "use_analysis.h"

/* Checks that all names are printable, since views write them to terminals. */
static void check_names(const struct pb_analysis *a)
{
	for (uint32_t i = 0; i < a->nr_funcs; i++)
		FUZZ_CHECK(pb_text_printable(pb_func_name(a, &pb_analysis_funcs(a)[i])));
	FUZZ_CHECK(pb_text_printable(pb_analysis_string(a, a->soname)));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint8_t *copy = malloc(size ? size : 1), *blob;
	size_t blob_size;
	const char *why = NULL;

	if (size)
		memcpy(copy, data, size);
	if (pb_analyse_memory(copy, size, "fuzz", size % 2 | (size & 2 ? PB_MODULE_RETURNS : 0),
			      &blob, &blob_size, &why)) {
		FUZZ_CHECK(why && !strstr(why, "inconsistent"));
		return 0;
	}
	FUZZ_CHECK(!pb_analysis_check(blob, blob_size));
	use_analysis((const struct pb_analysis *)blob);
	check_names((const struct pb_analysis *)blob);
	free(blob);
	return 0;
}

/* Returns an offset in the first 4096 bytes of a random section. */
static size_t in_section(struct fuzz_rng *r, const uint8_t *v, size_t size, const Elf64_Ehdr *eh)
{
	uint64_t at = eh->e_shoff + fuzz_below(r, eh->e_shnum) * sizeof(Elf64_Shdr);
	Elf64_Shdr sh;

	if (at > size || size - at < sizeof(sh))
		return fuzz_below(r, size);
	memcpy(&sh, v + at, sizeof(sh));
	return (sh.sh_offset + fuzz_random(r) % (sh.sh_size % 4096 + 1)) % size;
}

/* Returns an offset, mostly at a place where changes matter: in the ELF header, a program or
 * section header, or at the start of a section. */
static size_t somewhere(struct fuzz_rng *r, const uint8_t *v, size_t size)
{
	Elf64_Ehdr eh;

	if (size < sizeof(eh))
		return fuzz_below(r, size);
	memcpy(&eh, v, sizeof(eh));
	switch (fuzz_random(r) % 6) {
	case 0:
		return fuzz_below(r, sizeof(eh));
	case 1:
		return (eh.e_phoff + fuzz_below(r, eh.e_phnum * sizeof(Elf64_Phdr) + 1)) % size;
	case 2:
		return (eh.e_shoff + fuzz_below(r, eh.e_shnum * sizeof(Elf64_Shdr) + 1)) % size;
	case 3: case 4:
		return in_section(r, v, size, &eh);
	default:
		return fuzz_below(r, size);
	}
}

/* Finds the first section that may be .eh_frame: it begins with a CIE. */
static bool find_cie(const uint8_t *v, size_t size, uint64_t *start, uint64_t *end)
{
	Elf64_Ehdr eh;
	Elf64_Shdr sh;

	memcpy(&eh, v, sizeof(eh));
	for (uint64_t i = 0; i < eh.e_shnum; i++) {
		uint64_t at = eh.e_shoff + i * sizeof(sh);
		uint32_t head[2];

		if (at > size || size - at < sizeof(sh))
			return false;
		memcpy(&sh, v + at, sizeof(sh));
		if (sh.sh_type == SHT_NOBITS || sh.sh_offset > size || sh.sh_size < 16 ||
		    sh.sh_size > size - sh.sh_offset)
			continue;
		memcpy(head, v + sh.sh_offset, sizeof(head));
		*start = sh.sh_offset;
		*end = sh.sh_offset + sh.sh_size;
		if (head[0] >= 8 && head[0] < 64 && !head[1])
			return true;
	}
	return false;
}

/* Changes where the code of some FDEs begins, or its length. The code then often begins outside all
 * code, and ends where it ended before. */
static void move_fdes(struct fuzz_rng *r, uint8_t *v, size_t size)
{
	uint64_t at, end;
	uint32_t len, code[2], by;

	if (size < sizeof(Elf64_Ehdr) || !find_cie(v, size, &at, &end))
		return;
	for (; end - at >= 16; at += 4 + (uint64_t)len) {
		memcpy(&len, v + at, sizeof(len));
		/* after the record's length and the CIE's offset */
		if (!fuzz_below(r, 16))
			fuzz_poke(r, v, size, at + 8 + fuzz_below(r, 2) * 4);
		if (!fuzz_below(r, 8)) {
			memcpy(code, v + at + 8, sizeof(code));
			by = (uint32_t)1 << fuzz_below(r, 20);
			code[0] -= by;
			code[1] += by;
			memcpy(v + at + 8, code, sizeof(code));
		}
		if (len > end - at - 4)
			return;
	}
}

size_t fuzz_mutate(uint8_t *data, size_t size, size_t max, unsigned seed)
{
	struct fuzz_rng r;

	fuzz_rng_seed(&r, seed);
	if (!fuzz_below(&r, 8))
		move_fdes(&r, data, size);
	for (unsigned n = 1 + (unsigned)fuzz_below(&r, 4); n && size; n--)
		fuzz_poke(&r, data, size, somewhere(&r, data, size));
	return fuzz_random(&r) % 64 ? size : fuzz_below(&r, size + 1);
}

static void seed_file(const char *path, const uint8_t *data, size_t size)
{
	fuzz_seed(data, size);
}

void fuzz_seeds(void)
{
	fuzz_each_elf(130000, seed_file);
}
