/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Tests functions in assembly that set rsp to the value of another register. Their exits are hooked
 * only if the register holds, on all paths, what the CFI says. */
#include "exits_expect.h"

/* In the function `name`, rbx holds rsp before 64 bytes are taken from the stack. Before rsp is
 * restored, the instructions run. */
#define SAVED_BY(name, reg, instructions) \
	"F " name "\n push_rbx\n mov %rsp," reg "\n sub $64,%rsp\n .cfi_adjust_cfa_offset 64\n" \
	" body\n" instructions "\n mov " reg ",%rsp\n .cfi_adjust_cfa_offset -64\n pop_rbx\n" \
	" body\n ret\nE " name "\n.p2align 4\n"
#define SAVED(name, instructions) SAVED_BY(name, "%rbx", instructions)

static const char *const restores_s = MACROS
	".text\n.p2align 4\n"
	"F other\n body\n body\n ret\nE other\n.p2align 4\n"
	SAVED("kept", "call other\n cmp %rbx,%rsp\n mov %rbx,%rax\n push %rax\n pop %rax")
	SAVED("loops", "1: call other\n dec %rax\n jne 1b")
	SAVED("again", "mov 8(%rdi),%rbx\n lea 64(%rsp),%rbx")
	SAVED("dead_code", "jmp 1f\n mov 8(%rdi),%rbx\n1:")
	SAVED("locks", "je 1f\n lock\n1: cmpxchg %ecx,(%rdi)")
	SAVED("early", "test %eax,%eax\n jne 1f\n mov %rbx,%rsp\n .cfi_adjust_cfa_offset -64\n"
	      " pop_rbx\n body\n ret\n .cfi_adjust_cfa_offset 72\n1: body")
	SAVED("endless", "1: call other\n jmp 1b")
	SAVED("switch", "lea table(%rip),%rdx\n movslq (%rdx,%rdi,4),%rax\n add %rdx,%rax\n"
	      " jmp *%rax\n2: body\n3: body")
	/* the function that `leaves` jumps to doesn't come back */
	SAVED("leaves", "test %eax,%eax\n je leaves.cold")
	".type leaves.cold,@function\nleaves.cold: .cfi_startproc\n .cfi_adjust_cfa_offset 72\n"
	" body\n call other\n ud2\n.cfi_endproc\n.size leaves.cold,.-leaves.cold\n.p2align 4\n"
	/* a register that the called function may change */
	SAVED_BY("no_call", "%r11", "body")
	SAVED_BY("call", "%r11", "call other")
	/* the register doesn't hold the copy any more */
	SAVED("loaded", "mov 8(%rdi),%rbx")
	SAVED("loaded_once", "test %eax,%eax\n je 1f\n mov 8(%rdi),%rbx\n1:")
	SAVED("loaded_locks", "mov 8(%rdi),%rbx\n je 1f\n lea 64(%rsp),%rbx\n lock\n"
	      "1: cmpxchg %ecx,(%rdi)")
	/* a table leads to code after a call (as a landing pad) */
	SAVED("pad", "lea table3(%rip),%rdx\n mov 8(%rdi),%rbx\n call other\n lea 64(%rsp),%rbx\n"
	      "10: body")
	SAVED("loaded_low", "mov %al,%bl")
	SAVED("added_to", "add $8,%rbx")
	SAVED("exchanged", "xchg %rax,%rbx")
	SAVED("other_lea", "test %eax,%eax\n je 1f\n lea 56(%rsp),%rbx\n jmp 2f\n1: body\n2:")
	SAVED("indexed", "lea 64(%rsp,%rdi),%rbx")
	SAVED("copied_late", "test %eax,%eax\n jne 1f\n mov %rsp,%rbx\n1:")
	SAVED("next_round", "1: body\n test %eax,%eax\n jne 2f\n mov 8(%rdi),%rbx\n jmp 1b\n2:")
	SAVED("before_switch", "lea table2(%rip),%rdx\n movslq (%rdx,%rdi,4),%rax\n"
	      " mov 8(%rdi),%rbx\n add %rdx,%rax\n jmp *%rax\n4: body\n5: mov %rsp,%rbx\n"
	      " add $64,%rbx\n mov %rsp,%rbx\n lea 64(%rsp),%rbx\n jmp 6f\n7: body\n6:")
	/* rsp is loaded from where the copy points to */
	"F through\n push_rbx\n mov %rsp,%rbx\n sub $64,%rsp\n .cfi_adjust_cfa_offset 64\n body\n"
	" mov (%rbx),%rsp\n .cfi_adjust_cfa_offset -64\n pop_rbx\n body\n ret\nE through\n"
	".p2align 4\n"
	"F through_lea\n push_rbx\n sub $64,%rsp\n .cfi_adjust_cfa_offset 64\n"
	" lea 64(%rsp),%rbx\n body\n mov (%rbx),%rsp\n .cfi_adjust_cfa_offset -64\n pop_rbx\n"
	" body\n ret\nE through_lea\n.p2align 4\n"
	/* the copy is made where the rows lag */
	"F lags\n push_rbx\n push_rbx\n push %rax\n body\n .cfi_adjust_cfa_offset 8\n pop %rax\n"
	" mov %rsp,%rbx\n .cfi_adjust_cfa_offset -8\n push_rbx\n push_rbx\n body\n"
	" lea 16(%rsp),%rbx\n mov %rbx,%rsp\n .cfi_adjust_cfa_offset -16\n pop_rbx\n pop_rbx\n"
	" body\n ret\nE lags\n.p2align 4\n"
	"F lags2\n push_rbx\n push_rbx\n push_rbx\n body\n jmp 2f\n1: body\n mov %rbx,%rsp\n"
	" .cfi_adjust_cfa_offset -8\n pop_rbx\n pop_rbx\n body\n ret\n"
	" .cfi_adjust_cfa_offset 24\n2: pop %rax\n mov %rsp,%rbx\n .cfi_adjust_cfa_offset -8\n"
	" push_rbx\n jmp 1b\nE lags2\n.p2align 4\n"
	/* the mov's row lags, and rsp isn't what the copy says */
	"F lag_after\n push_rbx\n mov %rsp,%rbx\n push_rbx\n push_rbx\n body\n mov 8(%rdi),%rbx\n"
	" mov %rbx,%rsp\n body\n .cfi_adjust_cfa_offset -16\n pop_rbx\n body\n ret\n"
	"E lag_after\n.p2align 4\n"
	/* the copy is made where the row lags; on the other path, it is what the CFI says */
	"F lag_copy\n push_rbx\n sub $16,%rsp\n .cfi_adjust_cfa_offset 16\n call other\n pop %rax\n"
	" mov %rsp,%rbx\n test %eax,%eax\n .cfi_adjust_cfa_offset -8\n je 1f\n sub $8,%rsp\n"
	" .cfi_adjust_cfa_offset 8\n mov %rsp,%rbx\n add $8,%rsp\n .cfi_adjust_cfa_offset -8\n"
	"1: body\n mov %rbx,%rsp\n .cfi_adjust_cfa_offset 8\n add $16,%rsp\n"
	" .cfi_adjust_cfa_offset -16\n pop_rbx\n body\n ret\nE lag_copy\n.p2align 4\n"
	/* two registers */
	"F two\n push_rbx\n mov %rsp,%rbx\n sub $64,%rsp\n .cfi_adjust_cfa_offset 64\n body\n"
	" mov %rbx,%rsp\n .cfi_adjust_cfa_offset -64\n mov %rsp,%rbp\n sub $64,%rsp\n"
	" .cfi_adjust_cfa_offset 64\n mov 8(%rdi),%rbp\n mov %rbp,%rsp\n"
	" .cfi_adjust_cfa_offset -64\n pop_rbx\n body\n ret\nE two\n.p2align 4\n"
	/* another unit jumps to before the mov */
	SAVED("entered", "8: body")
	"F enters\n push_rbx\n sub $64,%rsp\n .cfi_adjust_cfa_offset 64\n body\n jmp 8b\nE enters\n"
	".p2align 4\n"
	/* a pointer leads to before the mov */
	SAVED("pointed", "9: body")
	/* another function in the unit begins before the mov */
	SAVED("named", "call other\n .globl second\n .type second,@function\nsecond: body")
	".section .rodata\n.p2align 2\ntable: .long 2b-table,3b-table,-1\n"
	"table3: .long 10b-table3,-1\n"
	"table2: .long 4b-table2,5b-table2,7b-table2,-1\n.data\n.p2align 3\n.quad 9b\n"
	END;

static const struct expected restores[] = {
	{ "kept", "NOT ret+45:WINDOW" },
	{ "loops", "NOT ret+42:WINDOW" },
	{ "again", "NOT ret+41:WINDOW" },
	{ "dead_code", "NOT ret+38:WINDOW" },
	{ "locks", "NOT ret+38:WINDOW" },
	{ "switch", "NOT ret+68:WINDOW" },
	{ "early", "NOT ret+36:WINDOW ret+61:WINDOW" },
	{ "endless", "NOT" },
	{ "leaves", "NOT ret+36:WINDOW" },
	{ "no_call", "NOT ret+42:WINDOW" },
	{ "call", "CFI" },
	{ "loaded", "CFI" },
	{ "loaded_once", "CFI" },
	{ "loaded_locks", "CFI" },
	{ "pad", "CFI" },
	{ "loaded_low", "CFI" },
	{ "added_to", "CFI" },
	{ "exchanged", "CFI" },
	{ "other_lea", "CFI" },
	{ "indexed", "CFI" },
	{ "copied_late", "CFI" },
	{ "next_round", "CFI" },
	{ "before_switch", "CFI" },
	{ "through", "CFI" },
	{ "through_lea", "CFI" },
	{ "lags", "NOT ret+49:WINDOW" },
	{ "lags2", "CFI" },
	{ "lag_copy", "CFI" },
	{ "two", "CFI" },
	{ "lag_after", "CFI" },
	{ "entered", "CFI" },
	{ "pointed", "CFI" },
	{ "named", "CFI" },
	{ NULL, NULL }
};

static void test_restores(void **unused)
{
	char path[256];

	write_file("restores.s", restores_s);
	build("gcc -shared -nostdlib restores.s -o restores.so");
	snprintf(path, sizeof(path), "%s/restores.so", dir);
	visit(path, compare, (void *)restores);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_restores),
	};

	return cmocka_run_group_tests(tests, make_dir, remove_dir);
}
