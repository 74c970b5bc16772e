/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A hooked call returns. */
#include "arch/x86_64/hot.inc"

	.if PB_ENTRY_LEAF != 0 || PB_ENTRY_EMITTED != 1 || PB_TAG_EXIT != PB_TAG_LEAF + 2
	.error "pb_gate_exit makes the tag of the state"
	.endif

	/* Frees entry rcx of the thread in \thread, and returns from its call. */
	.macro return thread, rdi=1, rsi=1
	mov	A_RET(%rcx), %rdx
	.cfi_remember_state
	.cfi_register rip, rdx
	mov	%rcx, T_HINT(%\thread)
	xor	%eax, %eax
	mov	%rax, B_SLOT(%rcx)		/* free, before the slot is restored */
	mov	%rdx, -8(%rsp)
	mov	F_EXIT_R11(%rsp), %r11
	restore_but_rdx \rdi, \rsi
	.cfi_def_cfa rsp, 0
	.cfi_restore rsp
	.cfi_offset rip, -8
	mov	F_RDX(%rsp), %rdx
	lea	-8(%rsp), %rsp
	.cfi_def_cfa rsp, 8
	ret
	.cfi_restore_state
	.endm

	.globl	pb_gate_exit
	.hidden	pb_gate_exit
	.type	pb_gate_exit, @function
	.balign 64
pb_gate_exit:
	.cfi_startproc
	cfi_behind_slot
	save rdi=0, rsi=0
	mov	%r11, F_EXIT_R11(%rsp)
	mov	-8(%rsp), %rcx			/* the gate, from the slot */
	cmpb	$PB_CLOCK_NONE, pb_no_clock(%rip)
	jne	.Lexit_timed

	/* --clock=none: see graph_none.S. What it can't do, the timed exit does. */
	load_thread r11
	add	$(PB_GATE_DISTANCE - PB_GATE_RETURN), %rcx
	cmp	%rcx, T_CUR(%r11)
	jne	.Lexit_none_slow
	cmp	%r11, E_OWNER(%rcx)
	jne	.Lexit_none_slow
	mov	C_PARENT(%rcx), %rdx
	mov	C_SITE(%rcx), %eax
	mov	%rdx, T_CUR(%r11)		/* from here on its state is final */
	movzbl	C_STATE(%rcx), %edx
	cmp	$PB_ENTRY_EMITTED, %edx
	ja	.Lexit_none_other
	lea	(%rdx, %rax, 2), %rax		/* LEAF or EXIT: */
	lea	PB_TAG_LEAF(, %rax, 2), %rax	/* site << 2 | state << 1 | 1 */
	mov	$8, %edx
	xadd	%rdx, T_POS(%r11)
	cmp	T_END(%r11), %rdx
	jae	.Lexit_none_full
	mov	%rax, (%rdx)
	return r11, rdi=0, rsi=0
.Lexit_none_other:
	mov	%rdi, F_RDI(%rsp)
	mov	%rsi, F_RSI(%rsp)
	mov	%r11, %rdi
	mov	pb_frozen_clock(%rip), %rax
	movzbl	C_STATE(%rcx), %edx
	jmp	.Lexit_other
.Lexit_none_full:
	mov	%rdi, F_RDI(%rsp)
	mov	%rsi, F_RSI(%rsp)
	mov	pb_frozen_clock(%rip), %rax
	jmp	.Lexit_popped
.Lexit_none_slow:
	sub	$(PB_GATE_DISTANCE - PB_GATE_RETURN), %rcx
.Lexit_timed:
	mov	%rdi, F_RDI(%rsp)
	mov	%rsi, F_RSI(%rsp)
	load_thread
	clock
	add	$(PB_GATE_DISTANCE - PB_GATE_RETURN), %rcx
	cmp	%rcx, T_CUR(%rdi)		/* some above were skipped; another stack */
	jne	.Lexit_slow
	cmp	%rdi, E_OWNER(%rcx)		/* claimed by another thread */
	jne	.Lexit_slow
	mov	C_PARENT(%rcx), %rsi
	mov	C_SITE(%rcx), %r11d
	mov	%rsi, T_CUR(%rdi)		/* from here on a handler's calls are not */
	movzbl	C_STATE(%rcx), %edx		/* below this one: its state is final */
	cmp	$PB_ENTRY_EMITTED, %edx
	je	.Lexit_emitted
	ja	.Lexit_other
	/* LEAF */
	lea	PB_TAG_LEAF(, %r11, 4), %r11
	mov	%rax, %rdx
	sub	B_START(%rcx), %rdx
	cmp	$((1 << PB_DUR_BITS) - 1), %rdx
	ja	.Lexit_popped
	shl	$PB_DUR_SHIFT, %rdx
	or	%rdx, %r11
	mov	$8, %edx
	xadd	%rdx, T_POS(%rdi)
	cmp	T_END(%rdi), %rdx
	jae	.Lexit_popped
	mov	%rax, %rsi
	sub	T_LAST(%rdi), %rsi
	cmp	$NEAR_LEAF, %rsi
	ja	.Lexit_far
	mov	%rax, T_LAST(%rdi)
	shl	$PB_LEAF_SHIFT, %rax
.Lexit_write:
	or	%r11, %rax
	mov	%rax, (%rdx)
	return rdi

.Lexit_emitted:
	lea	PB_TAG_EXIT(, %r11, 4), %r11
	mov	$8, %edx
	xadd	%rdx, T_POS(%rdi)
	cmp	T_END(%rdi), %rdx
	jae	.Lexit_popped
	mov	%rax, %rsi
	sub	T_LAST(%rdi), %rsi
	cmp	$NEAR_TIME, %rsi
	ja	.Lexit_far
	mov	%rax, T_LAST(%rdi)
	shl	$PB_TIME_SHIFT, %rax
	jmp	.Lexit_write

.Lexit_other:
	/* LAZY: C decides. CLOSED, SILENT: nothing to write. */
	cmp	$PB_ENTRY_LAZY, %edx
	je	.Lexit_popped
	return rdi

.Lexit_far:
	movq	$PAD_1, (%rdx)
.Lexit_popped:
	mov	$PB_EXIT_POPPED, %edx
	jmp	1f
.Lexit_slow:
	mov	$PB_EXIT_WHOLE, %edx
1:
	/* u64 pb_exit(entry, now, how, slot): the return address. The entry is
	 * freed here, where unwinders find the address in rax: once it is free, a
	 * handler's call may use it. */
	.macro cfi_ra_slot_at breg, lo, hi
	/* r16 saved at: (*(breg + offset) & -16) + PB_GATE_DISTANCE */
	.cfi_escape 0x10,0x10,0x0c,\breg,\lo,\hi,0x06,0x09,0xf0,0x1a,0x23,0x80,0x80,0x80,0x04
	.endm
	/* take the slot back, and step over the frame */
	lea	-136(%rsp), %rsp
	.cfi_def_cfa rsp, 144
	cfi_ra_slot_at 0x77, 0x80, 0x01		/* rsp + 128 */
	push	%rbp
	.cfi_def_cfa rsp, 152
	.cfi_offset rbp, -152
	cfi_ra_slot_at 0x77, 0x88, 0x01		/* rsp + 136 */
	mov	%rsp, %rbp
	.cfi_def_cfa_register rbp
	cfi_ra_slot_at 0x76, 0x88, 0x01		/* rbp + 136 */
	push	%r8
	push	%r9
	push	%r10
	mov	%rcx, %rdi
	mov	%rax, %rsi
	lea	136(%rbp), %rcx
	and	$-16, %rsp
	call	pb_exit
	.cfi_register rip, rax
	mov	136(%rbp), %rcx
	movq	$0, B_SLOT + PB_GATE_DISTANCE - PB_GATE_RETURN(%rcx)
	mov	%rax, 136(%rbp)
	.cfi_offset rip, -16
	lea	-24(%rbp), %rsp
	pop	%r10
	pop	%r9
	pop	%r8
	pop	%rbp
	.cfi_def_cfa rsp, 144
	.cfi_restore rbp
	lea	128(%rsp), %rsp
	.cfi_def_cfa rsp, 8
	.cfi_restore rsp
	.cfi_offset rip, -8
	/* at the slot: the frame's offsets count from behind it */
	mov	F_EXIT_R11 + 8(%rsp), %r11
	restore at=8
	ret
	.cfi_endproc
	.size pb_gate_exit, . - pb_gate_exit

	.section .note.GNU-stack,"",@progbits
