/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The call of an eBPF program's native code, and the pages for native code. These pages are part of
 * the agent, so unwinders find the agent's CFI for them. In all native code r12 points to the run
 * (struct pb_bpf_run). The word before the run holds the stack pointer with which pb_prog_call
 * called the code. From this word, an unwinder finds the frame of pb_prog_call. So one CFI rule is
 * enough for all native code.
 */
#include "arch/x86_64/frame.h"

	.text
	/* u64 pb_prog_call(ctx, run, enter) */
	.globl	pb_prog_call
	.hidden	pb_prog_call
	.type	pb_prog_call, @function
	.balign 16
pb_prog_call:
	.cfi_startproc
	push	%rbp
	.cfi_adjust_cfa_offset 8
	.cfi_rel_offset rbp, 0
	mov	%rsp, %rbp
	.cfi_def_cfa_register rbp
	push	%rbx
	.cfi_offset rbx, -24
	push	%r12
	.cfi_offset r12, -32
	push	%r13
	.cfi_offset r13, -40
	push	%r14
	.cfi_offset r14, -48
	push	%r15
	.cfi_offset r15, -56
	lea	-8(%rsp), %rsp
	mov	%rsi, %r12
	mov	%rsp, -8(%r12)
	call	*%rdx
	mov	-8(%rbp), %rbx
	.cfi_restore rbx
	mov	-16(%rbp), %r12
	.cfi_restore r12
	leave
	.cfi_def_cfa rsp, 8
	.irp reg, rbp, r13, r14, r15
	.cfi_restore \reg
	.endr
	ret
	.cfi_endproc
	.size pb_prog_call, . - pb_prog_call

	.section .bpf_code,"ax",@progbits
	.balign 4096
	.cfi_startproc
	/* DW_CFA_def_cfa_expression breg12 -8, deref; the caller's rbp is CFA + 48 */
	.cfi_escape 0x0f,0x03,0x7c,0x78,0x06
	.cfi_offset rip, -8
	.cfi_val_offset rbp, 48
	/* An unwinder looks up PC - 1, also if PC is the first instruction. So the unwind table
	 * covers bytes before the code, too. */
	.skip 16, 0xcc
	.balign 4096, 0xcc
	.globl	pb_prog_code
	.hidden	pb_prog_code
	.type	pb_prog_code, @object
pb_prog_code:
	.skip	PB_PROG_CODE, 0xcc
	.cfi_endproc
	.size pb_prog_code, . - pb_prog_code
	.section .note.GNU-stack,"",@progbits
