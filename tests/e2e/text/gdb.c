/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Functions whose first instructions change the stack. Until stdin has a byte or ends, main() calls
 * middle(), and middle() calls these functions. A debugger steps through their stubs.
 */
#include <poll.h>
#include <string.h>

#define KEEP __attribute__((noipa))
volatile int sink;

KEEP int leaf(int a) { return a * 3 + sink; }

KEEP int f_pushes(int a, int b, int c)
{
	int s = leaf(a);

	s += leaf(b) * s;
	return s + leaf(c) * b;
}

KEEP __attribute__((optimize("O0"))) int f_framed(int a)
{
	volatile char b[100];

	b[3] = (char)a;
	return leaf(b[3]) + 1;
}

KEEP int f_sub(int a)
{
	volatile char b[1000];

	b[a & 7] = (char)a;
	return leaf(b[a & 7]);
}

KEEP int f_calls(int a)
{
	return leaf(1) + leaf(a);
}

KEEP __attribute__((optimize("no-omit-frame-pointer"))) int f_aligned(int a)
{
	volatile char b[256] __attribute__((aligned(64)));

	memset((char *)b, a, sizeof(b));
	return leaf(b[a & 63]);
}

KEEP int f_plain(int a) { return a + sink; }

#define ASM(name, body) int name(int a); \
	__asm__(".text; .p2align 4; .globl " #name "; .type " #name ", @function\n" \
		#name ": .cfi_startproc\n" body "\n.cfi_endproc; .size " #name ", . - " #name "\n")
/* f_call_first and f_call_memory have a call in the first five bytes */
ASM(f_call_first, "call leaf; nop; ret");
ASM(f_call_memory, "push %rax; .cfi_adjust_cfa_offset 8; call *leaf_pointer(%rip); "
    "pop %rdx; .cfi_adjust_cfa_offset -8; ret");
ASM(f_high_pushes, "push %r15; .cfi_adjust_cfa_offset 8; .cfi_rel_offset r15, 0;"
    "push %r12; .cfi_adjust_cfa_offset 8; .cfi_rel_offset r12, 0;"
    "push %rdi; .cfi_adjust_cfa_offset 8; mov %edi, %r12d; mov %edi, %r15d; lea 1(%r12), %eax;"
    "pop %rdi; .cfi_adjust_cfa_offset -8; pop %r12; .cfi_adjust_cfa_offset -8; .cfi_restore r12;"
    "pop %r15; .cfi_adjust_cfa_offset -8; .cfi_restore r15; ret");
ASM(f_lea, "lea -40(%rsp), %rsp; .cfi_adjust_cfa_offset 40; mov %edi, (%rsp); mov (%rsp), %eax;"
    "lea 40(%rsp), %rsp; .cfi_adjust_cfa_offset -40; ret");
ASM(f_push_pop, "push %rbx; .cfi_adjust_cfa_offset 8; .cfi_rel_offset rbx, 0;"
    "pop %rbx; .cfi_adjust_cfa_offset -8; .cfi_restore rbx; pushq $77;"
    ".cfi_adjust_cfa_offset 8; pop %rax; .cfi_adjust_cfa_offset -8; ret");
int (*leaf_pointer)(int) = leaf;

KEEP int middle(int a)
{
	return f_pushes(a, 2, 3) + f_framed(a) + f_sub(a) + f_calls(a) + f_aligned(a) + f_plain(a) +
	       f_call_first(a) + f_call_memory(a) + f_high_pushes(a) + f_lea(a) + f_push_pop(a);
}

int main(void)
{
	struct pollfd p = { 0, POLLIN, 0 };

	while (!poll(&p, 1, 1))
		sink += middle(5) & 1;
	return 0;
}
