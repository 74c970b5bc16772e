/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Tests functions in assembly, without CFI. For such functions the analysis makes CFI of its own:
 * it follows the depth of the stack through each function. If this doesn't prove that the return
 * address is on top of the stack at each exit, the exits aren't hooked. */
#include "exits_expect.h"

/* N: a function without CFI */
#define NAKED \
	".macro N name\n .globl \\name\n .type \\name,@function\n\\name:\n.endm\n" \
	".macro Z name\n .size \\name, .-\\name\n.p2align 4\n.endm\n"

static const char *const depth_s = MACROS NAKED
	".text\n.p2align 4\n"
	"F other\n body\n body\n ret\nE other\n.p2align 4\n"
	"N leaf\n body\n body\n ret\nZ leaf\n"
	"N pushes\n push %rbx\n push %r12\n sub $24,%rsp\n body\n call other\n add $24,%rsp\n"
	" pop %r12\n pop %rbx\n body\n ret\nZ pushes\n"
	/* both paths to the return have the same depth of the stack */
	"N branches\n body\n test %eax,%eax\n je 1f\n push %rbx\n body\n pop %rbx\n1: body\n ret\n"
	"Z branches\n"
	"N loops\n push %rbx\n body\n1: body\n dec %rdi\n jne 1b\n pop %rbx\n body\n ret\nZ loops\n"
	"N frame\n push %rbp\n mov %rsp,%rbp\n and $-64,%rsp\n sub $256,%rsp\n body\n call other\n"
	" leave\n body\n ret\nZ frame\n"
	"N saved\n mov %rsp,%r12\n and $-64,%rsp\n body\n call other\n mov %r12,%rsp\n body\n ret\n"
	"Z saved\n"
	"N by_lea\n lea -40(%rsp),%rsp\n mov %rsp,%rbx\n body\n lea 40(%rbx),%rsp\n body\n ret\n"
	"Z by_lea\n"
	"N tails\n push %rbx\n body\n pop %rbx\n body\n jmp other\nZ tails\n"
	/* `shares` jumps into the middle of `shared` */
	"N shares\n push %rbx\n body\n jmp 2f\nZ shares\n"
	"N shared\n push %rbx\n body\n2: body\n pop %rbx\n body\n ret\nZ shared\n"
	/* `runs_on` runs on into `next` */
	"N runs_on\n body\n body\n .size runs_on,.-runs_on\n"
	"N next\n body\n ret\nZ next\n"
	/* three symbols name the code, and one of them has no size (libasan's vfork) */
	"N alias\n.globl unsized, alias2\n.type unsized,@function\n.type alias2,@function\n"
	"unsized: alias2: body\n body\n ret\n.size alias2,.-alias2\nZ alias\n"
	/* functions whose exits can't be proven */
	"N uneven\n body\n test %eax,%eax\n je 3f\n push %rbx\n3: body\n ret\nZ uneven\n"
	"N push_ret\n body\n push %rax\n body\n ret\nZ push_ret\n"
	"N switches\n body\n mov %rdi,%rsp\n body\n ret\nZ switches\n"
	"N clobbered\n mov %rsp,%r10\n and $-64,%rsp\n body\n call other\n mov %r10,%rsp\n body\n"
	" ret\nZ clobbered\n"
	"N half\n mov %rsp,%r12\n and $-64,%rsp\n mov %eax,%r12d\n mov %r12,%rsp\n body\n ret\n"
	"Z half\n"
	"N above\n add $8,%rsp\n body\n ret\nZ above\n"
	"N framed\n body\n push %rbx\n jmp other\nZ framed\n"
	"N computed\n body\n lea 4f(%rip),%rdx\n lea (%rdx,%rax,4),%rdx\n jmp *%rdx\n4: body\n"
	" ret\nZ computed\n"
	"N writes\n body\n mov %rax,(%rsp)\n body\n ret\nZ writes\n"
	/* `wrong` jumps into `wronged`, where the depth of the stack is different */
	"N wrong\n push %rbx\n push %rbx\n body\n jmp 5f\nZ wrong\n"
	"N wronged\n push %rbx\n body\n5: body\n pop %rbx\n body\n ret\nZ wronged\n"
	/* the symbol has no size, so the function's end isn't known */
	"N no_size\n body\n body\n ret\n.p2align 4\n"
	END;

static const struct expected depths[] = {
	{ "leaf", "NOT ret+20:ENTRY" },
	{ "pushes", "NOT ret+39:WINDOW" },
	{ "alias", "NOT ret+20:ENTRY" },
	{ "branches", "NOT ret+36:WINDOW" },
	{ "loops", "NOT ret+37:WINDOW" },
	{ "frame", "NOT ret+41:WINDOW" },
	{ "saved", "NOT ret+35:WINDOW" },
	{ "by_lea", "NOT ret+32:WINDOW" },
	{ "tails", "NOT jmp+22:WINDOW" },
	{ "shares", "NOT ret+48:WINDOW" },
	{ "shared", "NOT ret+32:WINDOW" },
	{ "runs_on", "goes on, NOT ret+30:ENTRY" },
	{ "next", "NOT ret+10:ENTRY" },
	{ "uneven", "UNPROVEN" },
	{ "push_ret", "UNPROVEN" },
	{ "switches", "UNPROVEN" },
	{ "clobbered", "UNPROVEN" },
	{ "half", "UNPROVEN" },
	{ "above", "UNPROVEN" },
	{ "framed", "FRAME" },
	{ "computed", "UNPROVEN" },
	{ "writes", "WRITES" },
	{ "wrong", "FRAME" },
	{ "wronged", "UNPROVEN" },
	{ "no_size", "UNWIND" },
	{ NULL, NULL }
};

static void test_depths(void **unused)
{
	char path[256];

	write_file("depth.s", depth_s);
	build("gcc -shared -nostdlib depth.s -o depth.so");
	snprintf(path, sizeof(path), "%s/depth.so", dir);
	visit(path, compare, (void *)depths);
}

/* Go's functions have symbols and no CFI, too. The analysis makes no CFI for them, because their
 * stacks move. So their exits aren't hooked. */
static void test_not_assembly(void **unused)
{
	char path[256];

	write_file("go.s", MACROS NAKED ".text\nN f\n mov $1,%eax\n body\n ret\nZ f\n"
		   ".section .gopclntab,\"a\"\n .quad 1\n" END);
	build("gcc -shared -nostdlib go.s -o go.so");
	snprintf(path, sizeof(path), "%s/go.so", dir);
	visit(path, compare, (void *)(struct expected[]){ { "f", "UNWIND" }, { NULL, NULL } });
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_depths),
		cmocka_unit_test(test_not_assembly),
	};

	return cmocka_run_group_tests(tests, make_dir, remove_dir);
}
