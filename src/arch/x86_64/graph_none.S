/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * graph_entry.S for --clock=none: the same with nothing to hide behind, so that each store counts:
 * rdi and rsi are left alone, no time is taken or compared, and the open leaf, which
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
	save rdi=0, rsi=0
.Lsaved_\name:
	load_thread rdx
	mov	T_CUR(%rdx), %rcx
	test	%rcx, %rcx			/* new thread; after fork */
	jz	.Lslow_\name
	cmp	T_LO(%rdx), %rsp		/* another stack; */
	jb	.Lslow_\name
	cmp	%rsp, B_SLOT(%rcx)		/* or current was skipped, or tail-called us */
	jbe	.Lslow_\name
	mov	E_DEPTH(%rcx), %eax
	cmp	pb_max_depth(%rip), %eax
	jae	.Lreject_\name
	.if \nested
	test	%eax, %eax
	jz	.Lreject_\name
	.endif
	cmpb	$PB_ENTRY_EMITTED, C_STATE(%rcx)
	jne	.Lemit_\name
.Lemitted_\name:
	mov	T_HINT(%rdx), %rdx
	xor	%eax, %eax
	cmpxchg	%rsp, B_SLOT(%rdx)		/* claim */
	jne	.Lslow_\name
	mov	E_DEPTH(%rcx), %eax
	inc	%eax
	mov	%eax, E_DEPTH(%rdx)
	mov	%rcx, C_PARENT(%rdx)
	mov	S_ID(%r11), %eax
	mov	%rax, C_SITE(%rdx)		/* and LEAF, 0, to the state */
	mov	(%rsp), %rax
	mov	S_BODY(%r11), %rcx
	mov	%rax, A_RET(%rdx)
	mov	%rcx, A_BODY(%rdx)
	movq	$0, B_START(%rdx)
	load_thread rcx
	lea	16(%rdx), %rax
	mov	%rdx, T_CUR(%rcx)
	mov	%rax, T_HINT(%rcx)
	lea	-PB_GATE_DISTANCE(%rdx), %rax
	mov	%rax, (%rsp)			/* the slot holds the gate, and leads there */
	lea	-1(%rsp), %rax
	mov	%rax, B_SLOT(%rdx)		/* live */
	restore rdi=0, rsi=0
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
	restore rdi=0, rsi=0
.Lreject_end_\name:
	mov	F_R11(%rsp), %r11
	jmp	*F_TARGET(%rsp)

	/* The parent's ENTRY, which its first traced callee needs: rcx is it. */
.Lemit_\name:
	cmpb	$PB_ENTRY_LEAF, C_STATE(%rcx)
	jne	.Lslow_\name
	movb	$PB_ENTRY_EMITTED, C_STATE(%rcx)
	mov	$8, %eax
	xadd	%rax, T_POS(%rdx)
	cmp	T_END(%rdx), %rax
	jae	.Lemit_full_\name
	mov	C_SITE(%rcx), %edx
	lea	PB_TAG_ENTRY(, %rdx, 4), %rdx
	mov	%rdx, (%rax)
	load_thread rdx
	jmp	.Lemitted_\name
.Lemit_full_\name:
	movb	$PB_ENTRY_LEAF, C_STATE(%rcx)
.Lslow_\name:
	mov	%rdi, F_RDI(%rsp)
	mov	%rsi, F_RSI(%rsp)
	mov	$(\mode), %edx
	jmp	pb_enter_slow
.Lslow_end_\name:
	.cfi_endproc
	hot_range \name, .Lsaved_\name, .Lend_\name, 0
	hot_range .Lreject_\name, .Lreject_\name, .Lreject_end_\name, 0
	hot_range .Lemit_\name, .Lemit_\name, .Lslow_end_\name, 0
	.size \name, . - \name
	.endm

	graph_none pb_graph_none, 0, 0
	graph_none pb_graph_none_nested, PB_ENTER_NESTED, 1

	.section .note.GNU-stack,"",@progbits
