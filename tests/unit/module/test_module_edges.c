/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Tests how the analysis classifies jumps that leave a unit (the code of one FDE): jumps to parts
 * of a function, to other frames, and through pointers. For each condition there is a function that
 * is classified in another way if the condition is left out. */
#include "exits_expect.h"

/* Code with an FDE and without a symbol. */
#define PART ".cfi_startproc\n"
#define PART_END ".cfi_endproc\n.p2align 4\n"

static const char *const edges_s = MACROS
	".text\n.p2align 4\n"
	"F other\n body\n body\n ret\nE other\n.p2align 4\n"
	/* only one unit jumps to the code, so the code is a part of the unit */
	"F to_part\n body\n test %eax,%eax\n je .Lpart\n body\n ret\nE to_part\n.p2align 4\n"
	".Lpart: " PART " body\n body\n ret\n" PART_END
	/* the code is a function, because a call leads there, or because two units jump there */
	"F to_called\n body\n test %eax,%eax\n je .Lcalled\n body\n ret\nE to_called\n.p2align 4\n"
	".Lcalled: " PART " body\n body\n ret\n" PART_END
	"F caller\n push_rbx\n call .Lcalled\n call .Lbare\n pop_rbx\n body\n ret\nE caller\n"
	".p2align 4\n"
	"F to_both\n body\n test %eax,%eax\n je .Lboth\n body\n ret\nE to_both\n.p2align 4\n"
	"F to_both2\n body\n test %eax,%eax\n je .Lboth\n body\n ret\nE to_both2\n.p2align 4\n"
	".Lboth: " PART " body\n body\n ret\n" PART_END
	/* the target has another CFA, or the return address is elsewhere */
	"F to_reg\n body\n push_rbx\n jmp 1f\nE to_reg\n.p2align 4\n"
	PART " .cfi_def_cfa_register %rbx\n .cfi_def_cfa_offset 16\n nop\n1: body\n"
	" .cfi_def_cfa %rsp,8\n body\n ret\n" PART_END
	"F to_moved\n body\n push_rbx\n jmp 2f\nE to_moved\n.p2align 4\n"
	PART " .cfi_def_cfa_offset 16\n .cfi_offset %rip,-16\n nop\n2: body\n"
	" .cfi_offset %rip,-8\n pop_rbx\n body\n ret\n" PART_END
	/* expressions give the CFA on both sides */
	"F by_expression\n body\n .cfi_escape 0x0f,2,0x77,8\n body\n jmp 3f\nE by_expression\n"
	".p2align 4\n"
	PART " .cfi_def_cfa_offset 16\n .cfi_escape 0x0f,2,0x77,8\n nop\n3: body\n"
	" .cfi_def_cfa %rsp,8\n body\n ret\n" PART_END
	/* a jump to a linker's stub, with the frame in place */
	"F framed_plt\n body\n push_rbx\n jmp outside@PLT\nE framed_plt\n.p2align 4\n"
	"F framed_slot\n body\n push_rbx\n jmp *outside@GOTPCREL(%rip)\nE framed_slot\n.p2align 4\n"
	/* the target never returns, but it is bad: its CFI contradicts a push */
	"F to_bad\n push_rbx\n push_rbx\n test %eax,%eax\n ja .Lbad\n pop_rbx\n pop_rbx\n body\n"
	" ret\nE to_bad\n.p2align 4\n"
	".Lbad: " PART " .cfi_adjust_cfa_offset 32\n push %rax\n body\n call other\n ud2\n" PART_END
	/* control runs on into code without an FDE */
	"F into_bare\n body\n test %eax,%eax\nE into_bare\n.Lbare: body\n body\n ret\n.p2align 4\n"
	"F into_unknown\n body\n test %eax,%eax\nE into_unknown\n body\n body\n"
	"F after_unknown\n body\n ret\nE after_unknown\n.p2align 4\n"
	/* the pointer is a function's address, although it leads into the unit */
	"F tail_in_two\n body\n mov 8(%rdi),%rdx\n body\n jmp *%rdx\n.globl second\n"
	".type second,@function\nsecond: body\n body\n ret\nE tail_in_two\n.size second,.-second\n"
	".p2align 4\n"
	/* the target is read from the stack */
	"F by_stack\n body\n body\n jmp *8(%rsp)\nE by_stack\n.p2align 4\n"
	/* the CFI says that there is no caller to return to */
	"F no_caller\n body\n .cfi_undefined %rip\n body\n ret\nE no_caller\n.p2align 4\n"
	/* the switch is the only way to a case in a part of the function */
	"F switched\n body\n lea .Ltable(%rip),%rdx\n movslq (%rdx,%rdi,4),%rax\n add %rdx,%rax\n"
	" jmp *%rax\n.Lcase: body\n body\n ret\nE switched\n.p2align 4\n"
	PART " body\n.Lrare: body\n body\n ret\n body\n jmp .Lcase\n" PART_END
	".section .rodata\n.p2align 2\n.Ltable: .long .Lcase-.Ltable,.Lrare-.Ltable\n"
	".data\n.p2align 3\n.quad second\n"
	END;

static const struct expected edges[] = {
	{ "to_part", "goes on, NOT ret+24:WINDOW ret+52:ENTRY" },
	{ "to_called", "NOT jcc+12:ENTRY ret+24:WINDOW" },
	{ "to_both", "NOT jcc+12:ENTRY ret+24:WINDOW" },
	{ "to_reg", "FRAME" },
	{ "to_moved", "FRAME" },
	{ "by_expression", "NOT ret+53:WINDOW" },
	{ "framed_plt", "FRAME" },
	{ "framed_slot", "FRAME" },
	{ "to_bad", "FRAME" },
	{ "into_bare", "FALLS" },
	{ "into_unknown", "FALLS" },
	{ "tail_in_two", "goes on, NOT indirect+24:WINDOW ret+46:ENTRY" },
	{ "by_stack", "COMPUTED" },
	{ "no_caller", "UNPROVEN" },
	{ "switched", "NOT ret+46:WINDOW ret+78:WINDOW" },
	{ NULL, NULL }
};

static void test_edges(void **unused)
{
	char path[256];

	write_file("edges.s", edges_s);
	build("gcc -shared -nostdlib edges.s -o edges.so");
	snprintf(path, sizeof(path), "%s/edges.so", dir);
	visit(path, compare, (void *)edges);
}

/* A program at a fixed address: pointers to code are found by their values. */
static const char *const fixed_s = MACROS
	".text\n.p2align 4\n"
	"F _start\n ud2\nE _start\n.p2align 4\n"
	"F labelled\n body\n mov 8(%rdi),%rdx\n movl $1f,(%rsi)\n body\n jmp *%rdx\n1: body\n ret\n"
	"E labelled\n.p2align 4\n"
	/* the number leads into the unit by chance: no instruction begins there */
	"F by_chance\n body\n mov 8(%rdi),%rdx\n movl $1f+1,(%rsi)\n body\n jmp *%rdx\n1: body\n"
	" ret\nE by_chance\n.p2align 4\n"
	"F gotos\n body\n body\n jmp *table(,%rdi,8)\n2: body\n body\n ret\nE gotos\n.p2align 4\n"
	"F tails\n body\n body\n jmp *functions(,%rdi,8)\nE tails\n.p2align 4\n"
	/* a switch whose first cases are in a part of the function. The part's exits are exits of
	 * the function, too */
	"F cases\n body\n body\n jmp *in_part(,%rdi,8)\n3: body\n body\n ret\nE cases\n.p2align 4\n"
	PART " body\n4: body\n body\n ret\n jmp 3b\n5: body\n jmp 3b\n" PART_END
	/* the part has another frame */
	"F frames\n body\n body\n jmp *in_frame(,%rdi,8)\n6: body\n ret\nE frames\n.p2align 4\n"
	PART " .cfi_def_cfa_offset 16\n nop\n7: pop %rbx\n .cfi_def_cfa_offset 8\n body\n jmp 6b\n"
	PART_END
	/* an address in the function comes after addresses of functions: it may lie after the
	 * array's end. Or the array begins with an address in another function */
	"F mixed\n body\n body\n jmp *mixture(,%rdi,8)\n8: body\n ret\nE mixed\n.p2align 4\n"
	"F strange\n body\n body\n jmp *odd(,%rdi,8)\nE strange\n.p2align 4\n"
	/* data may be in the red zone when the jump is made. An exit's stub would overwrite it */
	"F red_array\n body\n mov %rax,-8(%rsp)\n body\n jmp *functions(,%rdi,8)\nE red_array\n"
	".p2align 4\n"
	"F red_pointer\n body\n mov %rax,-8(%rsp)\n body\n jmp *8(%rdi)\nE red_pointer\n"
	".p2align 4\n"
	/* the functions of the array have no names. One makes a tail call of `evaluate` */
	"F evaluate\n body\n body\n jmp *unnamed(,%rdi,8)\nE evaluate\n.p2align 4\n nop\n"
	"9: " PART " body\n jmp evaluate\n.cfi_endproc\n nop\n"
	"10: " PART " body\n body\n ret\n" PART_END
	/* a function in its own array */
	"F selfish\n body\n body\n jmp *selves(,%rdi,8)\nE selfish\n.p2align 4\n"
	"F selfish2\n body\n body\n jmp *selves2(,%rdi,8)\nE selfish2\n.p2align 4\n"
	/* only a part: it may be a function */
	"F partial\n body\n test %eax,%eax\n je 11f\n body\n jmp *only_part(,%rdi,8)\nE partial\n"
	".p2align 4\n nop\n11: " PART " body\n body\n ret\n" PART_END
	".data\n.p2align 3\ntable: .quad 2b,2b\nfunctions: .quad gotos,labelled\n"
	"unnamed: .quad 9b,10b\nselves: .quad gotos,selfish,labelled\n"
	"selves2: .quad selfish2,gotos\nonly_part: .quad 11b\n"
	"in_part: .rept 5\n .quad 4b,5b\n .endr\n .quad 3b\nin_frame: .quad 7b,6b\n"
	"mixture: .quad gotos,8b\nodd: .quad 8b,gotos\n.quad 0\n"
	END;

static const struct expected fixed[] = {
	{ "labelled", "COMPUTED" },
	{ "by_chance", "NOT indirect+30:WINDOW ret+42:WINDOW" },
	{ "gotos", "NOT ret+47:WINDOW" },
	{ "tails", "NOT indirect+20:WINDOW" },
	{ "cases", "NOT ret+47:WINDOW ret+78:WINDOW" },
	{ "frames", "FRAME" },
	{ "mixed", "COMPUTED" },
	{ "strange", "COMPUTED" },
	{ "red_array", "COMPUTED" },
	{ "red_pointer", "COMPUTED" },
	{ "evaluate", "NOT indirect+20:WINDOW" },
	{ "selfish", "NOT indirect+20:WINDOW" },
	{ "selfish2", "NOT indirect+20:WINDOW" },
	{ "partial", "COMPUTED" },
	{ NULL, NULL }
};

static void test_fixed(void **unused)
{
	char path[256];

	write_file("fixed.s", fixed_s);
	build("gcc -static -no-pie -nostdlib fixed.s -o fixed");
	snprintf(path, sizeof(path), "%s/fixed", dir);
	visit(path, compare, (void *)fixed);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_edges),
		cmocka_unit_test(test_fixed),
	};

	return cmocka_run_group_tests(tests, make_dir, remove_dir);
}
