/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The same as open_entry.S and open_exit.S, for --clock=none. In those files the latency of reading
 * the clock hides other instructions. This code doesn't read the clock, so each instruction costs
 * time. Therefore it doesn't use rdi and rsi, and need not save them. It doesn't note the open leaf
 * in the chunk's header: without a time, a reader couldn't tell an open leaf from a leaf that has
 * returned. It doesn't check the depth, because these handlers are set only while tracing is on and
 * no limit of depth is set (tracer.c). pb_latch() changes T_LO of each thread, so that all later
 * entries take the slow path.
 */
#include "arch/x86_64/hot.inc"
#include "arch/x86_64/open_call.inc"

	.if O_STATE != O_SITE + 4 || PB_ENTRY_LEAF != 0 || PB_ENTRY_EMITTED != 1
	.error "O_STATE must be O_SITE + 4, LEAF 0 (one access for both), EMITTED 1 (for bts)"
	.endif

	.macro open_none name, mode, nested
	.globl	\name
	.hidden	\name
	.type	\name, @function
	.balign 64
\name:
	.cfi_startproc
	save rdi=0, rsi=0
.Lsaved_\name:
	load_thread rdx
	mov	T_TOP(%rdx), %rcx
	test	%rcx, %rcx			/* 0 in a new thread and after a fork */
	jz	.Lslow_\name
	cmp	T_LO(%rdx), %rsp		/* another stack */
	jb	.Lslow_\name
	open_check rcx, .Lslow_\name
	.if \nested
	testb	$1, O_WORD(%rcx)		/* a foot: no caller in this segment */
	jnz	.Lfoot_\name
	.endif
	cmpb	$PB_ENTRY_EMITTED, O_STATE(%rcx)
	jne	.Lemit_\name
.Lemitted_\name:
	open_claim rcx, rax, .Lslow_\name, T_TOP(%rdx)
	mov	S_ID(%r11), %eax
	mov	%rax, O_SITE(%rcx)		/* also O_STATE, with LEAF, which is 0 */
	mov	(%rsp), %rax
	mov	%rax, O_RET(%rcx)
	movq	$0, O_START(%rcx)
	open_live rcx
	restore rdi=0, rsi=0
.Lend_\name:
	go_on

	/* Writes the parent's ENTRY first. */
.Lemit_\name:
	cmpb	$PB_ENTRY_LEAF, O_STATE(%rcx)
	jne	.Lbelow_\name
	btsl	$0, O_STATE(%rcx)		/* sets EMITTED; carry: a handler has just set it */
	jc	.Lemitted_\name
	mov	$8, %eax
	xadd	%rax, T_POS(%rdx)
.Lentry_\name:
	unless_in_chunk_of rdx, rax, .Lfull_\name
	mov	O_SITE(%rcx), %edx
	lea	PB_TAG_ENTRY(, %rdx, 4), %rdx
	mov	%rdx, (%rax)
.Lentry_written_\name:
	forked_words rax, .Lentry_\name, .Lentry_written_\name
	load_thread rdx
	jmp	.Lemitted_\name

	.if \nested
.Lfoot_\name:
	mov	%rcx, %rax
	and	$-PB_OPEN_SEGMENT, %rax
	cmpq	$0, G_PREV(%rax)
	jne	.Lslow_\name
	jmp	.Lreject_\name
	.endif
	/* Nothing that a function of set_graph_notrace calls is recorded. */
.Lbelow_\name:
	cmpb	$PB_ENTRY_SILENT, O_STATE(%rcx)
	jne	.Lslow_\name
.Lreject_\name:
	restore rdi=0, rsi=0
.Lreject_end_\name:
	go_on

.Lfull_\name:
	pad_unless_full rax, dx, .Lslow_\name
	movb	$PB_ENTRY_LEAF, O_STATE(%rcx)
.Lslow_\name:
	mov	%rdi, F_RDI(%rsp)
	mov	%rsi, F_RSI(%rsp)
	mov	$(\mode), %edx
	leave	pb_enter_slow
.Lslow_end_\name:
	.cfi_endproc
	hot_range \name, .Lsaved_\name, .Lend_\name, 0
	hot_range .Lemit_\name, .Lemit_\name, .Lreject_end_\name, 0
	hot_range .Lfull_\name, .Lfull_\name, .Lslow_end_\name, 0
	near_range \name, .Lslow_end_\name
	.size \name, . - \name
	.endm

	open_none pb_open_none, 0, 0
	open_none pb_open_none_nested, PB_ENTER_NESTED, 1

	/* jump: r11 is where the exit's stub goes on, and is preserved; the record is a TAIL or
	 * TAIL_LEAF. */
	.macro open_none_exit name, jump
	.globl	\name
	.hidden	\name
	.type	\name, @function
	.balign 64
\name:
	.cfi_startproc
	save rdi=0, rsi=0
.Lsaved_\name:
	load_thread rdx
	mov	T_TOP(%rdx), %rcx
	test	%rcx, %rcx
	jz	.Lslow_\name
	open_match rcx, rax, .Lother_\name
	open_leave rcx
.Lleft_\name:
	.if \jump
	open_if_pops eax, .Lc_\name
	.endif
	cmpl	$PB_ENTRY_EMITTED, O_STATE(%rcx) /* also O_RECORD and `watch`, which only C sets */
	ja	.Lother_state_\name
.Lrecorded_\name:
	.if \jump
	je	.Lemitted_\name
	mov	$16, %eax
	xadd	%rax, T_POS(%rdx)
.Lleaf_\name:
	unless_in_chunk_of rdx, rax, .Lfull_leaf_\name
	mov	O_SITE(%rcx), %edx
	movq	$ADDRESS_WORD, 8(%rax)
	shl	$PB_EXT_SITE_SHIFT, %rdx
	add	$TAIL_LEAF_WORD, %rdx
	mov	%rdx, (%rax)
	.else
	mov	$8, %eax
	xadd	%rax, T_POS(%rdx)
.Lleaf_\name:
	unless_in_chunk_of rdx, rax, .Lfull_\name
	mov	O_SITE(%rcx), %rdx
	bt	$32, %rdx			/* the state: decides between LEAF and EXIT */
	adc	%edx, %edx
	lea	PB_TAG_LEAF(, %rdx, 2), %rdx	/* site << 2 | state << 1 | 1 */
	mov	%rdx, (%rax)
	.endif
.Lwritten_\name:
	load_thread rdx
	open_free rcx, T_TOP(%rdx)
.Lpass_\name:
	restore rdi=0, rsi=0
	.if \jump
	jmp	*%r11
	.else
	ret
	.endif

	.if \jump
.Lemitted_\name:
	mov	$8, %eax
	xadd	%rax, T_POS(%rdx)
.Lexit_\name:
	unless_in_chunk_of rdx, rax, .Lfull_\name
	mov	O_SITE(%rcx), %edx
	shl	$PB_EXT_SITE_SHIFT, %rdx
	add	$TAIL_WORD, %rdx
	mov	%rdx, (%rax)
.Lexit_written_\name:
	jmp	.Lwritten_\name
	hot_unreserved .Lemitted_\name, .Lexit_\name
	hot_reserved rax, .Lexit_\name, .Lexit_written_\name
	.endif

.Lother_state_\name:
	cmpl	$PB_ENTRY_SILENT, O_STATE(%rcx)
	je	.Lwritten_\name
	/* a handler that interrupted this exit may have set O_RECORD: ignore it */
	mov	O_STATE(%rcx), %eax
	and	$~0xff00, %eax
	cmp	$PB_ENTRY_EMITTED, %eax
	jbe	.Lrecorded_\name
	jmp	.Lc_\name
	hot_unreserved .Lother_state_\name, .Lother_\name

	/* No open call has this slot. The usual reason is that the call wasn't traced. */
.Lother_\name:
	cmp	T_LO(%rdx), %rsp
	jb	.Lslow_\name
	cmp	%rsp, O_WORD(%rcx)
	jg	.Lpass_\name
.Lslow_\name:
	xor	%ecx, %ecx
	jmp	.Lc_\name
	.if \jump
.Lfull_leaf_\name:
	pad_unless_full rax, dx, .Lc_\name, PAD_2
	jmp	.Lc_\name
	.endif
.Lfull_\name:
	pad_unless_full rax, dx, .Lc_\name
.Lc_\name:
	leave	.Lcall_\name
.Lcall_\name:
	.if \jump
	hot_range \name, .Lsaved_\name, .Lcall_\name, 0, PB_HOT_JUMP
	.else
	hot_range \name, .Lsaved_\name, .Lcall_\name, 0, PB_HOT_RET
	.endif
	near_range \name, .Lcall_\name
	mov	%rdi, F_RDI(%rsp)
	mov	%rsi, F_RSI(%rsp)
	mov	%r8, F_R8(%rsp)
	mov	pb_frozen_clock(%rip), %rax
	call_exit \jump
	hot_unreserved .Lleft_\name, .Lleaf_\name
	hot_reserved rax, .Lleaf_\name, .Lwritten_\name
	.if \jump
	hot_unreserved .Lfull_leaf_\name, .Lend_\name
	.else
	hot_unreserved .Lfull_\name, .Lend_\name
	.endif
.Lend_\name:
	mov	F_RDI(%rsp), %rdi
	mov	F_RSI(%rsp), %rsi
	mov	F_R8(%rsp), %r8
	jmp	.Lpass_\name
	.cfi_endproc
	.size \name, . - \name
	.endm

	open_none_exit pb_open_ret_none, 0
	open_none_exit pb_open_jump_none, 1

	.section .note.GNU-stack,"",@progbits
