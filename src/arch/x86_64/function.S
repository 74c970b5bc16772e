/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The handler of the function tracer: it records the entry and the caller's address. */
#include "arch/x86_64/hot.inc"

	.globl	pb_function
	.hidden	pb_function
	.type	pb_function, @function
	.balign 64
pb_function:
	.cfi_startproc
	save
.Lsaved_function:
	load_thread
	cmpl	$0, pb_max_depth(%rip)		/* 0: tracing is off */
	je	pb_graph_reject
	cmpq	$0, T_TOP(%rdi)			/* 0 in a new thread and after a fork */
	je	.Lfunction_slow
	clock
	mov	$16, %edx
	xadd	%rdx, T_POS(%rdi)
.Lfunction_reserved:
	unless_in_chunk rdx, rdi, rsi, .Lfunction_full
	mov	%rax, %rsi
	sub	T_LAST(%rdi), %rsi
	cmp	$NEAR_EXT, %rsi
	ja	.Lfunction_far
	mov	%rax, T_LAST(%rdi)
	mov	S_ID(%r11), %esi
	mov	(%rsp), %rcx
	shl	$ADDRESS_SHIFT, %rcx
	or	$ADDRESS_WORD, %rcx
	shl	$PB_EXT_TIME_SHIFT, %rax
	shl	$PB_EXT_SITE_SHIFT, %rsi
	lea	FUNC_WORD(%rax, %rsi), %rax
	mov	%rcx, 8(%rdx)
	mov	%rax, (%rdx)
.Lfunction_written:
	forked_words rdx, .Lfunction_reserved, .Lfunction_written
	jmp	pb_graph_reject
.Lfunction_full:
	pad_unless_full rdx, si, .Lfunction_slow, PAD_2
	jmp	.Lfunction_slow
.Lfunction_far:
	pad_own	rdx, si, .Lfunction_slow, PAD_2
.Lfunction_slow:
	mov	$PB_ENTER_FUNCTION, %edx
	jmp	pb_enter_slow
	.cfi_endproc
	hot_range pb_function, .Lsaved_function, .Lfunction_slow
	.size pb_function, . - pb_function

	.section .note.GNU-stack,"",@progbits
