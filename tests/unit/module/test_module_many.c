/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Tests that the analysis of a large file comes to its end: the work for each exit must not grow
 * with the number of exits in the file. If it grows, the analysis exceeds its limit of steps
 * (pb_exit_work()), and many functions of the file are entry-only.
 */
#include "exits_expect.h"

/* The first exit has the first of two shared jumps. The second jump is that of the second exit's
 * window, which the analysis must look for. */
#define FUNCTION \
	" body\n test %eax,%eax\n je 2f\n call other\n1: ret\n2: mov %rdi,%rax\n" \
	" neg %rax\n ret\n jmp 1b\n"

static const char many_s[] = MACROS
	".macro numbered\n F f\\@\n" FUNCTION " E f\\@\n far\n.endm\n"
	".text\nfar\n"
	"F other\n body\n ret\nE other\nfar\n"
	".rept 12000\n numbered\n.endr\n"
	"F last\n" FUNCTION "E last\nfar\n"
	END;

static const struct expected many[] = {
	{ "other", "NOT ret+10:ENTRY" },
	{ "last", "NOT ret+19:NEXT ret+26:WINDOW" },
	{ NULL, NULL }
};

static void none_exceeds(struct pb_an *an, void *arg)
{
	assert_true(an->fns.n > 12000);
	for (size_t i = 0; i < an->fns.n; i++)
		assert_int_not_equal(an->fns.v[i].inexit, PB_INEXIT_LIMIT);
}

static void test_many(void **unused)
{
	char path[256];

	write_file("many.s", many_s);
	build("gcc -shared -nostdlib many.s -o many.so");
	snprintf(path, sizeof(path), "%s/many.so", dir);
	visit(path, compare, (void *)many);
	visit(path, none_exceeds, NULL);
}

/* To find out whether control reaches an exit, the code before it is searched, up to a return or a
 * jump. If a hostile file makes these searches too long, they end. */
static const char long_s[] = MACROS
	".text\n"
	"F other\n body\n ret\nE other\nfar\n"
	"F long\n jmp 1f\n .rept 60000\n body\n jne other\n.endr\n1: ret\nE long\n"
	END;

static const struct expected long_runs[] = {
	{ "long", "LIMIT" },
	{ NULL, NULL }
};

static void test_long_runs(void **unused)
{
	char path[256];

	write_file("long.s", long_s);
	build("gcc -shared -nostdlib long.s -o long.so");
	snprintf(path, sizeof(path), "%s/long.so", dir);
	visit(path, compare, (void *)long_runs);
}

static void count_relocations(struct pb_an *an, void *arg)
{
	*(size_t *)arg = an->textrels.n;
}

/* In a static program, many sections of relocations cover the same bytes. They are read only as
 * long as the bytes that are read aren't more than the file's. */
static void test_same_bytes(void **unused)
{
	static uint8_t v[1 << 20];
	const Elf64_Ehdr *eh = (const Elf64_Ehdr *)v;
	Elf64_Shdr big = { 0 };
	size_t size, nr, sections = 0;
	char path[256];
	FILE *f;

	write_file("rela.s", ".globl _start\n_start: ud2\n.section .r,\"a\"\n"
		   " .rept 2000\n .quad _start, 1, 0\n .endr\n"
		   ".altmacro\n.macro one n\n.section .r\\n,\"a\"\n .quad 0\n.endm\n"
		   ".set n,0\n.rept 16\n one %n\n.set n,n+1\n.endr\n" END);
	build("gcc -static -no-pie -nostdlib rela.s -o rela");
	snprintf(path, sizeof(path), "%s/rela", dir);
	f = fopen(path, "r+");
	assert_non_null(f);
	size = fread(v, 1, sizeof(v), f);
	for (unsigned pass = 0; pass < 2; pass++)
		for (unsigned i = 1; i < eh->e_shnum; i++) {
			Elf64_Shdr *sh = (Elf64_Shdr *)(v + eh->e_shoff) + i;

			if (sh->sh_type != SHT_PROGBITS || sh->sh_flags != SHF_ALLOC)
				continue;
			if (pass) {
				sh->sh_type = SHT_RELA;
				sh->sh_offset = big.sh_offset;
				sh->sh_size = big.sh_size;
				sections++;
			} else if (sh->sh_size > big.sh_size) {
				big = *sh;
			}
		}
	assert_true(sections >= 16 && big.sh_size == 48000);
	rewind(f);
	assert_int_equal(fwrite(v, 1, size, f), size);
	fclose(f);
	visit(path, count_relocations, &nr);
	assert_true(nr >= 2000 && nr <= size / sizeof(Elf64_Rela));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_many),
		cmocka_unit_test(test_long_runs),
		cmocka_unit_test(test_same_bytes),
	};

	return cmocka_run_group_tests(tests, make_dir, remove_dir);
}
