/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Tests that the analysis leaves bytes of code alone that others read: instructions that always
 * trap, which the program's signal handlers may decode.
 */
#include "module_files.h"

#define MACROS \
	".macro F name\n .p2align 4, FILL\n .globl \\name\n .type \\name,@function\n" \
	"\\name: .cfi_startproc\n.endm\n" \
	".macro E name\n .cfi_endproc\n .size \\name, .-\\name\n.endm\n"

static bool overlaps(uint64_t start, uint64_t end, uint64_t from, uint64_t to)
{
	return start < to && from < end;
}

static bool func_touches(struct view v, const struct pb_func *f, uint64_t from, uint64_t to)
{
	uint64_t slot = pb_func_slot(f);

	if (f->refused)
		return false;
	if (f->flags & PB_FUNC_CODE_SLOT) {
		uint64_t code = pb_func_code_slot(f);

		if (overlaps(code, code + pb_func_code_recipe(v.a, f)->window_len, from, to))
			return true;
	}
	return overlaps(pb_func_window(f), pb_func_window_end(f), from, to) ||
	       (f->via && overlaps(slot, slot + PB_JUMP_LEN, from, to));
}

static bool window_touches(struct view v, const struct pb_exit_window *w, uint64_t from,
			   uint64_t to)
{
	const struct pb_recipe *second = pb_window_second(v.a, w);
	uint64_t slot = pb_window_slot(w), after = w->start + w->len;

	if (second && w->how == PB_EXIT_CODE_SLOT)
		after = slot - PB_JUMP_LEN;
	return overlaps(w->start, w->start + w->len, from, to) ||
	       (w->via && overlaps(slot, slot + PB_JUMP_LEN, from, to)) ||
	       (second && overlaps(after, after + second->window_len, from, to));
}

/* Whether a window, a slot or displaced code has one of the `len` bytes that begin `off` bytes
 * after the function's entry. */
static bool touched(struct view v, const char *name, int off, unsigned len)
{
	const struct pb_exit_window *w = pb_analysis_windows(v.a);
	uint64_t from;

	assert_non_null(func(v, name));
	from = func(v, name)->addr + (uint64_t)(int64_t)off;
	for (uint32_t i = 0; i < v.a->nr_funcs; i++)
		if (func_touches(v, &pb_analysis_funcs(v.a)[i], from, from + len))
			return true;
	for (uint32_t i = 0; i < v.a->nr_windows; i++)
		if (window_touches(v, &w[i], from, from + len))
			return true;
	return false;
}

/* ------------------------------------------------------------------- traps */

static const char *const traps_s = MACROS
	".text\n"
	"F plain\n mov $1,%eax\n ret\nE plain\n"
	"F ud2_first\n ud2\n mov $1,%eax\n ret\nE ud2_first\n"
	"F ud2_only\n ud2\nE ud2_only\n"
	"F int3_only\n int3\nE int3_only\n"
	"F ud1_second\n mov %edi,%eax\n ud1 5(%rdi),%eax\n ret\nE ud1_second\n"
	"F ud2_behind\n mov $1,%eax\n ud2\n ret\nE ud2_behind\n"
	/* the copy of the entry would hold the exit, if it didn't hold the trap too */
	"F int3_at_exit\n mov $1,%eax\n int3\n ret\nE int3_at_exit\n"
	"F ud2_in_exit\n push %rbx\n .cfi_adjust_cfa_offset 8\n .cfi_offset %rbx,-16\n"
	" call plain\n ud2\n pop %rbx\n .cfi_adjust_cfa_offset -8\n .cfi_restore %rbx\n ret\n"
	"E ud2_in_exit\n"
	/* traps that are never executed are padding */
	"F padded\n ret\nE padded\n .fill 4,1,0xcc\n"
	"F jumps\n jmp 1f\n .fill 8,1,0xcc\n1: test %edi,%edi\n je 2f\n call *%rdi\n2: ret\n"
	" .fill 8,1,0xcc\nE jumps\n"
	".section .note.GNU-stack,\"\",@progbits\n";

static void test_traps(void **unused)
{
	static const char *const refused[] = { "ud2_first", "ud2_only", "int3_only", "ud1_second" };

	write_file("traps.s", traps_s);
	/* bytes of value 6 aren't padding, so there are no slots but in `jumps` */
	build("gcc -shared -nostdlib -Wa,--defsym,FILL=6 -Wl,-Bsymbolic traps.s -o traps.so");
	struct view v = analyse("traps.so", PB_MODULE_RETURNS);

	for (unsigned i = 0; i < pb_array_size(refused); i++)
		assert_refused(v, refused[i], TRAP);
	assert_site(v, "ud2_behind", PB_SITE_SYMBOL);
	assert_int_equal(func(v, "ud2_behind")->window_len, 5);
	assert_false(touched(v, "ud2_behind", 5, 2));
	assert_false(touched(v, "int3_at_exit", 5, 1));
	assert_false(touched(v, "ud2_in_exit", 6, 2));
	assert_site(v, "padded", PB_SITE_SYMBOL);
	assert_int_equal(func(v, "padded")->window_len, 5);
	drop(v);
}

/* With padding between the functions, a short jump leaves a trap alone that isn't the first
 * instruction. */
static void test_short(void **unused)
{
	build("gcc -shared -nostdlib -Wa,--defsym,FILL=0xcc -Wl,-Bsymbolic traps.s -o short.so");
	struct view v = analyse("short.so", PB_MODULE_RETURNS);

	assert_refused(v, "ud2_first", TRAP);
	assert_refused(v, "ud2_only", TRAP);
	assert_refused(v, "int3_only", TRAP);
	assert_site(v, "ud1_second", PB_SITE_SYMBOL);
	assert_int_equal(func(v, "ud1_second")->window_len, 2);
	assert_false(touched(v, "ud1_second", 2, 4));
	assert_false(touched(v, "ud2_in_exit", 6, 2));
	assert_int_equal(pb_func_inexit(v.a, func(v, "ud2_in_exit")), PB_INEXIT_NOT);
	assert_false(touched(v, "int3_at_exit", 5, 1));
	assert_int_equal(pb_func_inexit(v.a, func(v, "int3_at_exit")), PB_INEXIT_NOT);
	drop(v);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_traps),
		cmocka_unit_test(test_short),
	};

	return cmocka_run_group_tests(tests, make_dir, remove_dir);
}
