/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Hostile ELF files through the whole analysis. Whatever the bytes, it must
 * return, within seconds, with an error or with an analysis that passes its
 * check; under ASan and UBSan nothing may be reported or leaked.
 *
 *   fuzz_elf SEED ROUNDS FILE...    mutates the files; a failing round repeats
 *                                   with its seed (SEED+round) and one round
 *   clang -fsanitize=fuzzer ...     as a libFuzzer target (-DPB_LIBFUZZER)
 */
#include <elf.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "abi/analysis_access.h"
#include "abi/analysis_check.h"
#include "module/module_priv.h"

#define ROUND_SECONDS 20

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Reads everything that a consumer could. */
static uint64_t use(const struct pb_analysis *a)
{
	const struct pb_func *f = pb_analysis_funcs(a);
	uint64_t sum = 0;

	for (uint32_t i = 0; i < a->nr_funcs; i++) {
		sum += strlen(pb_func_name(a, &f[i])) + strlen(pb_analysis_string(a, f[i].aliases));
		sum += pb_analysis_find(a, f[i].addr) != NULL;
		if (f[i].refused)
			continue;
		const struct pb_recipe *r = pb_func_recipe(a, &f[i]);

		for (unsigned k = 0; k < r->window_len; k++)
			sum += pb_recipe_orig(r)[k] ^ pb_recipe_rest(r)[k];
		const struct pb_recipe *dug = pb_func_dug(a, &f[i]);

		for (unsigned k = 0; dug && k < dug->window_len; k++)
			sum += pb_recipe_orig(dug)[k] ^ pb_recipe_rest(dug)[k];
		for (unsigned k = 0; dug && k < dug->len; k++)
			sum += pb_recipe_code(dug)[k] + pb_recipe_orig_offset(dug, (uint8_t)k);
		for (unsigned k = 0; f[i].via && !dug && k < PB_JUMP_LEN; k++)
			sum += pb_recipe_hole(r)[k];
		sum += f[i].via && pb_analysis_hole_at(a, pb_func_hole(&f[i])) == &f[i];
		for (unsigned k = 0; k < r->len; k++)
			sum += pb_recipe_code(r)[k] + pb_recipe_orig_offset(r, (uint8_t)k);
	}
	return sum;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint8_t *copy = malloc(size ? size : 1), *blob;
	static volatile uint64_t sink;
	size_t blob_size;
	const char *why = NULL;

	if (!copy)
		return 0;
	memcpy(copy, data, size);
	if (pb_analyse_memory(copy, size, "fuzz", size % 2, &blob, &blob_size, &why)) {
		if (!why || strstr(why, "inconsistent"))
			abort();
		return 0;
	}
	if (pb_analysis_check(blob, blob_size))
		abort();
	sink += use((const struct pb_analysis *)blob);
	/* and a damaged analysis: the check must hold back what it must */
	for (size_t i = 0; i < 64 && size; i++) {
		size_t at = (data[i % size] * 2654435761u + i * 40503u) %
			    (i % 2 || blob_size < 256 ? blob_size : 256);

		blob[at] ^= (uint8_t)(1 + data[(i * 7) % size]);
		if (!pb_analysis_check(blob, blob_size))
			sink += use((const struct pb_analysis *)blob);
	}
	free(blob);
	return 0;
}

#ifndef PB_LIBFUZZER
static uint64_t state;

static uint64_t rnd(void)
{
	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return state;
}

struct file {
	uint8_t *v;
	size_t size;
};

static bool read_file(const char *path, struct file *f)
{
	int fd = open(path, O_RDONLY);
	struct stat st;
	size_t got = 0;

	if (fd < 0 || fstat(fd, &st))
		return false;
	f->size = (size_t)st.st_size;
	f->v = malloc(f->size + 1);
	while (f->v && got < f->size) {
		ssize_t n = read(fd, f->v + got, f->size - got);

		if (n <= 0)
			return false;
		got += (size_t)n;
	}
	close(fd);
	return f->v;
}

/* Where a change matters most: headers, tables of headers, and the contents of
 * the small sections that are parsed. */
static size_t somewhere(const uint8_t *v, size_t size)
{
	Elf64_Ehdr eh;
	Elf64_Shdr sh;

	if (size < sizeof(eh))
		return rnd() % size;
	memcpy(&eh, v, sizeof(eh));
	switch (rnd() % 6) {
	case 0:
		return rnd() % sizeof(eh);
	case 1:
		return (eh.e_phoff + rnd() % (eh.e_phnum * sizeof(Elf64_Phdr) + 1)) % size;
	case 2:
		return (eh.e_shoff + rnd() % (eh.e_shnum * sizeof(Elf64_Shdr) + 1)) % size;
	case 3: case 4:
		if (!eh.e_shnum || eh.e_shoff > size)
			break;
		uint64_t at = eh.e_shoff + rnd() % eh.e_shnum * sizeof(sh);

		if (at > size - sizeof(sh))
			break;
		memcpy(&sh, v + at, sizeof(sh));
		return (sh.sh_offset + rnd() % (sh.sh_size % 4096 + 1)) % size;
	}
	return rnd() % size;
}

static const uint64_t nasty[] = {
	0, 1, 7, 8, 0x7f, 0x80, 0xff, 0xfff, 0xffff, 0x7fffffff, 0x80000000, 0xffffffff,
	0x7fffffffffff, 0x7fffffffffffffff, 0x8000000000000000, 0xfffffffffffffff8, UINT64_MAX,
};

static void mutate(uint8_t *v, size_t *size)
{
	unsigned n = 1 + rnd() % 12;

	while (n--) {
		size_t at = somewhere(v, *size), width = 1u << rnd() % 4;
		uint64_t value = nasty[rnd() % (sizeof(nasty) / sizeof(nasty[0]))] + rnd() % 3 - 1;

		if (width > *size - at)
			width = *size - at;
		switch (rnd() % 4) {
		case 0:
			v[at] ^= (uint8_t)(1u << rnd() % 8);
			break;
		case 1:
			memcpy(v + at, &value, width);
			break;
		case 2:
			value = rnd();
			memcpy(v + at, &value, width);
			break;
		case 3:
			value = rnd() % *size;
			memcpy(v + at, &value, width);
			break;
		}
	}
	if (rnd() % 16 == 0)
		*size = 1 + rnd() % *size;
}

int main(int argc, char **argv)
{
	uint64_t seed = argc > 2 ? strtoull(argv[1], NULL, 0) : 0;
	uint64_t rounds = argc > 2 ? strtoull(argv[2], NULL, 0) : 0;
	struct file files[64];
	unsigned nr = 0;

	for (int i = 3; i < argc && nr < 64; i++)
		nr += read_file(argv[i], &files[nr]);
	if (!nr) {
		fprintf(stderr, "usage: %s SEED ROUNDS FILE...\n", argv[0]);
		return 2;
	}
	for (uint64_t i = 0; i < rounds; i++) {
		state = (seed + i + 1) * 0x9e3779b97f4a7c15ull | 1;
		struct file *f = &files[rnd() % nr];
		size_t size = f->size;
		uint8_t *copy = malloc(size);
		char line[64];
		int n = snprintf(line, sizeof(line), "round %llu\n", (unsigned long long)(seed + i));

		/* the last one named is the one that failed */
		if (ftruncate(STDOUT_FILENO, 0) == 0 && pwrite(STDOUT_FILENO, line, (size_t)n, 0) < 0)
			return 2;
		memcpy(copy, f->v, size);
		mutate(copy, &size);
		alarm(ROUND_SECONDS);
		LLVMFuzzerTestOneInput(copy, size);
		alarm(0);
		free(copy);
	}
	for (unsigned i = 0; i < nr; i++)
		free(files[i].v);
	return 0;
}
#endif
