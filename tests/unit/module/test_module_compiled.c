/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Tests functions in assembly that have the shape of compilers' output in real programs: functions
 * that end with an instruction or call that never returns, and CFI that is not exact everywhere.
 * For each shape, a similar function whose exits can't be proven must stay entry-only. */
#include "exits_expect.h"

/* The function `name` has a cold part, which is `code`. */
#define COLD(name, code) \
	".pushsection .text.unlikely,\"ax\"\n.type " name ".cold,@function\n" \
	name ".cold: .cfi_startproc\n " code "\n.cfi_endproc\n" \
	".size " name ".cold,.-" name ".cold\n.popsection\n"
#define FAILING(name, code) COLD(name, ".cfi_adjust_cfa_offset 8\n call other\n " code) \
	"F " name "\n push_rbx\n test %eax,%eax\n ja " name ".cold\n call other\n pop_rbx\n" \
	" body\n ret\nE " name "\n" name ".end:\n"

static const char *const ends_s = MACROS
	".text\n.p2align 4\n"
	"F other\n body\n body\n ret\nE other\n.p2align 4\n"
	/* After a store to the page at 0, the program never continues. So the code after the store
	 * belongs to another function. HAProxy's BUG_ON() ends with such a store */
	"F bug\n body\n je bug.cold\n body\n ret\nE bug\n.p2align 4\n"
	".type bug.cold,@function\nbug.cold: .cfi_startproc\n push_rbx\n call other\n"
	" movb $0,1\n .cfi_endproc\n .size bug.cold,.-bug.cold\n"
	".cfi_startproc\n .cfi_adjust_cfa_offset 32\n body\n add $32,%rsp\n"
	" .cfi_adjust_cfa_offset -32\n ret\n.cfi_endproc\n.p2align 4\n"
	/* The jump leads to another function's cold part, which has another frame. The cold part
	 * of `impossible` never returns, so this jump does no harm. Mesa has such jumps */
	"F impossible\n push_rbx\n push_rbx\n test %eax,%eax\n ja dead_end\n call other\n pop_rbx\n"
	" pop_rbx\n body\n ret\nE impossible\n.p2align 4\n"
	"F possible\n push_rbx\n push_rbx\n test %eax,%eax\n ja returns\n call other\n pop_rbx\n"
	" pop_rbx\n body\n ret\nE possible\n.p2align 4\n"
	"dead_end: .cfi_startproc\n .cfi_adjust_cfa_offset 32\n1: body\n je 1b\n call other\n ud2\n"
	".cfi_endproc\n"
	"returns: .cfi_startproc\n .cfi_adjust_cfa_offset 32\n body\n add $32,%rsp\n"
	" .cfi_adjust_cfa_offset -32\n body\n ret\n.cfi_endproc\n"
	"F owner\n sub $32,%rsp\n .cfi_adjust_cfa_offset 32\n test %eax,%eax\n je dead_end\n"
	" jne returns\n call other\nE owner\n.p2align 4\n"
	/* A cold part jumps to the end of its own function after a call that doesn't return: gcc
	 * does this for __builtin_unreachable(). PostgreSQL's palloc() has such a part */
	FAILING("fails", "jmp fails.end") ".p2align 4\n"
	FAILING("no_padding", "jmp no_padding.end")
	FAILING("not_own", "jmp no_padding.end") ".p2align 4\n"
	COLD("no_frame", "body\n jmp no_frame.end")
	"F no_frame\n test %eax,%eax\n ja no_frame.cold\n body\n ret\nE no_frame\n"
	"no_frame.end: .p2align 4\n"
	/* after a store to the thread's memory, the program continues */
	"F stores\n body\n push_rbx\n movb $0,%fs:1\nE stores\n"
	".cfi_startproc\n .cfi_adjust_cfa_offset 32\n body\n add $32,%rsp\n"
	" .cfi_adjust_cfa_offset -32\n ret\n.cfi_endproc\n.p2align 4\n"
	END;

/* The function `name` ends with a call. After the function, there is code with an FDE of its own.
 * The CFA at the start of this code is rsp + cfa. */
#define SPLIT(name, start, cfa, code) \
	"F " name "\n body\n push_rbx\n call other\nE " name "\n" start "\n.cfi_startproc\n" \
	" .cfi_def_cfa_offset " cfa "\n" code "\n.cfi_endproc\n.p2align 4\n"
#define POPS "body\n pop_rbx\n body\n ret"

static const char *const splits_s = MACROS
	".text\n.p2align 4\n"
	"F other\n body\n body\n ret\nE other\n.p2align 4\n"
	/* the call returns to code with another FDE, where nothing else leads */
	SPLIT("split", "", "16", POPS)
	SPLIT("padded", "nopl 0(%rax)", "16", POPS)
	SPLIT("looped", "", "16", "1: body\n jne 1b\n " POPS)
	SPLIT("bad", "", "16", "body\n ret")
	"F jumps_too\n push_rbx\n test %eax,%eax\n je 2f\n body\n call other\nE jumps_too\n"
	"2: .cfi_startproc\n .cfi_def_cfa_offset 16\n" POPS "\n.cfi_endproc\n.p2align 4\n"
	/* the code belongs to something else: it has another frame, a name, or another way leads
	 * there */
	SPLIT("framed", "", "32", "body\n ret")
	SPLIT("named", ".type other.cold,@function\nother.cold:", "16", "body\n ret")
	SPLIT("labelled", "label:", "16", "body\n ret")
	SPLIT("called", "3:", "16", "body\n ret")
	SPLIT("jumped_to", "4:", "16", "body\n ret")
	SPLIT("in_table", "5:", "16", "body\n ret")
	"F caller\n push_rbx\n call 3b\n test %eax,%eax\n je 4b\n lea table(%rip),%rdx\n"
	" movslq (%rdx,%rdi,4),%rax\n add %rdx,%rax\n jmp *%rax\nE caller\n.p2align 4\n"
	".section .rodata\n.p2align 2\ntable: .long 5b-table,-1\n"
	END;

static const struct expected splits[] = {
	{ "split", "NOT ret+37:WINDOW" },
	{ "padded", "NOT ret+40:WINDOW" },
	{ "looped", "goes on, NOT ret+49:WINDOW" },
	{ "bad", "UNPROVEN" },
	{ "jumps_too", "NOT ret+41:WINDOW" },
	{ "framed", "NOT" },
	{ "named", "NOT" },
	{ "labelled", "NOT" },
	{ "called", "NOT" },
	{ "jumped_to", "NOT" },
	{ "in_table", "NOT" },
	{ NULL, NULL }
};

static const struct expected ends[] = {
	{ "bug", "NOT ret+22:ENTRY" },
	{ "impossible", "NOT ret+23:WINDOW" },
	{ "possible", "FRAME" },
	{ "fails", "NOT ret+25:WINDOW" },
	{ "no_padding", "NOT ret+25:WINDOW" },
	{ "not_own", "FRAME" },
	{ "no_frame", "LOST" },
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
	write_file("splits.s", splits_s);
	build("gcc -shared -nostdlib splits.s -o splits.so");
	snprintf(path, sizeof(path), "%s/splits.so", dir);
	visit(path, compare, (void *)splits);
}

/* The function `name` has rows that lag over the instructions. */
#define LAG_OVER(name, instructions) \
	"F " name "\n push_rbx\n sub $96,%rsp\n .cfi_adjust_cfa_offset 96\n call other\n" \
	" pop %rbx\n push %rax\n push %rax\n" instructions "\n .cfi_adjust_cfa_offset 8\n body\n" \
	" add $104,%rsp\n .cfi_adjust_cfa_offset -104\n pop_rbx\n body\n ret\nE " name "\n" \
	".p2align 4\n"

/* In the function `name`, a branch over rows that lag leads to code with the rows `other`. */
#define ASTRAY(name, other, back) \
	"F " name "\n push_rbx\n sub $16,%rsp\n .cfi_adjust_cfa_offset 16\n call other\n" \
	" add $16,%rsp\n test %eax,%eax\n je 2f\n .cfi_adjust_cfa_offset -16\n pop_rbx\n" \
	" jmp other\n .cfi_adjust_cfa_offset 8\n" other "\n2: body\n" back "\n pop_rbx\n body\n" \
	" ret\nE " name "\n.p2align 4\n"

static const char *const lags_s = MACROS
	".text\n.p2align 4\n"
	"F other\n body\n body\n ret\nE other\n.p2align 4\n"
	/* clang adds to rsp before a branch, and writes the row after the branch */
	"F merged\n push_rbx\n sub $16,%rsp\n .cfi_adjust_cfa_offset 16\n call other\n"
	" add $16,%rsp\n test %eax,%eax\n je 1f\n .cfi_adjust_cfa_offset -16\n pop_rbx\n"
	" jmp other\n .cfi_adjust_cfa_offset 8\n1: pop_rbx\n body\n ret\nE merged\n.p2align 4\n"
	/* clang writes the row of a push after the next instruction */
	"F late\n push_rbx\n call other\n push %rax\n mov %rax,%rdi\n .cfi_adjust_cfa_offset 8\n"
	" push %rax\n .cfi_adjust_cfa_offset 8\n call other\n add $16,%rsp\n"
	" .cfi_adjust_cfa_offset -16\n pop_rbx\n body\n ret\nE late\n.p2align 4\n"
	/* gcc takes an address on the stack by lea, and restores rsp from it */
	"F by_lea\n push_rbx\n sub $16,%rsp\n .cfi_adjust_cfa_offset 16\n sub $8,%rsp\n"
	" .cfi_adjust_cfa_offset 8\n push %rax\n .cfi_adjust_cfa_offset 8\n lea 16(%rsp),%rbx\n"
	" call other\n mov %rbx,%rsp\n .cfi_adjust_cfa_offset -16\n call other\n add $16,%rsp\n"
	" .cfi_adjust_cfa_offset -16\n pop_rbx\n body\n ret\nE by_lea\n.p2align 4\n"
	/* rows that lag, and are not proven. The branch leads to a row with another offset */
	"F astray\n push_rbx\n sub $16,%rsp\n .cfi_adjust_cfa_offset 16\n call other\n"
	" add $16,%rsp\n test %eax,%eax\n je 2f\n .cfi_adjust_cfa_offset -16\n pop_rbx\n"
	" jmp other\n .cfi_adjust_cfa_offset 16\n2: pop_rbx\n body\n ret\nE astray\n.p2align 4\n"
	/* a branch leads to a row that lags */
	"F led_to\n push_rbx\n test %eax,%eax\n je 3f\n push %rax\n body\n3: body\n"
	" .cfi_adjust_cfa_offset 8\n pop %rax\n .cfi_adjust_cfa_offset -8\n pop_rbx\n ret\n"
	"E led_to\n.p2align 4\n"
	/* there is an exit among the rows that lag */
	"F leaves\n push_rbx\n body\n pop %rbx\n body\n je other\n"
	" .cfi_adjust_cfa_offset -8\n body\n ret\nE leaves\n.p2align 4\n"
	/* where the rows lag, an instruction writes to the return slot */
	"F writes\n sub $16,%rsp\n body\n mov %rax,16(%rsp)\n .cfi_adjust_cfa_offset 16\n body\n"
	" add $16,%rsp\n .cfi_adjust_cfa_offset -16\n body\n ret\nE writes\n.p2align 4\n"
	/* the rows never become right */
	"F never\n push_rbx\n body\n add $8,%rsp\n body\n test %eax,%eax\n body\nE never\n"
	".p2align 4\n"
	/* Where the rows lag, the return address is popped, and another value is pushed. An access
	 * of the slot in AVX-512 has its displacement divided by 64. rsp changes in ways that the
	 * sweep doesn't follow */
	"F swaps_ra\n push %rax\n .cfi_adjust_cfa_offset 8\n body\n pop %rax\n pop %rdx\n"
	" push %rcx\n .cfi_adjust_cfa_offset -8\n body\n ret\nE swaps_ra\n.p2align 4\n"
	"F writes_wide\n sub $200,%rsp\n vmovups %zmm0,192(%rsp)\n"
	" .cfi_adjust_cfa_offset 200\n body\n add $200,%rsp\n .cfi_adjust_cfa_offset -200\n"
	" body\n ret\nE writes_wide\n.p2align 4\n"
	LAG_OVER("leaves_frame", "leave")
	LAG_OVER("by_register", "sub %rax,%rsp")
	LAG_OVER("by_memory", "add (%rdi),%rsp")
	LAG_OVER("aligns", "and $-64,%rsp")
	LAG_OVER("exchanges", "xchg %rax,%rsp")
	LAG_OVER("pops_it", "pop %rsp\n push %rax")
	LAG_OVER("pops_16", "pop %ax\n push %rdx")
	LAG_OVER("half", "add $0,%esp")
	LAG_OVER("moves", "mov %rsp,%rcx\n mov %rcx,%rsp")
	LAG_OVER("lea_32", "lea (%rsp),%esp")
	LAG_OVER("lea_other", "lea (%rbx),%rsp")
	LAG_OVER("pushes_16", "push %ax\n pop %rdx")
	LAG_OVER("indexes", "mov %rax,(%rsp,%rcx,8)")
	LAG_OVER("comes_near", "mov %rax,80(%rsp)")
	LAG_OVER("saves_all", "fxsave (%rsp)")
	LAG_OVER("calls", "call other")
	LAG_OVER("harmless", "mov %rsp,%rcx\n cmp %rcx,%rsp\n sub $8,%rsp\n pop %rdx\n"
		 " mov %rdx,1000(%rdi)\n mov %rdx,8(%rsp)\n lea 8(%rsp),%rsp\n push %rdx")
	/* rows between the contradiction and the agreement aren't based on rsp */
	"F to_rbx\n push_rbx\n mov %rsp,%rbx\n push %rax\n body\n .cfi_def_cfa_register %rbx\n"
	" body\n mov %rbx,%rsp\n .cfi_def_cfa_register %rsp\n pop_rbx\n body\n ret\nE to_rbx\n"
	".p2align 4\n"
	/* the branch leads to a row with another register, or with another place of the return
	 * address */
	ASTRAY("astray_reg", ".cfi_def_cfa_register %rbx", ".cfi_def_cfa_register %rsp")
	ASTRAY("astray_ra", ".cfi_offset %rip,-16", ".cfi_offset %rip,-8")
	/* instructions that look like changes of rsp, or like copies of rsp */
	"F lookalikes\n push_rbx\n mov %rax,(%rsp)\n sub $64,%rsp\n .cfi_adjust_cfa_offset 64\n"
	" addq $8,16(%rsp)\n add $8,%r12\n lea 8(%rsp),%r12\n call other\n add $64,%rsp\n"
	" .cfi_adjust_cfa_offset -64\n pop_rbx\n body\n ret\nE lookalikes\n.p2align 4\n"
	/* the address that lea takes is not the one that the row after the mov needs */
	"F other_lea\n push_rbx\n sub $16,%rsp\n .cfi_adjust_cfa_offset 16\n lea 8(%rsp),%rbx\n"
	" call other\n mov %rbx,%rsp\n .cfi_adjust_cfa_offset -16\n pop_rbx\n body\n ret\n"
	"E other_lea\n.p2align 4\n"
	END;

static const struct expected lags[] = {
	{ "merged", "NOT jmp+19:WINDOW ret+32:WINDOW" },
	{ "late", "NOT ret+31:WINDOW" },
	{ "by_lea", "NOT ret+43:WINDOW" },
	{ "astray", "CFI" },
	{ "led_to", "CFI" },
	{ "leaves", "CFI" },
	{ "writes", "CFI" },
	{ "never", "CFI" },
	{ "swaps_ra", "CFI" },
	{ "writes_wide", "CFI" },
	{ "leaves_frame", "CFI" },
	{ "by_register", "CFI" },
	{ "by_memory", "CFI" },
	{ "aligns", "CFI" },
	{ "exchanges", "CFI" },
	{ "pops_it", "CFI" },
	{ "pops_16", "CFI" },
	{ "half", "CFI" },
	{ "moves", "CFI" },
	{ "lea_32", "CFI" },
	{ "lea_other", "CFI" },
	{ "pushes_16", "CFI" },
	{ "indexes", "CFI" },
	{ "comes_near", "CFI" },
	{ "saves_all", "CFI" },
	{ "calls", "CFI" },
	{ "harmless", "NOT ret+67:WINDOW" },
	{ "to_rbx", "CFI" },
	{ "astray_reg", "CFI" },
	{ "astray_ra", "CFI" },
	{ "lookalikes", "NOT ret+44:WINDOW" },
	{ "other_lea", "CFI" },
	{ NULL, NULL }
};

static void test_lags(void **unused)
{
	char path[256];

	write_file("lags.s", lags_s);
	build("gcc -shared -nostdlib lags.s -o lags.so");
	snprintf(path, sizeof(path), "%s/lags.so", dir);
	visit(path, compare, (void *)lags);
}

/* Assembly in a stripped file: `unseen` and `unknown` have neither symbols nor FDEs, as local
 * functions of nasm. */
static const char *const nameless_s = MACROS
	".text\n.p2align 4\n"
	"F other\n body\n body\n ret\nE other\n.p2align 4\n"
	"F calls\n push_rbx\n call .Lunseen\n pop_rbx\n body\n ret\nE calls\n.p2align 4\n"
	"F tail\n push_rbx\n call other\n pop_rbx\n jmp .Lunseen\nE tail\n.p2align 4\n"
	"F tail_pointer\n push_rbx\n call other\n pop_rbx\n jmp .Lpointed\nE tail_pointer\n"
	".p2align 4\n"
	/* the frame is in place */
	"F framed\n push_rbx\n call other\n jmp .Lunseen\nE framed\n.p2align 4\n"
	/* nothing shows that `unknown` is a function. It may be a part of this one */
	"F to_part\n push_rbx\n call other\n pop_rbx\n jmp .Lunknown\nE to_part\n.p2align 4\n"
	".Lunseen: body\n body\n ret\n.p2align 4\n"
	".Lpointed: body\n body\n ret\n.p2align 4\n"
	".Lunknown: body\n body\n ret\n"
	".data\n.quad .Lpointed\n"
	END;

/* Code without FDEs that jumps into functions. The depth of the stack isn't known there. */
static const char *const strays_s = MACROS
	".text\n.p2align 4\n"
	"F other\n body\n body\n ret\nE other\n.p2align 4\n"
	"F caller\n push_rbx\n call .Lback\n call .Linto\n call .Lfar\n call .Lentry\n"
	" call .Lreturns\n call .Ltraps\n"
	" lea .Ldata(%rip),%rax\n pop_rbx\n body\n ret\nE caller\n.p2align 4\n"
	/* nothing but a call shows that .Lback is a function. It is a part of this one */
	"F to_part\n body\n test %eax,%eax\n je .Lback\n body\n1: body\n ret\nE to_part\n"
	".p2align 4\n"
	"F into\n push_rbx\n body\n2: body\n pop_rbx\n body\n ret\nE into\n.p2align 4\n"
	"F from_far\n push_rbx\n body\n3: body\n pop_rbx\n body\n ret\nE from_far\n.p2align 4\n"
	"F from_symbol\n push_rbx\n body\n4: body\n pop_rbx\n body\n ret\nE from_symbol\n"
	".p2align 4\n"
	/* a unit jumps to code that nothing calls, and that jumps to another unit */
	"F lost\n body\n jmp .Ljumped_to\nE lost\n.p2align 4\n"
	"F from_jumped_to\n push_rbx\n body\n8: body\n pop_rbx\n body\n ret\nE from_jumped_to\n"
	".p2align 4\n"
	"F to_entry\n push_rbx\n body\n body\n pop_rbx\n body\n ret\nE to_entry\n.p2align 4\n"
	"F from_data\n push_rbx\n body\n5: body\n pop_rbx\n body\n ret\nE from_data\n"
	".p2align 4\n"
	".type cold_start,@function\ncold_start: .cfi_startproc\n .cfi_adjust_cfa_offset 8\n body\n"
	" pop_rbx\n body\n ret\n.cfi_endproc\n.size cold_start,.-cold_start\n.p2align 4\n"
	"F has_cold\n push_rbx\n test %eax,%eax\n je cold_start\n body\n pop_rbx\n ret\n"
	"E has_cold\n.p2align 4\n"
	".Lback: body\n jmp 1b\n.p2align 4\n"
	".Linto: push %rbx\n push %rbx\n body\n jmp 2b\n.p2align 4\n"
	".Lfar: body\n je 6f\n ret\n6: call 7f\n ud2\n7: jmp 3b\n.p2align 4\n"
	".Lentry: body\n je cold_start\n jmp to_entry\n.p2align 4\n"
	".Lreturns: ret\n jmp 5b\n.Ltraps: ud2\n jmp 5b\n"
	".Ljumped_to: body\n jmp 8b\n.p2align 4\n"
	".Ldata: jmp 5b\n.p2align 4\nlabel: jmp 5b\n.p2align 4\n"
	/* the symbol has no size, so the analysis makes no FDE */
	".globl no_size\n.type no_size,@function\nno_size: body\n jmp 4b\n"
	END;

static const struct expected strays[] = {
	{ "to_part", "UNPROVEN" },
	{ "into", "UNPROVEN" },
	{ "from_far", "UNPROVEN" },
	{ "from_symbol", "UNPROVEN" },
	{ "lost", "LOST" },
	{ "from_jumped_to", "UNPROVEN" },
	{ "to_entry", "NOT ret+32:WINDOW" },
	{ "from_data", "NOT ret+32:WINDOW" },
	{ "has_cold", "UNPROVEN" },
	{ NULL, NULL }
};

static const struct expected nameless[] = {
	{ "tail", "NOT jmp+7:PADDED" },
	{ "tail_pointer", "NOT jmp+7:PADDED" },
	{ "framed", "LOST" },
	{ "to_part", "LOST" },
	{ NULL, NULL }
};

static void test_nameless(void **unused)
{
	char path[256];

	write_file("nameless.s", nameless_s);
	build("gcc -shared -nostdlib nameless.s -o nameless.so");
	snprintf(path, sizeof(path), "%s/nameless.so", dir);
	visit(path, compare, (void *)nameless);
	write_file("strays.s", strays_s);
	build("gcc -shared -nostdlib strays.s -o strays.so");
	snprintf(path, sizeof(path), "%s/strays.so", dir);
	visit(path, compare, (void *)strays);
}

/* FDEs that the assembler would not write: `fde A, B` covers the code from A to B. */
static const char *const overlaps_s = MACROS
	".macro fde from to\n .section .eh_frame,\"a\",@unwind\n .long 9f-8f\n8: .long 8b-cie\n"
	" .long \\from-.,\\to-\\from\n .byte 0\n .p2align 2\n9: .text\n.endm\n"
	".macro N name\n .type \\name,@function\n\\name:\n.endm\n"
	".macro Z name\n .size \\name,.-\\name\n.endm\n"
	".section .eh_frame,\"a\",@unwind\ncie: .long 1f-0f\n0: .long 0\n .byte 1\n .asciz \"zR\"\n"
	" .byte 1,0x78,16,1,0x1b,0xc,7,8,0x90,1\n .p2align 2\n1:\n"
	".text\n.p2align 4\n"
	/* `before` runs on into the code after it, and its FDE reaches into that code's FDE */
	"N before\n body\n body\nZ before\n"
	"N after\n body\n mov %eax,%edx\n1: body\n ret\nZ after\nfde before 1b\n"
	".p2align 4\nfde after .Lend\n.Lend: nop\n.p2align 4\n"
	/* an FDE covers two others */
	"N outer\n body\n body\n ret\nZ outer\nN in1\n body\n body\n ret\nZ in1\n"
	"N between\n body\n body\n ret\nZ between\nN in2\n body\n body\n ret\nZ in2\n"
	"fde outer .Lend2\nfde in1 between\nfde in2 .Lend2\n.Lend2: nop\n.p2align 4\n"
	/* two FDEs cover the same bytes */
	"N twice\n body\n body\n ret\nZ twice\n.Lend3: nop\nfde twice .Lend3\nfde twice .Lend3\n"
	".p2align 4\n"
	/* FDEs that touch each other */
	"N first\n body\n body\n ret\nZ first\nN second\n body\n body\n ret\nZ second\n"
	".Lend4: nop\nfde first second\nfde second .Lend4\n"
	END;

static const struct expected overlaps[] = {
	{ "before", "OVERLAP" },
	{ "after", "OVERLAP" },
	{ "outer", "OVERLAP" },
	{ "in1", "OVERLAP" },
	{ "between", "OVERLAP" },
	{ "in2", "OVERLAP" },
	{ "twice", "OVERLAP" },
	{ "first", "NOT ret+20:ENTRY" },
	{ "second", "NOT ret+20:ENTRY" },
	{ NULL, NULL }
};

static void test_overlaps(void **unused)
{
	char path[256];

	write_file("overlaps.s", overlaps_s);
	build("gcc -shared -nostdlib -Wl,--no-eh-frame-hdr overlaps.s -o overlaps.so");
	snprintf(path, sizeof(path), "%s/overlaps.so", dir);
	visit(path, compare, (void *)overlaps);
}

/* Tables lead to a byte in the entry's first five bytes. They have offsets of 4 or 8 bytes from the
 * table, or offsets from a label. FILL isn't padding, so there are no slots. */
static const char *const tables_s =
	".macro F name\n .p2align 4, 6\n .globl \\name\n .type \\name,@function\n"
	"\\name: .cfi_startproc\n.endm\n"
	".macro E name\n .cfi_endproc\n .size \\name, .-\\name\n.endm\n.text\n"
	"F four\n xor %eax,%eax\n nopl (%rax)\n lea table(%rip),%rdx\n movslq (%rdx,%rdi,4),%rax\n"
	" add %rdx,%rax\n jmp *%rax\nE four\n"
	"F eight\n xor %eax,%eax\n nopl (%rax)\n lea wide(%rip),%rdx\n mov (%rdx,%rdi,8),%rax\n"
	" add %rdx,%rax\n jmp *%rax\nE eight\n"
	"F label\n xor %eax,%eax\n nopl (%rax)\n lea 1f(%rip),%rdx\n lea offsets(%rip),%rcx\n"
	" movslq (%rcx,%rdi,4),%rax\n add %rdx,%rax\n jmp *%rax\n1: ret\nE label\n"
	"F none\n xor %eax,%eax\n nopl (%rax)\n ret\nE none\n"
	".section .rodata\n.p2align 3\ntable: .long four-table,four+2-table\n.p2align 3\n"
	"wide: .quad eight-wide,eight+2-wide\noffsets: .long 1b-1b,label+2-1b,-1\n"
	END;

static void check_tables(const char *name)
{
	struct view v = analyse(name, PB_MODULE_RETURNS);

	assert_refused(v, "four", BRANCH);
	assert_refused(v, "eight", BRANCH);
	assert_refused(v, "label", BRANCH);
	assert_site(v, "none", PB_SITE_SYMBOL);
	drop(v);
}

/* Without section headers, the tables are in the same range of bytes as the code. */
static void test_tables(void **unused)
{
	write_file("tables.s", tables_s);
	build("gcc -shared -nostdlib -Wl,-Bsymbolic tables.s -o tables.so && "
	      "gcc -shared -nostdlib -Wl,-Bsymbolic,-z,noseparate-code,-Ttext-segment=0x10000 "
	      "tables.s -o bare.so && "
	      "head -c 8 /dev/zero | dd of=bare.so bs=1 seek=40 conv=notrunc");
	check_tables("tables.so");
	check_tables("bare.so");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_ends),
		cmocka_unit_test(test_lags),
		cmocka_unit_test(test_nameless),
		cmocka_unit_test(test_overlaps),
		cmocka_unit_test(test_tables),
	};

	return cmocka_run_group_tests(tests, make_dir, remove_dir);
}
