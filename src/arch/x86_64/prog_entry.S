/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The handler of sites with eBPF programs. The programs see the registers as they are at the
 * function's entry. After the programs have run, this handler jumps to the next handler, which the
 * tracers have chosen for the site, as if the stub had jumped there.
 */
#include "arch/x86_64/hot.inc"

	.globl	pb_prog_entry
	.hidden	pb_prog_entry
	.type	pb_prog_entry, @function
	.balign 16
pb_prog_entry:
	.cfi_startproc
	save
.Lsaved:
	load_thread
	mov	%r11, F_R8(%rsp)
	testb	$PB_SITE_SMALL, S_SMALL(%r11)
	jnz	.Lsmall
	unless_room rdi, rax, .Lcramped, PB_LOOK_ROOM
	lea	-128(%rsp), %rsp
.Lstepped_over:
	hot_range pb_prog_entry, .Lsaved, .Lstepped_over
	.cfi_adjust_cfa_offset 128
	push_reg rbp
	.cfi_rel_offset rbp, 0
	mov	%rsp, %rbp
	.cfi_def_cfa_register rbp
	/* struct pb_prog_room pb_prog_room(site, slot), which needs little stack */
	lea	-32(%rsp), %rsp
	and	$-16, %rsp
	mov	%r8, (%rsp)
	mov	%r9, 8(%rsp)
	mov	%r10, 16(%rsp)
	mov	%r11, %rdi
	lea	136(%rbp), %rsi
	call	pb_prog_room
	mov	(%rsp), %r8
	mov	8(%rsp), %r9
	mov	16(%rsp), %r10
	mov	%rbp, %rsp
	test	%rdx, %rdx
	jz	4f
	mov	%rdx, %rax
	xor	%edx, %edx			/* PB_PROG_JUMP */
	jmp	3f
4:
	mov	%rax, %rdi
	mov	136 + F_R8(%rbp), %r11
.Lrun:
	make_regs 136, 136 + F_R11
	/* struct pb_prog_target pb_prog_hit(site, regs) */
	mov	%rsp, %rsi
	call	pb_prog_hit
	take_regs
	mov	%rbp, %rsp
3:
	.cfi_def_cfa_register rsp
	pop_reg rbp
	.cfi_restore rbp
	lea	128(%rsp), %rsp
	.cfi_adjust_cfa_offset -128
	mov	%rax, F_TARGET(%rsp)
	test	%edx, %edx			/* PB_PROG_JUMP */
	jnz	2f
	restore
	mov	F_R8(%rsp), %r11
	jmp	*F_TARGET(%rsp)
2:
	mov	F_R11(%rsp), %r11
	restore
	mov	F_TARGET(%rsp), %rax
	ret

	/* The program's stack may be too small even for pb_prog_room(), which therefore runs on a
	 * stack of the agent. If pb_prog_room() finds that the program's stack has enough room,
	 * the eBPF programs run on the program's stack, as at other sites. */
.Lsmall:
	to_hit_stack .Lcramped
	mov	%r11, %rdi
	mov	%rbp, %rsi
	call	pb_prog_room
	from_hit_stack
	mov	F_R8(%rsp), %r11
	test	%rdx, %rdx
	jz	5f
	mov	%rdx, F_TARGET(%rsp)
	restore
	mov	F_R8(%rsp), %r11
	jmp	*F_TARGET(%rsp)
5:
	mov	%rax, %rdi
	lea	-128(%rsp), %rsp
	.cfi_adjust_cfa_offset 128
	push_reg rbp
	.cfi_rel_offset rbp, 0
	mov	%rsp, %rbp
	jmp	.Lrun
	.cfi_endproc

	/* The stack has no room even for pb_prog_room(). The programs miss the call. If tracing is
	 * on, pb_enter_cramped decides whether the call also counts as lost. */
	.cfi_startproc
.Lcramped:
	mov	pb_prog_missed(%rip), %rax
	lock incq (%rax)
	cmpl	$0, pb_max_depth(%rip)
	je	pb_graph_reject
	xor	%edx, %edx
	jmp	pb_enter_cramped
	.cfi_endproc
.Lcramped_end:
	hot_range .Lcramped, .Lcramped, .Lcramped_end
	.size pb_prog_entry, . - pb_prog_entry

	.section .note.GNU-stack,"",@progbits
