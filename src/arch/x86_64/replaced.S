/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Thunks between a function's entry and the C function that replaces it
 * (engine/process/replace.c). A thunk ends with the same jump as the stub of a plain return, so
 * that the end of the call is recorded. rsp is at the slot when a thunk is entered, and at its last
 * jump. Thunk i calls pb_replacements[i], which has at most six arguments, none on the stack.
 */
#include "arch/x86_64/frame.h"

	.text
	.balign PB_THUNK_SIZE
	.globl	pb_replaced_thunks
	.hidden	pb_replaced_thunks
	.type	pb_replaced_thunks, @function
pb_replaced_thunks:
	.cfi_startproc
	.set	i, 0
	.rept	PB_MAX_REPLACED
	.balign PB_THUNK_SIZE
	sub	$8, %rsp
	.cfi_adjust_cfa_offset 8
	call	*pb_replacements + 8 * i(%rip)
	add	$8, %rsp
	.cfi_adjust_cfa_offset -8
	jmp	*pb_returns_now(%rip)
	.set	i, i + 1
	.endr
	.cfi_endproc
	.size	pb_replaced_thunks, . - pb_replaced_thunks

	.section .note.GNU-stack,"",@progbits
