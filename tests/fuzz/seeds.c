/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Finds ELF files for seeds. Passes each file to a function of the fuzzer, or adds one section of
 * each file as a seed. */
#include "seeds.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "driver.h"
#include "module/elf/elf_file.h"

#define SECTION_MAX 4096

/* Files of the system that are seeds. FUZZ_SEED_FILES has further seeds: programs that the build
 * made, separated by ':'. */
static const char *const system_files[] = {
	"/bin/true", "/usr/bin/yes", "/lib/x86_64-linux-gnu/libdl.so.2",
	"/lib/x86_64-linux-gnu/libpthread.so.0", "/lib/x86_64-linux-gnu/libz.so.1",
	"/lib64/libdl.so.2", "/lib64/libz.so.1",
};

static void one(const char *path, size_t max,
		void (*fn)(const char *path, const uint8_t *data, size_t size))
{
	size_t size;
	uint8_t *data = fuzz_read_file(path, max, &size);

	if (data)
		fn(path, data, size);
	free(data);
}

void fuzz_each_elf(size_t max, void (*fn)(const char *path, const uint8_t *data, size_t size))
{
	char *list = strdup(FUZZ_SEED_FILES), *rest = list, *path;

	while ((path = strsep(&rest, ":")))
		one(path, max, fn);
	free(list);
	for (size_t i = 0; i < sizeof(system_files) / sizeof(system_files[0]); i++)
		one(system_files[i], max, fn);
}

static const char *wanted;

static void seed_section(const char *path, const uint8_t *data, size_t size)
{
	const Elf64_Shdr *sh;
	const void *bytes;
	const char *why;
	struct pb_elf e;
	uint8_t *copy = malloc(size);

	memcpy(copy, data, size);
	if (pb_elf_open_memory(&e, copy, size, false, &why))
		return;
	sh = pb_elf_section(&e, wanted);
	bytes = sh ? pb_elf_section_bytes(&e, sh) : NULL;
	if (bytes)
		fuzz_seed(bytes, sh->sh_size < SECTION_MAX ? sh->sh_size : SECTION_MAX);
	pb_elf_close(&e);
}

void fuzz_seed_sections(const char *name)
{
	wanted = name;
	fuzz_each_elf(4 << 20, seed_section);
}
