/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The long way into a call: C decides. */
#include "arch/x86_64/hot.inc"

/* Sites that always take the long way: entry only, silent, several ops. */
	slow_handler pb_graph_call, PB_ENTER_CALL, pb_enter_slow
	slow_handler pb_graph_call_nested, PB_ENTER_CALL | PB_ENTER_NESTED, pb_enter_slow
	slow_handler pb_graph_silent, PB_ENTER_SILENT, pb_enter_slow
	slow_handler pb_list, PB_ENTER_LIST, pb_enter_slow

	.macro call_c fn
	mov	%rsp, %rbp
	.cfi_def_cfa_register rbp
	and	$-16, %rsp
	call	\fn
	mov	%rbp, %rsp
	.cfi_def_cfa_register rsp
	.endm

/* struct pb_target pb_enter(site, slot, mode): rax = where to go on, rdx =
 * whether the slot is to be dropped. Nothing was done yet. */
	.balign 16
	.globl	pb_enter_slow
	.hidden	pb_enter_slow
	.type	pb_enter_slow, @function
pb_enter_slow:
	.cfi_startproc
	lea	-128(%rsp), %rsp
.Lstepped_over:
	hot_range pb_enter_slow, pb_enter_slow, .Lstepped_over
	.cfi_adjust_cfa_offset 128
	push_reg r8
	push_reg r9
	push_reg r10
	push_reg rbp
	.cfi_rel_offset rbp, 0
	mov	%r11, %rdi
	lea	160(%rsp), %rsi
	call_c	pb_enter
	pop_reg rbp
	.cfi_restore rbp
	pop_reg r10
	pop_reg r9
	pop_reg r8
	lea	128(%rsp), %rsp
	.cfi_adjust_cfa_offset -128
	mov	%rax, F_TARGET(%rsp)
	mov	F_R11(%rsp), %r11
	test	%edx, %edx
	jz	1f
	restore
	lea	8(%rsp), %rsp
	.cfi_remember_state
	cfi_behind_slot
	jmp	*F_TARGET - 8(%rsp)
1:
	.cfi_restore_state
	restore
	jmp	*F_TARGET(%rsp)
	.cfi_endproc
	.size pb_enter_slow, . - pb_enter_slow

/* bool pb_emit(thread, entry *parent, slot): its ENTRY and those above. rax = where to
 * go on; rcx, rdx, rdi, r11 are kept. */
	.balign 16
	.globl	pb_emit_slow
	.hidden	pb_emit_slow
	.type	pb_emit_slow, @function
pb_emit_slow:
	.cfi_startproc
	mov	%rax, F_TARGET(%rsp)
	lea	-128(%rsp), %rsp
	.cfi_adjust_cfa_offset 128
	push_reg rcx
	push_reg rdx
	push_reg rdi
	push_reg r11
	push_reg r8
	push_reg r9
	push_reg r10
	push_reg rbp
	.cfi_rel_offset rbp, 0
	mov	%rdx, %rsi
	lea	192(%rsp), %rdx
	call_c	pb_emit
	pop_reg rbp
	.cfi_restore rbp
	pop_reg r10
	pop_reg r9
	pop_reg r8
	pop_reg r11
	pop_reg rdi
	pop_reg rdx
	pop_reg rcx
	lea	128(%rsp), %rsp
	.cfi_adjust_cfa_offset -128
	jmp	*F_TARGET(%rsp)
	.cfi_endproc
	.size pb_emit_slow, . - pb_emit_slow

	.section .note.GNU-stack,"",@progbits
