/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * graph_entry.S for --clock=none: the same with nothing to hide behind, so that each store counts:
 * rdi and rsi are left alone, no time is taken or compared, and the open leaf, which
 * only its time could tell from one that has returned, isn't noted. Calls nest, so
 * that entries are claimed one behind the other: their parents and depths
 * (PB_DEPTH_NEXT) stand in them from the last time.
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
	mov	T_HINT(%rdx), %rcx
	lea	-16(%rcx), %rax
	cmp	%rax, T_CUR(%rdx)		/* the parent isn't the entry before the hint; */
	jne	.Lapart_\name			/* new thread; after fork */
	cmp	T_LO(%rdx), %rsp		/* another stack; */
	jb	.Lslow_\name
	cmp	%rsp, B_SLOT - 16(%rcx)		/* or current was skipped, or tail-called us */
	jbe	.Lslow_\name
	cmpb	$PB_DEPTH_MAX >> 24, 3 + pb_max_depth(%rip)
	jne	.Llimited_\name
	.if \nested
	cmpl	$0, E_DEPTH - 16(%rcx)
	je	.Lreject_\name
	.endif
	cmpb	$PB_ENTRY_EMITTED, C_STATE - 16(%rcx)
	jne	.Lemit_\name
.Lemitted_\name:
	claim	.Lslow_\name
	cmpb	$PB_DEPTH_NEXT >> 24, E_DEPTH + 3(%rcx)	/* its parent is the one before it, too */
	jne	.Lhang_\name
.Lhung_\name:
	mov	S_ID(%r11), %eax
	mov	%rax, C_SITE(%rcx)		/* and LEAF, 0, to the state */
	mov	(%rsp), %rax
	mov	%rax, A_RET(%rcx)
	mov	S_BODY(%r11), %rax
	mov	%rax, A_BODY(%rcx)
	lea	16(%rcx), %rax
	mov	%rcx, T_CUR(%rdx)
	mov	%rax, T_HINT(%rdx)
	lea	-PB_GATE_DISTANCE(%rcx), %rax
	mov	%rax, (%rsp)			/* the slot holds the gate, and leads there */
	lea	-1(%rsp), %rax
	mov	%rax, B_SLOT(%rcx)		/* live */
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

	/* Off, or limited a moment ago, and the handlers aren't changed yet. */
.Llimited_\name:
	cmpl	$0, pb_max_depth(%rip)
	je	.Lreject_\name
	jmp	.Lslow_\name

	/* Its parent's ENTRY first. */
.Lemit_\name:
	cmpb	$PB_ENTRY_LEAF, C_STATE - 16(%rcx)
	jne	.Lslow_\name
	btsl	$0, C_STATE - 16(%rcx)		/* EMITTED, unless a handler did it just now */
	jc	.Lemitted_\name
	mov	$8, %eax
	xadd	%rax, T_POS(%rdx)
	unless_in_chunk_of rdx, rax, .Lemit_full_\name
	mov	C_SITE - 16(%rcx), %edx
	lea	PB_TAG_ENTRY(, %rdx, 4), %rdx
	mov	%rdx, (%rax)
	mov	E_OWNER(%rcx), %rdx
	jmp	.Lemitted_\name

.Lhang_\name:
	lea	-16(%rcx), %rax
	mov	%rax, C_PARENT(%rcx)
	movl	$PB_DEPTH_NEXT, E_DEPTH(%rcx)
	movq	$0, B_START(%rcx)
	jmp	.Lhung_\name

	/* The same with any parent: coroutines; the hint is in another block. */
.Lapart_\name:
	mov	T_CUR(%rdx), %rax
	test	%rax, %rax
	jz	.Lslow_\name
	cmp	T_LO(%rdx), %rsp
	jb	.Lslow_\name
	cmp	%rsp, B_SLOT(%rax)
	jbe	.Lslow_\name
	cmpb	$PB_DEPTH_MAX >> 24, 3 + pb_max_depth(%rip)
	jne	.Llimited_\name
	.if \nested
	cmpl	$0, E_DEPTH(%rax)
	je	.Lreject_\name
	.endif
	cmpb	$PB_ENTRY_EMITTED, C_STATE(%rax)
	jne	.Lslow_\name
	xor	%eax, %eax
	cmpxchg	%rsp, B_SLOT(%rcx)
	jne	.Lslow_\name
	mov	T_CUR(%rdx), %rax
	mov	%rax, C_PARENT(%rcx)
	movl	$PB_DEPTH_PARENT, E_DEPTH(%rcx)
	movq	$0, B_START(%rcx)
	jmp	.Lhung_\name

	/* No room for the parent's ENTRY. */
.Lemit_full_\name:
	pad_unless_full rax, rdx
	movb	$PB_ENTRY_LEAF, C_STATE - 16(%rcx)
.Lslow_\name:
	mov	%rdi, F_RDI(%rsp)
	mov	%rsi, F_RSI(%rsp)
	mov	$(\mode), %edx
	jmp	pb_enter_slow
.Lslow_end_\name:
	.cfi_endproc
	hot_range \name, .Lsaved_\name, .Lend_\name, 0
	hot_range .Lreject_\name, .Lreject_\name, .Lreject_end_\name, 0
	hot_range .Llimited_\name, .Llimited_\name, .Lslow_end_\name, 0
	.size \name, . - \name
	.endm

	graph_none pb_graph_none, 0, 0
	graph_none pb_graph_none_nested, PB_ENTER_NESTED, 1

	.section .note.GNU-stack,"",@progbits
