/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Two functions that C can't express: a wrapper of a variadic function, and a raw clone(). */
#include "arch/x86_64/hot.inc"

	.text

/* Runs in place of libc's makecontext(), which is variadic. C code looks at the arguments. Then
 * libc's function gets them unchanged. */
	.globl	pb_our_makecontext
	.hidden	pb_our_makecontext
	.type	pb_our_makecontext, @function
	.balign 16
pb_our_makecontext:
	.cfi_startproc
	.irp reg, rdi, rsi, rdx, rcx, r8, r9, rax
	push_reg \reg
	.endr
	lea	7*8(%rsp), %rsi
	call	pb_note_makecontext
	.irp reg, rax, r9, r8, rcx, rdx, rsi, rdi
	pop_reg \reg
	.endr
	jmp	*pb_original_makecontext(%rip)
	.cfi_endproc
	.size pb_our_makecontext, . - pb_our_makecontext

/* A raw clone(), for the agent's thread and the stop-the-world helper. It stores fn and
 * arg on top of the new stack; the child pops them there and calls fn(arg). */
	.globl	pb_clone
	.hidden	pb_clone
	.type	pb_clone, @function
pb_clone:	/* long pb_clone(flags, stack_top, fn, arg, ctid) */
	.cfi_startproc
	sub	$16, %rsi
	mov	%rdx, 0(%rsi)
	mov	%rcx, 8(%rsi)
	xor	%edx, %edx
	mov	%r8, %r10
	xor	%r8d, %r8d
	mov	$56, %eax
	syscall
	test	%rax, %rax
	jz	1f
	ret
1:	.cfi_undefined rip
	xor	%ebp, %ebp
	pop	%rax
	pop	%rdi
	call	*%rax
	mov	%eax, %edi
	mov	$60, %eax
	syscall
	hlt
	.cfi_endproc
	.size pb_clone, . - pb_clone

	.section .note.GNU-stack,"",@progbits
