/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Tests whether base/first_library.c finds AddressSanitizer's runtime in ELF files. A linker writes
 * all needed libraries first, and the address of their names after them. */
#include <elf.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include "base/first_library.h"

#define BIAS		0x400000	/* link-time address of the file's first byte */
#define OTHER		1		/* offsets of the names of libraries */
#define RUNTIME		11

static const char names[] = "\0libm.so.6\0libasan.so.8";

/* Makes an ELF file that needs `needed` libraries. The runtime is the library with the number
 * `first`, from 0. PT_DYNAMIC is after `loads` other program headers. */
static int make_file(unsigned needed, unsigned first, unsigned loads)
{
	int fd = memfd_create("elf", MFD_CLOEXEC);
	uint64_t dynamic = sizeof(Elf64_Ehdr) + (loads + 1) * sizeof(Elf64_Phdr);
	uint64_t strings = dynamic + (needed + 2) * sizeof(Elf64_Dyn);
	Elf64_Ehdr e = { .e_phoff = sizeof(e), .e_phentsize = sizeof(Elf64_Phdr),
			 .e_phnum = (uint16_t)(loads + 1) };
	Elf64_Phdr all = { .p_type = PT_LOAD, .p_vaddr = BIAS,
			   .p_filesz = strings + sizeof(names) };
	Elf64_Phdr none = { .p_type = PT_NOTE };
	Elf64_Phdr p = { .p_type = PT_DYNAMIC, .p_offset = dynamic, .p_filesz = strings - dynamic };
	Elf64_Dyn table = { .d_tag = DT_STRTAB, .d_un.d_ptr = BIAS + strings }, end = { 0 };

	memcpy(e.e_ident, ELFMAG, SELFMAG);
	e.e_ident[EI_CLASS] = ELFCLASS64;
	write(fd, &e, sizeof(e));
	for (unsigned i = 0; i < loads; i++)
		write(fd, i + 1 == loads ? &all : &none, sizeof(all));
	write(fd, &p, sizeof(p));
	for (unsigned i = 0; i < needed; i++) {
		Elf64_Dyn d = { .d_tag = DT_NEEDED, .d_un.d_val = i == first ? RUNTIME : OTHER };

		write(fd, &d, sizeof(d));
	}
	write(fd, &table, sizeof(table));
	write(fd, &end, sizeof(end));
	write(fd, names, sizeof(names));
	return fd;
}

static bool finds(unsigned needed, unsigned first, unsigned loads)
{
	char name[PB_FIRST_MAX] = "";
	int fd = make_file(needed, first, loads);
	bool found = pb_first_library(fd, name);

	close(fd);
	if (found)
		assert_string_equal(name, "libasan.so.8");
	return found;
}

static void runtime_is_among_the_first_two(void **state)
{
	assert_true(finds(2, 0, 1));
	assert_true(finds(2, 1, 1));
	assert_false(finds(3, 2, 1));
	assert_false(finds(3, 3, 1));
	assert_false(finds(0, 0, 1));
}

static void many_libraries_are_needed(void **state)
{
	assert_true(finds(62, 0, 1));
	assert_true(finds(64, 0, 1));
	assert_true(finds(1000, 1, 1));
}

static void many_program_headers(void **state)
{
	assert_true(finds(2, 0, 16));
	assert_true(finds(2, 0, 100));
}

static void lists(void **state)
{
	static const struct { const char *list; size_t length, at; } cases[] = {
		{ "", 0 }, { "libm.so.6", 0 }, { "libasan.so.8", 12 },
		{ "libasan.so", 10 }, { "/usr/lib/libasan.so:libm.so.6", 19 },
		{ "/a/libclang_rt.asan-x86_64.so /b", 29 }, { "libm.so.6:libasan.so.8", 0 },
		{ "/libasan.so/libm.so.6", 0 }, { "libm.so.6 /libasan.so", 0 }, { "/", 0 },
		{ ":/x/libasan.so", 13, 1 }, { " /x/libasan.so", 13, 1 }, { ":", 0 }, { " : ", 0 },
		{ " :: libasan.so:libm.so.6", 10, 4 }, { ":libm.so.6:libasan.so", 0 },
		{ "liba", 0 }, { ":/x/", 0 },
	};
	const char *first;

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const char *list = cases[i].list;

		assert_int_equal(pb_first_in_list(list, strlen(list), &first), cases[i].length);
		if (cases[i].length)
			assert_ptr_equal(first, list + cases[i].at);
	}
	/* the value may end before the name does */
	assert_int_equal(pb_first_in_list("libasan.so", 9, &first), 0);
}

static void damaged_files(void **state)
{
	char name[PB_FIRST_MAX];
	int fd = make_file(2, 0, 1);

	for (long size = lseek(fd, 0, SEEK_END) - 1; size >= 0; size--) {
		assert_int_equal(ftruncate(fd, size), 0);
		assert_false(pb_first_library(fd, name));
	}
	close(fd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(runtime_is_among_the_first_two),
		cmocka_unit_test(many_libraries_are_needed),
		cmocka_unit_test(many_program_headers),
		cmocka_unit_test(lists),
		cmocka_unit_test(damaged_files),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
