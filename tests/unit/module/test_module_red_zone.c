/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A jump to an entry may leave data in the red zone, below rsp. A stub at the entry would overwrite
 * this data, so the function must be refused. Where nothing shows such data, the function must be a
 * site. */
#include "module_files.h"

#define CODE \
	".macro F name\n .p2align 4\n .globl \\name\n.type \\name,@function\n" \
	"\\name: .cfi_startproc\n.endm\n" \
	".macro E name\n .cfi_endproc\n .size \\name, .-\\name\n.endm\n" \
	".macro body\n mov %rdi,%rax\n add %rsi,%rax\n imul %rdx,%rax\n.endm\n" \
	".text\n"
#define END ".section .note.GNU-stack,\"\",@progbits\n"

static const char *const loops_s = CODE
	"F kept\n mov -24(%rsp),%rax\n add %rax,%rsi\n mov %rsi,-24(%rsp)\n dec %rdi\n"
	" jne kept\n ret\nE kept\n"
	"F kept_endbr\n endbr64\n1: mov -24(%rsp),%rax\n add %rax,%rsi\n mov %rsi,-24(%rsp)\n"
	" dec %rdi\n jne 1b\n ret\nE kept_endbr\n"
	"F indexed\n mov -64(%rsp,%rdi,8),%rax\n add %rax,%rsi\n dec %rdi\n jne indexed\n"
	" ret\nE indexed\n"
	"F by_lea\n lea -64(%rsp),%rax\n add %rsi,(%rax)\n dec %rdi\n jne by_lea\n"
	" ret\nE by_lea\n"
	"F by_copy\n mov %rsp,%rax\n add %rsi,-8(%rax)\n dec %rdi\n jne by_copy\n"
	" ret\nE by_copy\n"
	"F runs_on\n body\n mov %rax,-8(%rsp)\nE runs_on\n"
	".globl next\n.type next,@function\nnext: .cfi_startproc\n body\n mov -8(%rsp),%rdx\n ret\n"
	"E next\n"
	/* the cold part jumps back to the entry */
	"F parted\n mov -24(%rsp),%rax\n add %rax,%rsi\n mov %rsi,-24(%rsp)\n dec %rdi\n"
	" jne parted.cold\n ret\nE parted\n"
	".type parted.cold,@function\nparted.cold: .cfi_startproc\n body\n jmp parted\n"
	".cfi_endproc\n.size parted.cold,.-parted.cold\n"
	/* no data below rsp when the jump is made */
	"F plain\n add (%rsi),%rax\n dec %rdi\n jne plain\n ret\nE plain\n"
	"F behind\n mov %rdi,%rax\n imul %rax,%rax\n1: mov %rax,-24(%rsp)\n dec %rdi\n"
	" jne 1b\n ret\nE behind\n"
	"F framed\n sub $24,%rsp\n .cfi_def_cfa_offset 32\n mov %rsp,%rdi\n call plain\n"
	" mov %rax,-8(%rsp)\n add $24,%rsp\n .cfi_def_cfa_offset 8\n jmp framed\nE framed\n"
	"F tail\n mov %rdi,-8(%rsp)\n body\n jmp behind\nE tail\n"
	END;

/* Without its names, the cold part looks like a function. */
static const char *const parts_s = CODE
	"F hot\n mov %rdi,-8(%rsp)\n test %edi,%edi\n je 1f\n body\n ret\nE hot\n"
	".p2align 4\n1: .cfi_startproc\n body\n add -8(%rsp),%rax\n ret\n.cfi_endproc\n"
	"F called_too\n mov %rdi,-8(%rsp)\n test %edi,%edi\n je 2f\n body\n ret\nE called_too\n"
	"F caller\n call 2f\n ret\nE caller\n"
	".p2align 4\n2: .cfi_startproc\n body\n body\n ret\n.cfi_endproc\n"
	"F no_data\n test %edi,%edi\n je 3f\n body\n ret\nE no_data\n"
	".p2align 4\n3: .cfi_startproc\n body\n body\n body\n ret\n.cfi_endproc\n"
	END;

static const struct pb_func *after(struct view v, const char *name)
{
	const struct pb_func *f = func(v, name);

	assert_non_null(f);
	assert_int_equal(f[1].flags & PB_FUNC_UNNAMED, PB_FUNC_UNNAMED);
	return f + 1;
}

static void test_loops(void **unused)
{
	static const char *const refused[] = {
		"kept", "kept_endbr", "indexed", "by_lea", "by_copy", "next", "parted"
	};
	static const char *const sites[] = {
		"runs_on", "plain", "behind", "framed", "tail"
	};
	struct view v;

	write_file("loops.s", loops_s);
	build("gcc -shared -nostdlib loops.s -o loops.so");
	v = analyse("loops.so", 0);
	for (size_t i = 0; i < pb_array_size(refused); i++)
		assert_refused(v, refused[i], RED_ZONE);
	for (size_t i = 0; i < pb_array_size(sites); i++)
		assert_site(v, sites[i], PB_SITE_SYMBOL);
	drop(v);
}

static void test_parts(void **unused)
{
	struct view v;

	write_file("parts.s", parts_s);
	build("gcc -shared -nostdlib parts.s -o parts.so");
	v = analyse("parts.so", 0);
	assert_int_equal(after(v, "hot")->refused, PB_REFUSED_RED_ZONE);
	assert_int_equal(after(v, "caller")->refused, PB_REFUSED_NOT);
	assert_int_equal(after(v, "no_data")->refused, PB_REFUSED_NOT);
	assert_site(v, "hot", PB_SITE_SYMBOL);
	drop(v);
}

/* An FDE begins before all code, or ends after it. The function that it covers uses the red zone,
 * so it is refused: the FDE's code can't be searched for a jump to the entry. */
static const char *const outside_s =
	".text\n.globl inside\n.type inside,@function\n"
	".Linside: inside: mov %rdi,-8(%rsp)\n mov -8(%rsp),%rax\n ret\n"
	".size inside,.-inside\n.Lend:\n"
	".section .eh_frame,\"a\",@progbits\n"
	"cie: .long 1f-0f\n0: .long 0\n .byte 1\n .asciz \"zR\"\n .byte 1,0x78,16,1,0x1b\n"
	" .byte 0x0c,7,8,0x90,1\n .p2align 2\n"
	"1: .long 3f-2f\n2: .long 2b-cie\n .long .Linside-BEFORE-.\n"
	" .long .Lend-.Linside+BEFORE+AFTER\n .byte 0\n .p2align 2\n3: .long 0\n"
	".section .note.GNU-stack,\"\",@progbits\n";

static void test_outside(void **unused)
{
	static const char *const where[] = { "BEFORE=64 -Wa,--defsym,AFTER=0",
					     "BEFORE=0 -Wa,--defsym,AFTER=4096" };

	write_file("outside.s", outside_s);
	for (size_t i = 0; i < pb_array_size(where); i++) {
		char line[256];
		struct view v;

		snprintf(line, sizeof(line), "gcc -shared -nostdlib -Wa,--defsym,%s outside.s "
			 "-o outside.so", where[i]);
		build(line);
		v = analyse("outside.so", PB_MODULE_RETURNS);
		assert_refused(v, "inside", RED_ZONE);
		drop(v);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_loops),
		cmocka_unit_test(test_parts),
		cmocka_unit_test(test_outside),
	};

	return cmocka_run_group_tests(tests, make_dir, remove_dir);
}
