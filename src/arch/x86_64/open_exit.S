/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The exit of a function: a ret, or a jump out of it with the return address on top
 * of the stack. rsp is at the slot. The steps are those of doc/design/open-calls.md,
 * "The exit stub".
 */
#include "arch/x86_64/hot.inc"
#include "arch/x86_64/open_call.inc"

	.if PB_ENTRY_LEAF != 0 || PB_ENTRY_EMITTED != 1 || PB_TAG_EXIT != PB_TAG_LEAF + 2
	.error "this code relies on these values of states and tags"
	.endif

	/* Reserves a record of `words` words; rdx is its address. The label `reserved` comes right
	 * after the reservation. Jumps to `full` if the chunk is full. Jumps to `far` if the
	 * record's time, in rax, is more than `near` after the time of the last record. */
	.macro open_reserve words, near, reserved, full, far
	mov	$(8 * \words), %edx
	xadd	%rdx, T_POS(%rdi)
\reserved:
	unless_in_chunk rdx, rdi, rsi, \full
	mov	%rax, %rsi
	sub	T_LAST(%rdi), %rsi
	cmp	$\near, %rsi
	ja	\far
	mov	%rax, T_LAST(%rdi)
	.endm

	/* If `jump` is 1, the exit is a jump: r11 has the address at which the exit's stub
	 * continues, and the record is a TAIL or TAIL_LEAF. (A `ret N` comes here, too, and is left
	 * to C code.) Returns of calls that aren't open are frequent. So the registers that only a
	 * record needs are saved later, when the open call is found. */
	.macro open_exit name, jump, of
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
	mov	%rdi, F_RDI(%rsp)
	mov	%rsi, F_RSI(%rsp)
	mov	%r8, F_R8(%rsp)
.Lmatched_\name:
	mov	%rdx, %rdi
	clock
	open_leave rcx
.Lleft_\name:
	.if \jump
	open_if_pops edx, .Lc_\name
	.endif
	mov	O_SITE(%rcx), %r8d
	mov	O_STATE(%rcx), %edx		/* also loads O_RECORD and `watch`, which are 0
						 * unless C code has set them */
	cmp	$PB_ENTRY_EMITTED, %edx
	je	.Lemitted_\name
	ja	.Lother_state_\name
.Lleaf_state_\name:
	.if \jump
	mov	%rax, %rdx
	sub	O_START(%rcx), %rdx
	shr	$(64 - ADDRESS_SHIFT), %rdx
	jnz	.Lc_\name
	shl	$PB_EXT_SITE_SHIFT, %r8
	add	$TAIL_LEAF_WORD, %r8
	open_reserve 2, NEAR_EXT, .Lleaf_\name, .Lfull_leaf_\name, .Lfar_leaf_\name
	mov	%rax, %rsi
	sub	O_START(%rcx), %rsi
	shl	$ADDRESS_SHIFT, %rsi
	or	$ADDRESS_WORD, %rsi
	mov	%rsi, 8(%rdx)
	shl	$PB_EXT_TIME_SHIFT, %rax
	.else
	lea	PB_TAG_LEAF(, %r8, 4), %r8
	mov	%rax, %rdx
	sub	O_START(%rcx), %rdx
	cmp	$((1 << PB_DUR_BITS) - 1), %rdx
	ja	.Lc_\name
	shl	$PB_DUR_SHIFT, %rdx
	or	%rdx, %r8
	open_reserve 1, NEAR_LEAF, .Lleaf_\name, .Lfull_\name, .Lfar_\name
	shl	$PB_LEAF_SHIFT, %rax
	.endif
.Lwrite_\name:
	or	%r8, %rax
	mov	%rax, (%rdx)
.Lwritten_\name:
	open_free rcx, T_TOP(%rdi)
.Lback_\name:
	mov	F_R8(%rsp), %r8
	restore from=.Lback_\name
	.if \jump
	jmp	*%r11
	.else
	ret
	.endif

.Lemitted_\name:
	.if \jump
	shl	$PB_EXT_SITE_SHIFT, %r8
	add	$TAIL_WORD, %r8
	open_reserve 1, NEAR_EXT, .Lexit_\name, .Lfull_\name, .Lfar_\name
	shl	$PB_EXT_TIME_SHIFT, %rax
	.else
	lea	PB_TAG_EXIT(, %r8, 4), %r8
	open_reserve 1, NEAR_TIME, .Lexit_\name, .Lfull_\name, .Lfar_\name
	shl	$PB_TIME_SHIFT, %rax
	.endif
	jmp	.Lwrite_\name

.Lother_state_\name:
	cmp	$PB_ENTRY_SILENT, %edx
	je	.Lnothing_\name
	cmp	$PB_ENTRY_LAZY, %edx
	je	.Llazy_\name
	/* a handler that interrupted this exit may have set O_RECORD: ignore it */
	test	$0xff00, %edx
	jz	.Lc_\name
	and	$~0xff00, %edx
	cmp	$PB_ENTRY_EMITTED, %edx
	je	.Lemitted_\name
	jb	.Lleaf_state_\name
	jmp	.Lc_\name

	/* With -t, a call that was too short leaves no record. */
.Llazy_\name:
	mov	%rax, %rdx
	sub	O_START(%rcx), %rdx
	cmp	T_THRESH(%rdi), %rdx
	jae	.Lc_\name
.Lnothing_\name:
	open_free rcx, T_TOP(%rdi)
	jmp	.Lback_\name

	/* The innermost open call doesn't match. If its slot is above this slot, the call that
	 * returns isn't open; usually it wasn't traced. Otherwise C code searches for the call. */
.Lother_\name:
	cmp	T_LO(%rdx), %rsp
	jb	.Lslow_\name
	cmp	%rsp, O_WORD(%rcx)
	jle	.Lslow_\name
	restore rdi=0, rsi=0
	.if \jump
	jmp	*%r11
	.else
	ret
	.endif
.Lslow_\name:
	mov	%rdi, F_RDI(%rsp)
	mov	%rsi, F_RSI(%rsp)
	mov	%r8, F_R8(%rsp)
	xor	%ecx, %ecx
	xor	%eax, %eax
	jmp	.Lc_\name

.Lfull_\name:
	pad_unless_full rdx, si, .Lc_\name
	jmp	.Lc_\name
	.if \jump
.Lfull_leaf_\name:
	pad_unless_full rdx, si, .Lc_\name, PAD_2
	jmp	.Lc_\name
.Lfar_leaf_\name:
	pad_own	rdx, si, .Lc_\name, PAD_2
	jmp	.Lc_\name
	.endif
.Lfar_\name:
	pad_own	rdx, si, .Lc_\name
.Lc_\name:
	leave	.Lcall_\name
.Lcall_\name:
	near_range \name, .Lcall_\name
	call_exit \jump
.Lend_\name:
	jmp	.Lback_\name
	.cfi_endproc
	hot_range \name, .Lsaved_\name, .Lmatched_\name, 0, \of
	hot_range .Lmatched_\name, .Lmatched_\name, .Lother_\name, 2, \of
	hot_range .Lother_\name, .Lother_\name, .Lfull_\name, 0, \of
	hot_range .Lfull_\name, .Lfull_\name, .Lcall_\name, 2, \of
	hot_unreserved .Lleft_\name, .Lleaf_\name
	hot_unreserved .Lemitted_\name, .Lexit_\name
	hot_unreserved .Lother_state_\name, .Lother_\name
	hot_unreserved .Lfull_\name, .Lend_\name
	hot_reserved rdx, .Lleaf_\name, .Lwritten_\name
	hot_reserved rdx, .Lexit_\name, .Lother_state_\name
	.size \name, . - \name
	.endm

	open_exit pb_open_ret, 0, PB_HOT_RET
	open_exit pb_open_jump, 1, PB_HOT_JUMP

	.section .note.GNU-stack,"",@progbits
