/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Fuzzes the reader of Go's table of functions. The input is the section .gopclntab. The code has
 * runtime.goexit where the seeds' tables say, so that the reader doesn't reject each table. With
 * every second input, the section has another name, so that the reader must search the table. */
#include <stdlib.h>
#include <string.h>

#include "driver.h"
#include "mini_elf.h"
#include "module/elf/go_table.h"

#define GOEXIT	0x80	/* offsets in the code */
#define GOEXIT1	0xc0
#define NR	4	/* functions in a seed */

static void put_code(uint8_t *file)
{
	uint8_t *code = file + (MINI_CODE - MINI_BASE);
	int32_t operand = GOEXIT1 - (GOEXIT + 6);

	code[GOEXIT] = 0x90;
	code[GOEXIT + 1] = 0xe8;
	memcpy(code + GOEXIT + 2, &operand, 4);
	memset(code + 0x110, 0xcc, 16);
}

/* Returns the number of functions in the section. */
static size_t read_section(const uint8_t *data, size_t size)
{
	size_t file_size, n;
	uint8_t *file = mini_elf(size & 1 ? ".data.rel.ro" : ".gopclntab", data, size, &file_size);
	pb_go_vec v = { 0 };
	struct pb_elf e;
	const char *why;
	uint64_t end = 0;
	Elf64_Phdr *ph = (Elf64_Phdr *)(file + sizeof(Elf64_Ehdr));

	put_code(file);
	/* the search leaves out segments with code, so the second segment has the section */
	if (size & 1) {
		ph[1] = ph[0];
		ph[1].p_flags = PF_R;
		((Elf64_Ehdr *)file)->e_phnum = 2;
	}
	FUZZ_CHECK(!pb_elf_open_memory(&e, file, file_size, false, &why));
	pb_go_functions(&e, true, &v);
	FUZZ_CHECK(!v.failed);
	for (size_t i = 0; i < v.n; i++) {
		FUZZ_CHECK(v.v[i].start >= end && v.v[i].end > v.v[i].start);
		end = v.v[i].end;
		FUZZ_CHECK(pb_elf_at(&e, v.v[i].start, end - v.v[i].start));
		FUZZ_CHECK(strlen(v.v[i].name) < file_size);
	}
	n = v.n;
	pb_vec_free(&v);
	pb_elf_close(&e);
	return n;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	read_section(data, size);
	return 0;
}

static size_t put(uint8_t *v, size_t at, uint64_t value, size_t bytes)
{
	memcpy(v + at, &value, bytes);
	return at + bytes;
}

/* Writes a table with the names of NR functions and one list of depths. `relative` tells the
 * versions since 1.18. `offsets` tells those since 1.16. */
static size_t make_table(uint8_t *v, uint32_t magic, bool relative, bool offsets)
{
	static const char names[NR][32] = { "main.main", "main.f", "runtime.goexit",
					    "runtime.goexit1" };
	static const uint64_t starts[NR + 1] = { 0, 0x40, GOEXIT, GOEXIT1, 0x120 };
	size_t word = relative ? 4 : 8, header = relative ? 72 : 64;
	uint64_t first = relative ? 0 : MINI_CODE;
	size_t name_at = offsets ? header : 400, list_at = name_at + sizeof(names);
	size_t funcs = offsets ? list_at + 8 : 16, infos = funcs + (2 * NR + 1) * word, at;

	memset(v, 0, 1024);
	put(v, 0, magic | 0x801ull << 48, 8);
	put(v, 8, NR, 8);
	if (relative)
		put(v, 24, MINI_CODE, 8);
	if (offsets) {
		put(v, header - 40, name_at, 8);
		put(v, header - 16, list_at, 8);
		put(v, header - 8, funcs, 8);
	}
	memcpy(v + name_at, names, sizeof(names));
	memcpy(v + list_at, "\0\2\x10\2\x20\0\0", 7);	/* the length is 48 */
	for (size_t i = 0; i <= NR; i++) {
		at = put(v, funcs + 2 * i * word, first + starts[i], word);
		if (i == NR)
			break;
		put(v, at, infos + i * (word + 16) - (offsets ? funcs : 0), word);
		at = put(v, infos + i * (word + 16), first + starts[i], word);
		put(v, at, sizeof(names[0]) * i + (offsets ? 0 : name_at), 4);
		put(v, at + 12, i < 2 ? (offsets ? 1 : list_at + 1) : 0, 4);
	}
	at = infos + NR * (word + 16);
	return at > list_at + 8 ? at : list_at + 8;
}

void fuzz_seeds(void)
{
	static const struct version {
		uint32_t magic;
		bool relative, offsets;
	} versions[] = {
		{ 0xfffffffb, false, false }, { 0xfffffffa, false, true },
		{ 0xfffffff0, true, true }, { 0xfffffff1, true, true },
	}, *end = versions + sizeof(versions) / sizeof(versions[0]);
	uint8_t v[1025];

	for (const struct version *k = versions; k < end; k++) {
		unsigned n = (unsigned)make_table(v, k->magic, k->relative, k->offsets);

		for (int more = 0; more < 2; more++) {
			FUZZ_CHECK(read_section(v, n + more) == NR);
			fuzz_seed(v, n + more);
		}
	}
}
