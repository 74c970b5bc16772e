/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Like OCaml's runtime, the program finds the end of its stack by the guard page. Its handler jumps
 * out of a fault in the guard page. Only the program's own code may cause this fault: the agent
 * must not touch the guard page before the program touches it. The functions write their return
 * address, so that each entry takes the slow path.
 * @markers 200 thread_main/one_overflow
 * @no_return 200000
 * @lost 20000
 */
#include <ucontext.h>
#include "overflow.h"

static int by_others;
extern char __executable_start[], etext[];

/* Calls itself without end. Each call takes a little more than `step` bytes of the stack. */
void endless(long n, long step);
void leaf(void);
__asm__(".text\n"
	".p2align 4\n"
	".type endless, @function\n"
	".globl endless\n"
	"endless:\n"
	"	.cfi_startproc\n"
	"	mov (%rsp), %rax\n"
	"	mov %rax, (%rsp)\n"
	"	push %rbp\n"
	"	.cfi_adjust_cfa_offset 8\n"
	"	.cfi_rel_offset rbp, 0\n"
	"	mov %rsp, %rbp\n"
	"	.cfi_def_cfa_register rbp\n"
	"	sub %rsi, %rsp\n"
	"	inc %rdi\n"
	"	call leaf\n"
	"	call endless\n"
	"	leave\n"
	"	.cfi_def_cfa rsp, 8\n"
	"	ret\n"
	"	.cfi_endproc\n"
	".size endless, . - endless\n"
	".p2align 4\n"
	".type leaf, @function\n"
	".globl leaf\n"
	"leaf:\n"
	"	.cfi_startproc\n"
	"	mov (%rsp), %rax\n"
	"	mov %rax, (%rsp)\n"
	"	nop\n"
	"	nop\n"
	"	nop\n"
	"	ret\n"
	"	.cfi_endproc\n"
	".size leaf, . - leaf\n");

static void on_segv(int sig, siginfo_t *si, void *context)
{
	ucontext_t *uc = context;
	char *pc = (char *)uc->uc_mcontext.gregs[REG_RIP], *fault = si->si_addr;

	if (!in_guard(fault))
		die("a fault at %p", fault);
	by_others += pc < __executable_start || pc >= etext;
	siglongjmp(env, 1);
}

static KEEP void one_overflow(int n)
{
	if (!sigsetjmp(env, 1))
		endless(0, 16 + n % 50 * 16);
	marker_begin(n);
}

int main(void)
{
	overflow(200, 64 << 10, on_segv);
	if (by_others)
		die("%d of 200 faults at the stack's end weren't caused by the program's code",
		    by_others);
	puts("200 overflows");
	return 0;
}
