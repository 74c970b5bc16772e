/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A hooked call returns. */
#include "arch/x86_64/hot.inc"

	.if PB_ENTRY_LEAF != 0 || PB_ENTRY_EMITTED != 1 || PB_ENTRY_LAZY > PB_ENTRY_LATE || \
		C_STATE != C_SITE + 4 || PB_TAG_EXIT != PB_TAG_LEAF + 2
	.error "pb_gate_exit makes the tag of the state"
	.endif

	/* Frees entry rcx, and returns from its call. */
	.macro return rdi=1, rsi=1, r11=1
	mov	A_RET(%rcx), %rdx
	.cfi_remember_state
	.cfi_register rip, rdx
	xor	%eax, %eax
	mov	%rax, B_SLOT(%rcx)		/* free, before the slot is restored */
	mov	%rdx, -8(%rsp)
	.if \r11
	mov	F_EXIT_R11(%rsp), %r11
	.endif
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
	mov	-8(%rsp), %rcx			/* the gate, from the slot */
	cmpb	$PB_CLOCK_NONE, pb_no_clock(%rip)
	jne	.Lexit_timed

	/* --clock=none: see graph_none.S. What it can't do, the timed exit does. */
	load_thread rdx
	add	$(PB_GATE_DISTANCE - PB_GATE_RETURN), %rcx
	cmp	%rcx, T_CUR(%rdx)
	jne	.Lexit_none_slow
	cmp	%rdx, E_OWNER(%rcx)
	jne	.Lexit_none_slow
	mov	C_PARENT(%rcx), %rax
	mov	%rax, T_CUR(%rdx)		/* from here on its state is final */
	cmpb	$PB_ENTRY_EMITTED, C_STATE(%rcx)
	ja	.Lexit_none_other
	mov	$8, %eax
	xadd	%rax, T_POS(%rdx)
	unless_in_chunk_of rdx, rax, .Lexit_none_full
	mov	C_SITE(%rcx), %rdx
	bt	$32, %rdx			/* LEAF or EXIT: */
	adc	%edx, %edx
	lea	PB_TAG_LEAF(, %rdx, 2), %rdx	/* site << 2 | state << 1 | 1 */
	mov	%rdx, (%rax)
	mov	E_OWNER(%rcx), %rdx
	mov	%rcx, T_HINT(%rdx)
	return rdi=0, rsi=0, r11=0
.Lexit_none_other:
	mov	%r11, F_EXIT_R11(%rsp)
	mov	%rdi, F_RDI(%rsp)
	mov	%rsi, F_RSI(%rsp)
	mov	%rdx, %rdi
	mov	pb_frozen_clock(%rip), %rax
	movzbl	C_STATE(%rcx), %edx
	jmp	.Lexit_other
.Lexit_none_full:
	mov	%r11, F_EXIT_R11(%rsp)
	pad_unless_full rax, rdx
	mov	%rdi, F_RDI(%rsp)
	mov	%rsi, F_RSI(%rsp)
	mov	pb_frozen_clock(%rip), %rax
	jmp	.Lexit_popped
.Lexit_none_slow:
	sub	$(PB_GATE_DISTANCE - PB_GATE_RETURN), %rcx
.Lexit_timed:
	mov	%r11, F_EXIT_R11(%rsp)
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
	unless_in_chunk rdx, rdi, rsi, .Lexit_full
	mov	%rax, %rsi
	sub	T_LAST(%rdi), %rsi
	cmp	$NEAR_LEAF, %rsi
	ja	.Lexit_far
	mov	%rax, T_LAST(%rdi)
	shl	$PB_LEAF_SHIFT, %rax
.Lexit_write:
	or	%r11, %rax
	mov	%rax, (%rdx)
	mov	%rcx, T_HINT(%rdi)
	return

.Lexit_emitted:
	lea	PB_TAG_EXIT(, %r11, 4), %r11
	mov	$8, %edx
	xadd	%rdx, T_POS(%rdi)
	unless_in_chunk rdx, rdi, rsi, .Lexit_full
	mov	%rax, %rsi
	sub	T_LAST(%rdi), %rsi
	cmp	$NEAR_TIME, %rsi
	ja	.Lexit_far
	mov	%rax, T_LAST(%rdi)
	shl	$PB_TIME_SHIFT, %rax
	jmp	.Lexit_write

.Lexit_other:
	/* LAZY, LATE: C decides. CLOSED, SILENT: nothing to write. */
	cmp	$PB_ENTRY_LATE, %edx
	jbe	.Lexit_popped
	mov	%rcx, T_HINT(%rdi)
	return

.Lexit_full:
	pad_unless_full rdx, rsi
	jmp	.Lexit_popped
.Lexit_far:
	movq	$PAD_1, (%rdx)
.Lexit_popped:
	mov	$PB_EXIT_POPPED, %edx
	jmp	1f
.Lexit_slow:
	cmpb	$PB_ENTRY_PROG, C_STATE(%rcx)
	je	.Lexit_prog
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

	/* u64 pb_prog_gate_returned(entry, regs): as above, with all registers. */
.Lexit_prog:
	.cfi_def_cfa rsp, 8
	.cfi_val_offset rsp, -8
	.cfi_escape 0x10,0x10,0x0b,0x77,0x78,0x06,0x09,0xf0,0x1a,0x23,0x80,0x80,0x80,0x04
	lea	-136(%rsp), %rsp
	.cfi_def_cfa rsp, 144
	cfi_ra_slot_at 0x77, 0x80, 0x01
	push	%rbp
	.cfi_def_cfa rsp, 152
	.cfi_offset rbp, -152
	cfi_ra_slot_at 0x77, 0x88, 0x01
	mov	%rsp, %rbp
	.cfi_def_cfa_register rbp
	cfi_ra_slot_at 0x76, 0x88, 0x01
	make_regs 144, 144 + F_EXIT_R11
	mov	%rcx, %rdi
	mov	%rsp, %rsi
	call	pb_prog_gate_returned
	.cfi_register rip, rax
	mov	136(%rbp), %rcx
	movq	$0, B_SLOT + PB_GATE_DISTANCE - PB_GATE_RETURN(%rcx)
	mov	%rax, 136(%rbp)
	.cfi_offset rip, -16
	take_regs
	mov	%rbp, %rsp
	pop	%rbp
	.cfi_def_cfa rsp, 144
	.cfi_restore rbp
	lea	128(%rsp), %rsp
	.cfi_def_cfa rsp, 8
	.cfi_restore rsp
	.cfi_offset rip, -8
	mov	F_EXIT_R11 + 8(%rsp), %r11
	restore at=8
	ret
	.cfi_endproc
	.size pb_gate_exit, . - pb_gate_exit

	.section .note.GNU-stack,"",@progbits
