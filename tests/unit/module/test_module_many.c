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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_many),
		cmocka_unit_test(test_long_runs),
	};

	return cmocka_run_group_tests(tests, make_dir, remove_dir);
}
