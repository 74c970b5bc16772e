/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The entry of a call whose return is hooked, and calls that aren't traced. */
#include "arch/x86_64/hot.inc"

	.macro graph_entry name, mode, nested, lazy
	.globl	\name
	.hidden	\name
	.type	\name, @function
	.balign 64
\name:
	.cfi_startproc
	save
.Lsaved_\name:
	load_thread
	mov	T_CUR(%rdi), %rdx
	test	%rdx, %rdx			/* new thread; after fork */
	jz	.Lslow_\name
	cmp	T_LO(%rdi), %rsp		/* another stack; */
	jb	.Lslow_\name
	cmp	%rsp, B_SLOT(%rdx)		/* or current was skipped, or tail-called us */
	jbe	.Lslow_\name
	mov	E_DEPTH(%rdx), %esi
	cmp	pb_max_depth(%rip), %esi
	jae	.Ldeep_\name
	.if \nested
	test	%esi, %esi
	jz	pb_graph_reject
	.endif
	mov	T_HINT(%rdi), %rcx
	xor	%eax, %eax
	cmpxchg	%rsp, B_SLOT(%rcx)		/* claim */
	jne	.Lslow_\name
	mov	%rdx, C_PARENT(%rcx)
	inc	%esi
	mov	%esi, E_DEPTH(%rcx)
	.if \lazy
	movl	$PB_ENTRY_LAZY, C_STATE(%rcx)
	.else
	cmpb	$PB_ENTRY_EMITTED, C_STATE(%rdx)
	jne	.Lemit_\name
.Lemitted_\name:
	movl	$PB_ENTRY_LEAF, C_STATE(%rcx)
	.endif
	mov	(%rsp), %rax
	mov	%rax, A_RET(%rcx)
	mov	S_BODY(%r11), %rax
	mov	%rax, A_BODY(%rcx)
	mov	S_ID(%r11), %esi
	mov	%esi, C_SITE(%rcx)
	clock
	.if !\lazy
	mov	T_LEAF(%rdi), %rdx
	mov	%esi, L_SITE(%rdx)
	mov	%rax, L_START(%rdx)
	.endif
	mov	%rax, B_START(%rcx)
	lea	16(%rcx), %rdx
	lea	-PB_GATE_DISTANCE(%rcx), %rax
	mov	%rcx, T_CUR(%rdi)
	mov	%rdx, T_HINT(%rdi)
	mov	%rax, F_TARGET(%rsp)
	add	$PB_GATE_RETURN, %rax
	lea	-1(%rsp), %rdx
	mov	%rax, (%rsp)			/* the slot holds the gate */
	mov	%rdx, B_SLOT(%rcx)		/* live */
	restore
.Lend_\name:
	mov	F_R11(%rsp), %r11
	lea	8(%rsp), %rsp			/* drop the slot */
	cfi_behind_slot
	jmp	*F_TARGET - 8(%rsp)
	.cfi_endproc
	hot_range \name, .Lsaved_\name, .Lend_\name

	.if !\lazy
	/* The parent's ENTRY, which its first traced callee needs. rcx entry
	 * (claimed), rdx parent, rdi thread, r11 site are kept. */
	.cfi_startproc
.Lemit_\name:
	cmpb	$PB_ENTRY_LEAF, C_STATE(%rdx)
	jne	.Lemit_slow_\name
	btsl	$0, C_STATE(%rdx)		/* EMITTED, unless a handler did it just now */
	jc	.Lemitted_\name
	mov	$8, %eax
	xadd	%rax, T_POS(%rdi)
	unless_in_chunk rax, rdi, rsi, .Lemit_full_\name
	mov	%r8, F_R8(%rsp)
.Lemit_r8_\name:
	mov	B_START(%rdx), %rsi
	mov	%rsi, %r8
	sub	T_LAST(%rdi), %r8
	cmp	$NEAR_TIME, %r8
	ja	.Lemit_far_\name
	mov	%rsi, T_LAST(%rdi)
	mov	C_SITE(%rdx), %r8d
	shl	$PB_TIME_SHIFT, %rsi
	lea	PB_TAG_ENTRY(, %r8, 4), %r8
	or	%r8, %rsi
	mov	%rsi, (%rax)
	mov	F_R8(%rsp), %r8
	jmp	.Lemitted_\name
.Lemit_far_\name:
	mov	F_R8(%rsp), %r8
	movq	$PAD_1, (%rax)
	jmp	.Lemit_back_\name
.Lemit_full_\name:
	pad_unless_full rax, rsi
.Lemit_back_\name:
	movb	$PB_ENTRY_LEAF, C_STATE(%rdx)
.Lemit_slow_\name:
	lea	.Lemitted_\name(%rip), %rax
	jmp	pb_emit_slow
	.cfi_endproc
	hot_range .Lemit_\name, .Lemit_\name, .Lemit_r8_\name
	.endif

	.cfi_startproc
.Ldeep_\name:
	test	%esi, %esi
	jns	pb_graph_reject			/* else called under --clock=none */
.Lslow_\name:
	mov	$(\mode), %edx
	jmp	pb_enter_slow
	.cfi_endproc
	hot_range .Lslow_\name, .Lslow_\name, .Lslow_end_\name
.Lslow_end_\name:
	.size \name, . - \name
	.endm

	graph_entry pb_graph, 0, 0, 0
	graph_entry pb_graph_nested, PB_ENTER_NESTED, 1, 0
	graph_entry pb_graph_lazy, PB_ENTER_LAZY, 0, 1
	graph_entry pb_graph_lazy_nested, PB_ENTER_LAZY | PB_ENTER_NESTED, 1, 1

/* Not traced: on to the body. */
	.balign 16
	.globl	pb_graph_reject
	.hidden	pb_graph_reject
	.type	pb_graph_reject, @function
pb_graph_reject:
	.cfi_startproc
	mov	S_BODY(%r11), %rax
	mov	%rax, F_TARGET(%rsp)
	restore
.Lend_reject:
	mov	F_R11(%rsp), %r11
	jmp	*F_TARGET(%rsp)
	.cfi_endproc
	hot_range pb_graph_reject, pb_graph_reject, .Lend_reject
	.size pb_graph_reject, . - pb_graph_reject

/* Not traced, but replaced: on to the body that stands in for the function. */
	.balign 16
	.globl	pb_direct
	.hidden	pb_direct
	.type pb_direct, @function
pb_direct:
	.cfi_startproc
	mov	%rax, F_RAX(%rsp)
	mov	S_BODY(%r11), %rax
	mov	%rax, F_TARGET(%rsp)
	mov	F_RAX(%rsp), %rax
	mov	F_R11(%rsp), %r11
.Lend_direct:
	jmp	*F_TARGET(%rsp)
	.cfi_endproc
	hot_range pb_direct, .Lend_direct, .Lend_direct
	.size pb_direct, . - pb_direct

	.section .note.GNU-stack,"",@progbits
