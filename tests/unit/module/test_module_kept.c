/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Tests that the analysis leaves bytes of code alone that others read: instructions that always
 * trap, which the program's signal handlers may decode, and restartable sequences (rseq), which the
 * kernel knows by their addresses.
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

/* --------------------------------------------------- restartable sequences */

/* Each function has one sequence, from label 1 to label 2. The kernel aborts it at label 3. */
static const char *const sequences_s = MACROS
	".macro S\n"
	" .pushsection SECTION,\"aw\"\n .balign 32\n .long 0,0\n .quad 1b,2b-1b,3f\n .popsection\n"
	".endm\n"
	".macro SEQUENCE\n1: mov (%rdi),%rax\n inc %rax\n mov %rax,(%rdi)\n2:\n.endm\n"
	/* the signature is the last part of a nop, as in tcmalloc */
	".macro SIGNATURE\n .byte 0x0f,0x1f,0x05\n .long 0x53053053\n.endm\n"
	".text\n"
	"F far\n mov $1,%eax\n ret\nE far\n"
	"F at_entry\n SEQUENCE\n S\n ret\n SIGNATURE\n3: mov $1,%eax\n ret\nE at_entry\n"
	"F before_it\n mov %rsi,8(%rdx)\n SEQUENCE\n S\n ret\n SIGNATURE\n3: mov $1,%eax\n ret\n"
	"E before_it\n"
	"F behind\n mov $1,%ecx\n mov %rsi,8(%rdx)\n SEQUENCE\n S\n ret\n SIGNATURE\n"
	"3: mov $1,%eax\n ret\nE behind\n"
	"F jumped\n mov $1,%ecx\n test %edi,%edi\n je 4f\n mov %rsi,8(%rdx)\n SEQUENCE\n S\n"
	"4: ret\n SIGNATURE\n3: mov $1,%eax\n ret\nE jumped\n"
	/* `needs` has a short jump and could use the signature for its slot */
	"F slot\n mov $1,%ecx\n mov %rsi,8(%rdx)\n SEQUENCE\n S\n jmp far\nE slot\n"
	" SIGNATURE\n"
	".globl aborts\n.type aborts,@function\naborts: .cfi_startproc\n3: mov $1,%eax\n ret\n"
	"E aborts\n"
	"F needs\n call *%rax\n xor %eax,%eax\n call far\n ret\nE needs\n"
	".section .note.GNU-stack,\"\",@progbits\n";

#define SEQUENCE_LEN	9
#define SIGNATURE_LEN	4

static void check_sequences(const char *name)
{
	struct view v = analyse(name, PB_MODULE_RETURNS);

	assert_refused(v, "at_entry", RSEQ);
	assert_refused(v, "before_it", RSEQ);
	assert_refused(v, "aborts", RSEQ);
	assert_site(v, "behind", PB_SITE_SYMBOL);
	assert_int_equal(func(v, "behind")->window_len, 5);
	/* the sequence, and the instruction before it */
	assert_false(touched(v, "behind", 5, 4 + SEQUENCE_LEN));
	/* after the sequence there is a ret, and a nop of 7 bytes with the signature */
	assert_false(touched(v, "behind", 5 + 4 + SEQUENCE_LEN + 4, SIGNATURE_LEN));
	assert_site(v, "jumped", PB_SITE_SYMBOL);
	assert_false(touched(v, "jumped", 9, 4 + SEQUENCE_LEN));
	assert_false(touched(v, "jumped", 9 + 4 + SEQUENCE_LEN + 4, SIGNATURE_LEN));
	assert_site(v, "slot", PB_SITE_SYMBOL);
	assert_false(touched(v, "aborts", -SIGNATURE_LEN, SIGNATURE_LEN));
	drop(v);
}

static void test_sequences(void **unused)
{
	char line[256];
	static const char *const how[] = {
		/* the relocations have the addresses; the words in the file are 0 */
		"-shared -Wl,-Bsymbolic", "-shared -Wl,-Bsymbolic -Wl,-z,pack-relative-relocs",
		"-no-pie -Wl,-e,far",
	};
	static const unsigned fill[] = { 6, 0xcc };

	write_file("sequences.s", sequences_s);
	for (unsigned i = 0; i < pb_array_size(how) * 2; i++) {
		snprintf(line, sizeof(line), "sed s/SECTION/__rseq_cs/ sequences.s > s.s && gcc "
			 "-nostdlib %s -Wa,--defsym,FILL=%u s.s -o sequences", how[i / 2],
			 fill[i % 2]);
		build(line);
		check_sequences("sequences");
	}
}

/* In a section with another name, the same bytes mean nothing. */
static void test_no_sequences(void **unused)
{
	build("sed s/SECTION/__other/ sequences.s > s.s && gcc -nostdlib -shared -Wl,-Bsymbolic "
	      "-Wa,--defsym,FILL=0xcc s.s -o other.so");
	struct view v = analyse("other.so", PB_MODULE_RETURNS);

	assert_site(v, "at_entry", PB_SITE_SYMBOL);
	assert_true(touched(v, "behind", 5, 4 + SEQUENCE_LEN));
	assert_true(touched(v, "jumped", 9 + 4 + SEQUENCE_LEN + 4, SIGNATURE_LEN));
	drop(v);
	/* without other padding */
	build("gcc -nostdlib -shared -Wl,-Bsymbolic -Wa,--defsym,FILL=6 s.s -o other.so");
	v = analyse("other.so", PB_MODULE_RETURNS);
	assert_true(touched(v, "aborts", -SIGNATURE_LEN, SIGNATURE_LEN));
	drop(v);
}

/* The kernel refuses such descriptors. The analysis must not trust their numbers. */
static void test_bad_descriptors(void **unused)
{
	write_file("bad.s", MACROS ".text\n"
		   "F plain\n1: mov (%rdi),%rax\n inc %rax\n mov %rax,(%rdi)\n2: ret\nE plain\n"
		   ".section __rseq_cs,\"aw\"\n.balign 32\n"
		   ".long 1,0\n.quad 1b,2b-1b,2b\n"
		   ".long 0,0\n.quad 1b,-1,0\n"
		   ".long 0,0\n.quad 0,-1,-1\n"
		   ".long 0,0\n.quad -1,1,-1\n"
		   ".long 0,0\n.quad 1,2,3\n"
		   ".long 0\n");
	build("gcc -nostdlib -shared -Wl,-Bsymbolic -Wa,--defsym,FILL=0xcc bad.s -o bad.so");
	struct view v = analyse("bad.so", PB_MODULE_RETURNS);

	assert_site(v, "plain", PB_SITE_SYMBOL);
	drop(v);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_traps),
		cmocka_unit_test(test_short),
		cmocka_unit_test(test_sequences),
		cmocka_unit_test(test_no_sequences),
		cmocka_unit_test(test_bad_descriptors),
	};

	return cmocka_run_group_tests(tests, make_dir, remove_dir);
}
