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
	cmpq	$0, T_TOP(%rdi)			/* 0 in a new thread and after a fork */
	je	.Lfunction_slow
	cmpl	$0, T_MAX_DEPTH(%rdi)		/* 0: tracing is off */
	je	.Lfunction_done
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
.Lfunction_done:
	restore
.Lfunction_end:
	go_on
.Lfunction_full:
	pad_unless_full rdx, si, .Lfunction_slow, PAD_2
	jmp	.Lfunction_slow
.Lfunction_far:
	pad_own	rdx, si, .Lfunction_slow, PAD_2
.Lfunction_slow:
	mov	$PB_ENTER_FUNCTION, %edx
	leave	pb_enter_slow
	.cfi_endproc
.Lfunction_code_end:
	hot_range pb_function, .Lsaved_function, .Lfunction_end
	hot_range .Lfunction_full, .Lfunction_full, .Lfunction_code_end
	near_range pb_function, .Lfunction_code_end
	.size pb_function, . - pb_function

	.section .note.GNU-stack,"",@progbits
