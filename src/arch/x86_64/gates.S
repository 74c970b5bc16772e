/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The gates. Gate i calls the body that entry i names; the body returns into
 * the gate, and the exit path finds the entry from the return address that
 * still stands below the stack pointer.
 *
 * One CFI rule serves all of them, at each instruction, with rsp just above
 * the slot: the caller's return address is saved in entry i, which is
 * (RA & -16) + PB_GATE_DISTANCE, RA being the PC of this very frame. The CFA
 * is rsp + 8 (unwinders tell frames by their CFA, which must differ from the
 * body's), the caller's rsp is CFA - 8.
 */
#include "arch/x86_64/layout.h"

	.section .gates,"ax",@progbits
	.balign 4096
	.cfi_startproc
	.cfi_def_cfa rsp, 8
	.cfi_val_offset rsp, -8
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
