/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * graph_entry.S for --clock=none: the same with nothing to hide behind, so that each store counts:
 * rsi is left alone, no time is taken or compared, and the open leaf, which
 * only its time could tell from one that has returned, isn't noted.
 */
#include "arch/x86_64/hot.inc"

	.if C_STATE != C_SITE + 4 || PB_ENTRY_LEAF != 0
	.error "pb_graph_none stores site and state at once"
	.endif

	.macro graph_none name, mode, nested
	.globl	\name
	.hidden	\name
	.type	\name, @function
	.balign 64
\name:
	.cfi_startproc
	save rsi=0
.Lsaved_\name:
	load_thread
	mov	T_CUR(%rdi), %rdx
	test	%rdx, %rdx
	jz	.Lslow_\name
	cmp	T_LO(%rdi), %rsp
	jb	.Lslow_\name
	cmp	%rsp, B_SLOT(%rdx)
	jbe	.Lslow_\name
	mov	E_DEPTH(%rdx), %eax
	cmp	pb_max_depth(%rip), %eax
	jae	.Lreject_\name
	.if \nested
	test	%eax, %eax
	jz	.Lreject_\name
	.endif
	mov	T_HINT(%rdi), %rcx
	xor	%eax, %eax
	cmpxchg	%rsp, B_SLOT(%rcx)		/* claim */
	jne	.Lslow_\name
	mov	E_DEPTH(%rdx), %eax
	inc	%eax
	mov	%eax, E_DEPTH(%rcx)
	cmpb	$PB_ENTRY_EMITTED, C_STATE(%rdx)
	jne	.Lemit_\name
.Lemitted_\name:
	mov	%rdx, C_PARENT(%rcx)
	mov	S_ID(%r11), %eax
	mov	%rax, C_SITE(%rcx)		/* and LEAF, 0, to the state */
	mov	(%rsp), %rax
	mov	S_BODY(%r11), %rdx
	mov	%rax, A_RET(%rcx)
	mov	%rdx, A_BODY(%rcx)
	movq	$0, B_START(%rcx)
	lea	16(%rcx), %rdx
	lea	-PB_GATE_DISTANCE(%rcx), %rax
	mov	%rcx, T_CUR(%rdi)
	mov	%rdx, T_HINT(%rdi)
	lea	-1(%rsp), %rdx
	mov	%rax, (%rsp)			/* the slot holds the gate, and leads there */
	mov	%rdx, B_SLOT(%rcx)		/* live */
	restore rsi=0
.Lend_\name:
	mov	F_R11(%rsp), %r11
	lea	8(%rsp), %rsp			/* drop the slot */
	.cfi_remember_state
	cfi_behind_slot
	jmp	*-8(%rsp)
	.cfi_restore_state

.Lreject_\name:
	mov	S_BODY(%r11), %rax
	mov	%rax, F_TARGET(%rsp)
	restore rsi=0
.Lreject_end_\name:
	mov	F_R11(%rsp), %r11
	jmp	*F_TARGET(%rsp)

.Lemit_\name:
	cmpb	$PB_ENTRY_LEAF, C_STATE(%rdx)
	jne	.Lemit_slow_\name
	movb	$PB_ENTRY_EMITTED, C_STATE(%rdx)
	mov	$8, %eax
	xadd	%rax, T_POS(%rdi)
	cmp	T_END(%rdi), %rax
	jae	.Lemit_full_\name
	mov	C_SITE(%rdx), %edi
	lea	PB_TAG_ENTRY(, %rdi, 4), %rdi
	mov	%rdi, (%rax)
	load_thread
	jmp	.Lemitted_\name
.Lemit_full_\name:
	movb	$PB_ENTRY_LEAF, C_STATE(%rdx)
.Lemit_slow_\name:
	mov	%rsi, F_RSI(%rsp)
	lea	.Lemitted_slow_\name(%rip), %rax
	jmp	pb_emit_slow
.Lslow_\name:
	mov	%rsi, F_RSI(%rsp)
	mov	$(\mode), %edx
	jmp	pb_enter_slow
.Lslow_end_\name:
.Lemitted_slow_\name:
	mov	F_RSI(%rsp), %rsi
	jmp	.Lemitted_\name
	.cfi_endproc
	hot_range \name, .Lsaved_\name, .Lend_\name, 0
	hot_range .Lreject_\name, .Lreject_\name, .Lreject_end_\name, 0
	hot_range .Lemit_\name, .Lemit_\name, .Lslow_end_\name, 0
	.size \name, . - \name
	.endm

	graph_none pb_graph_none, 0, 0
	graph_none pb_graph_none_nested, PB_ENTER_NESTED, 1

	.section .note.GNU-stack,"",@progbits
