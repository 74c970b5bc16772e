/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The function of test_hit_stacks.c that takes a stack for C code by the macros of the hit path. */
#include "arch/x86_64/hot.inc"

#define TF	0x100	/* in the flags: each instruction raises SIGTRAP */

	.text
	.globl	hit_stack_step
	.type	hit_stack_step, @function
hit_stack_step:
	.cfi_startproc
	pushfq
	orl	$TF, (%rsp)
	popfq
	to_hit_stack .Lnone
	mov	%rcx, %rdx
	from_hit_stack
	lea	pb_hit_stack_owners(%rip), %rax
	sub	%rax, %rdx
	shr	$3, %edx
	mov	%edx, %eax
.Lend:
	pushfq
	andl	$~TF, (%rsp)
	popfq
	ret
.Lnone:
	mov	$-1, %eax
	jmp	.Lend
	.cfi_endproc
	.size hit_stack_step, . - hit_stack_step

	.section .note.GNU-stack,"",@progbits
