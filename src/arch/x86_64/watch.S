/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Calls that are open only for eBPF programs at their returns. The entry is that of a function that
 * has no program at its entry, and that no tracer selects. The exit is used while no tracer needs
 * returns. So both read no clock and write no record. The steps are those of
 * doc/design/open-calls.md. In all other cases the code restores the registers and jumps to the
 * code that handles every case, as if the stub had jumped there.
 */
#include "arch/x86_64/hot.inc"
#include "arch/x86_64/open_call.inc"

	.globl	pb_watch_entry
	.hidden	pb_watch_entry
	.type	pb_watch_entry, @function
	.balign 64
pb_watch_entry:
	.cfi_startproc
	save
.Lsaved_entry:
	load_thread
	mov	T_TOP(%rdi), %rcx
	test	%rcx, %rcx			/* 0 in a new thread and after a fork */
	jz	.Lslow_entry
	cmp	T_LO(%rdi), %rsp		/* another stack */
	jb	.Lslow_entry
	open_check rcx, .Lslow_entry
	mov	T_BOTTOM(%rdi), %rdx
	test	%rdx, %rdx			/* the stack's bounds are guessed */
	jz	.Lslow_entry
	mov	%rsp, %rax
	sub	%rdx, %rax
	cmp	$(PB_PROG_ROOM + PB_TOLD_GUARD), %rax
	jb	.Lslow_entry
	/* finds the struct prog_site, if it is where the search for it begins */
	mov	%r11, %rax
	shr	$PB_PROG_HASH_ALIGN, %rax
	movabs	$PB_PROG_HASH_FACTOR, %rdx
	imul	%rdx, %rax
	shr	$(64 - PB_PROG_HASH_BITS), %rax
	lea	pb_prog_sites(%rip), %rdx
	mov	(%rdx, %rax, 8), %rdx
	cmp	%r11, P_SITE(%rdx)
	jne	.Lslow_entry
	mov	P_CALL(%rdx), %rsi
	open_claim rcx, rax, .Lslow_entry, T_TOP(%rdi)
	mov	%rsi, O_SITE(%rcx)		/* also O_STATE, O_RECORD and O_WATCH */
	mov	(%rsp), %rax
	mov	%rax, O_RET(%rcx)
	movq	$0, O_START(%rcx)
	open_live rcx
	restore
.Lend_entry:
	go_on
.Lslow_entry:
	restore
	jmp	pb_prog_entry
.Lslow_end_entry:
	.cfi_endproc
	hot_range pb_watch_entry, .Lsaved_entry, .Lend_entry
	hot_range .Lslow_entry, .Lslow_entry, .Lslow_end_entry
	.size pb_watch_entry, . - pb_watch_entry

	.globl	pb_watch_ret
	.hidden	pb_watch_ret
	.type	pb_watch_ret, @function
	.balign 64
pb_watch_ret:
	.cfi_startproc
	save rdi=0, rsi=0
.Lsaved_ret:
	load_thread rdx
	mov	T_TOP(%rdx), %rcx
	test	%rcx, %rcx
	jz	.Lslow_ret
	open_match rcx, rax, .Lother_ret
	/* the state is PROG, and `watch` is the ID of programs */
	cmpb	$PB_ENTRY_PROG, O_STATE(%rcx)
	jne	.Lslow_ret
	movzwl	O_WATCH(%rcx), %eax
	dec	%eax
	cmp	$(PB_WATCH_BELOW - 1), %eax
	jae	.Lslow_ret
	unless_room rdx, rax, .Lslow_ret
	mov	%rdi, F_RDI(%rsp)
	mov	%rsi, F_RSI(%rsp)
	mov	%r8, F_R8(%rsp)
.Lmatched_ret:
	movb	$PB_OPEN_UNRESERVED, O_RECORD(%rcx)
	open_leave rcx
.Lleft_ret:
	lea	-128(%rsp), %rsp
.Lstepped_over_ret:
	.cfi_adjust_cfa_offset 128
	push_reg r11
	push_reg rbp
	.cfi_rel_offset rbp, 0
	mov	%rsp, %rbp
	.cfi_def_cfa_register rbp
	make_regs 144, 8
	/* pb_prog_returned(call, regs) */
	mov	%rcx, %rdi
	mov	%rsp, %rsi
	call	pb_prog_returned
.Lreturned_ret:
	take_regs
	take_result 144
	mov	%rbp, %rsp
	.cfi_def_cfa_register rsp
	pop_reg rbp
	.cfi_restore rbp
	pop_reg r11
	lea	128(%rsp), %rsp
	.cfi_adjust_cfa_offset -128
.Lback_ret:
	restore
	ret

	/* The innermost open call doesn't match. If its slot is above this slot, the call that
	 * returns isn't open: it has no programs. */
.Lother_ret:
	cmp	T_LO(%rdx), %rsp
	jb	.Lslow_ret
	cmp	%rsp, O_WORD(%rcx)
	jle	.Lslow_ret
	restore rdi=0, rsi=0
	ret
.Lslow_ret:
	restore rdi=0, rsi=0
	jmp	pb_open_ret
.Lend_ret:
	.cfi_endproc
	hot_range pb_watch_ret, .Lsaved_ret, .Lmatched_ret, 0, PB_HOT_RET
	hot_range .Lmatched_ret, .Lmatched_ret, .Lstepped_over_ret, 1, PB_HOT_RET
	hot_range .Lback_ret, .Lback_ret, .Lother_ret, 1, PB_HOT_RET
	hot_range .Lother_ret, .Lother_ret, .Lend_ret, 0, PB_HOT_RET
	hot_unreserved .Lleft_ret, .Lreturned_ret
	.size pb_watch_ret, . - pb_watch_ret

	.section .note.GNU-stack,"",@progbits
