/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The gates. Gate i calls the body that entry i names; the body returns into
 * the gate, and the exit path finds the entry from the return address that
 * still stands below the stack pointer.
 *
 * One CFI rule serves all of them, at each instruction, with rsp just above
 * the slot: the caller's return address is saved in entry i, which is
 * (RA & -16) + PB_GATE_DISTANCE, RA being the PC of this very frame. The
 * caller's rsp is rsp. Unwinders tell frames by their CFA, which must differ
 * from the body's, and where a slot has several gates, from theirs: it is
 * rsp + 8, and for entries of depth PB_DEPTH_WATCHED + n it is rsp + 7 - n,
 * which is no frame's and no other slot's.
 */
#include "arch/x86_64/layout.h"

	.section .gates,"ax",@progbits
	.balign 4096
	.cfi_startproc
	.if PB_GATE_DISTANCE + E_DEPTH != 0xe00cc8 || PB_DEPTH_WATCHED != 0x82 << 24
	.error "the CFA's expression"
	.endif
	/* DW_CFA_def_cfa_expression breg16 0, const1s -16, and, plus_uconst 0xe00cc8, deref_size 4,
	 * dup, lit24, shr, const1u 0x82, eq, swap, const1u 0xff, and, lit1, plus, mul, neg, breg7 8, plus */
	.cfi_escape 0x0f,0x1d,0x80,0x00,0x09,0xf0,0x1a,0x23,0xc8,0x99,0x80,0x07,0x94,0x04
	.cfi_escape 0x12,0x48,0x25,0x08,0x82,0x29,0x16,0x08,0xff,0x1a,0x31,0x22,0x1e,0x1f,0x77,0x08,0x22
	/* DW_CFA_val_expression r7: breg7 0 */
	.cfi_escape 0x16,0x07,0x02,0x77,0x00
	/* DW_CFA_expression r16: breg16 0, const1s -16, and, plus_uconst 0x800000 */
	.cfi_escape 0x10,0x10,0x0a,0x80,0x00,0x09,0xf0,0x1a,0x23,0x80,0x80,0x80,0x04
	.skip 16, 0xcc	/* unwinders look up PC - 1: before gate 0 too */
	.balign 4096, 0xcc
	.globl pb_gates
	.hidden pb_gates
	.type pb_gates, @object
pb_gates:
	.rept PB_NR_GATES
	call *PB_GATE_DISTANCE + A_BODY - PB_GATE_RETURN(%rip)
	jmp pb_gate_exit
	.balign PB_GATE_SIZE, 0xcc
	.endr
	.cfi_endproc
	.size pb_gates, . - pb_gates
	.section .note.GNU-stack,"",@progbits
