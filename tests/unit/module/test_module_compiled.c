/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Tests functions in assembly that have the shape of compilers' output in real programs: code after
 * which nothing of the function follows, and CFI that is not exact everywhere. For each shape, a
 * similar function whose exits can't be proven must stay entry-only. */
#include "exits_expect.h"

static const char *const ends_s = MACROS
	".text\n.p2align 4\n"
	"F other\n body\n body\n ret\nE other\n.p2align 4\n"
	/* A store to the page at 0 never returns, so the code after it belongs to another function.
	 * HAProxy's BUG_ON() ends so */
	"F bug\n body\n je bug.cold\n body\n ret\nE bug\n.p2align 4\n"
	".type bug.cold,@function\nbug.cold: .cfi_startproc\n push_rbx\n call other\n"
	" movb $0,1\n .cfi_endproc\n .size bug.cold,.-bug.cold\n"
	".cfi_startproc\n .cfi_adjust_cfa_offset 32\n call other\n.cfi_endproc\n.p2align 4\n"
	/* a store to the thread's memory returns */
	"F stores\n body\n push_rbx\n movb $0,%fs:1\nE stores\n"
	".cfi_startproc\n .cfi_adjust_cfa_offset 32\n call other\n.cfi_endproc\n.p2align 4\n"
	END;

static const struct expected ends[] = {
	{ "bug", "NOT ret+22:ENTRY" },
	{ "stores", "FRAME" },
	{ NULL, NULL }
};

static void test_ends(void **unused)
{
	char path[256];

	write_file("ends.s", ends_s);
	build("gcc -shared -nostdlib ends.s -o ends.so");
	snprintf(path, sizeof(path), "%s/ends.so", dir);
	visit(path, compare, (void *)ends);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_ends),
	};

	return cmocka_run_group_tests(tests, make_dir, remove_dir);
}
