/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The functions of test_open_calls.c. At its entry and return, each function does what the agent
 * does at hooked entries and returns. The functions use the transitions of
 * arch/x86_64/open_call.inc, and write one word for each record.
 */
#include "arch/x86_64/open_call.inc"

	.set RECORD_LEAF, 1
	.set RECORD_ENTRY, 2
	.set RECORD_EXIT, 3

	.text
	/* The macro's code uses rax, rcx and rdx. The function's body and caller need the values of
	 * these registers, so the macro saves them in the red zone. */
	.macro traced name, site, body
	.globl	\name
	.type	\name, @function
	.balign 64
\name:
	mov	%rax, -16(%rsp)
	mov	%rcx, -24(%rsp)
	mov	%rdx, -32(%rsp)
	mov	step_top(%rip), %rcx
	open_check rcx, 3f
	cmpb	$0, O_STATE(%rcx)
	jne	1f
	btsl	$0, O_STATE(%rcx)		/* the parent's ENTRY is written next, unless a
						 * handler has written it */
	jc	1f
	mov	$8, %eax
	xadd	%rax, step_pos(%rip)
	mov	O_SITE(%rcx), %edx
	lea	RECORD_ENTRY(, %rdx, 4), %rdx
	mov	%rdx, (%rax)
1:	open_claim rcx, rax, 3f, step_top(%rip)
	movq	$\site, O_SITE(%rcx)		/* stores the site, and clears the state */
	mov	(%rsp), %rax
	mov	%rax, O_RET(%rcx)
	movq	$0, O_START(%rcx)
	open_live rcx
2:	mov	-32(%rsp), %rdx
	mov	-24(%rsp), %rcx
	mov	-16(%rsp), %rax
	jmp	4f
3:	mov	%rsp, %rdx
	call	step_save
	mov	$\site, %esi
	call	step_enter_slow
	call	step_restore
	jmp	2b

4:	push	%rbx				/* the function */
	call	\body
	pop	%rbx

	mov	%rax, -16(%rsp)
	mov	%rcx, -24(%rsp)
	mov	%rdx, -32(%rsp)
	mov	step_top(%rip), %rcx
	open_match rcx, rax, 6f
	open_leave rcx
	mov	O_SITE(%rcx), %edx
	lea	RECORD_LEAF(, %rdx, 4), %rdx
	cmpb	$0, O_STATE(%rcx)
	je	5f
	add	$(RECORD_EXIT - RECORD_LEAF), %rdx
5:	mov	$8, %eax
	xadd	%rax, step_pos(%rip)
	mov	%rdx, (%rax)
	open_free rcx, step_top(%rip)
	jmp	7f
6:	mov	%rsp, %rdx
	call	step_save
	call	step_exit_slow
	call	step_restore
7:	mov	-32(%rsp), %rdx
	mov	-24(%rsp), %rcx
	mov	-16(%rsp), %rax
	ret
	.size \name, . - \name
	.endm

/* step_save moves rsp below the red zone, and saves registers before a call of C code. It moves the
 * return slot from rdx to rdi. step_restore restores rsp and the registers. Both routines first pop
 * their own return address. */
step_save:
	pop	%rcx				/* step_save's return address, which the call pushed
						 * into an unused word of the red zone */
	lea	-128(%rsp), %rsp		/* after the pop, rsp is at the return slot */
	push	%r8
	push	%r9
	push	%r10
	push	%r11
	push	%rdi
	push	%rsi
	push	%rbp
	mov	%rsp, %rbp
	mov	%rdx, %rdi
	and	$-16, %rsp
	jmp	*%rcx
step_restore:
	pop	%rcx
	mov	%rbp, %rsp
	pop	%rbp
	pop	%rsi
	pop	%rdi
	pop	%r11
	pop	%r10
	pop	%r9
	pop	%r8
	lea	128(%rsp), %rsp
	jmp	*%rcx

	traced	step_outer, 1, step_outer_body
	traced	step_inner, 2, step_inner_body
	traced	step_deep, 3, step_deep_body

	.section .note.GNU-stack,"",@progbits
