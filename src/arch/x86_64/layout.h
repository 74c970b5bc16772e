/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Where the assembly of the hit path and the C code agree: gates and entries,
 * thread state, site descriptor, red-zone frame. doc/design/fgraph.md says
 * what each may hold at every instruction.
 *
 * Gate i is 16 bytes of code at pb_gates + 16 i. Entry i lies PB_GATE_DISTANCE
 * behind it, as four arrays of stride 16 that lie PB_ENTRY_ARRAY apart:
 *
 *   A  +0 return address   +8 body (what the gate calls)
 *   B  +0 start            +8 slot: 0 free; S claimed; S-1 live, and *S is the
 *                             gate's address + 6; a root: its stack's end;
 *                             ~0 the guard of a block
 *   C  +0 parent entry     +8 site (u32)  +12 state (u8), PB_ENTRY_*
 *   E  +0 owner (struct pb_thread *)  +8 depth (u32, PB_DEPTH_*)  +12 scratch (u32)
 */
#ifndef PB_ARCH_LAYOUT_H
#define PB_ARCH_LAYOUT_H

#define PB_NR_GATES		131072
#define PB_GATE_SIZE		16
#define PB_GATE_RETURN		6	/* return address in a gate: behind its call */
#define PB_GATE_DISTANCE	0x800000
/* not a multiple of a page: loads must not seem to hit stores of other arrays */
#define PB_ENTRY_ARRAY		(PB_NR_GATES * 16 + 0x440)
#define PB_GATES_PER_BLOCK	64	/* the last of each is a guard */

#define A_RET			0
#define A_BODY			8
#define B_START			(PB_ENTRY_ARRAY + 0)
#define B_SLOT			(PB_ENTRY_ARRAY + 8)
#define C_PARENT		(2 * PB_ENTRY_ARRAY + 0)
#define C_SITE			(2 * PB_ENTRY_ARRAY + 8)
#define C_STATE			(2 * PB_ENTRY_ARRAY + 12)
#define E_OWNER			(3 * PB_ENTRY_ARRAY + 0)
#define E_DEPTH			(3 * PB_ENTRY_ARRAY + 8)
#define E_SCRATCH		(3 * PB_ENTRY_ARRAY + 12)

#define PB_ENTRY_LEAF		0	/* no ENTRY record yet; its parent's stands */
#define PB_ENTRY_EMITTED	1	/* ENTRY record written */
#define PB_ENTRY_LAZY		2	/* no ENTRY yet, nor perhaps its parents': written at an exit */
#define PB_ENTRY_LATE		3	/* a callee needed the ENTRY, and there was no room for it */
#define PB_ENTRY_CLOSED		4	/* END was written, or nothing is to be */
#define PB_ENTRY_SILENT		5	/* not recorded, and nothing below it */
#define PB_ENTRY_PROG		6	/* not in the tree: eBPF programs run at the return */
#define PB_ENTRY_FOOT		7	/* of a segment of open calls: the call below it decides */

/* Depths: a root's is 0. pb_max_depth is the first if there is no limit; so is
 * the depth of a silent call. The others stand for the parent's and one: NEXT if
 * that is also the entry before this one (in a free entry, too: then its parent is
 * written, and B_START 0), PARENT if it is another. */
#define PB_DEPTH_MAX		0x7fffffff
#define PB_DEPTH_NEXT		0x80000000
#define PB_DEPTH_PARENT		0x81000000
/* Of entries that are no part of the tree: how many of them have this slot. Unwinders
 * tell their gates by that, see gates.S. */
#define PB_DEPTH_WATCHED	0x82000000
#define PB_MAX_WATCHED		6	/* as many as addresses between two slots, and no frame's */

/* struct pb_thread */
#define T_LO			0
#define T_CUR			8
#define T_HINT			16
#define T_TOP			24
#define T_POS			32
#define T_CHUNK			40
#define T_LAST			48
#define T_LEAF			56

/* struct pb_site */
#define S_HANDLER		0
#define S_BODY			8
#define S_ID			16

/* struct pb_chunk, from leaf_start */
#define L_START			0
#define L_SITE			8

/*
 * The stub of a site (made by arch/x86_64/stub.c), entered with the program's
 * registers, rsp at the slot:
 *
 *    0  mov  %r11,-8(%rsp)
 *    5  lea  site(%rip),%r11
 *   12  jmp  *(%r11)              site->handler
 *   15  mov  -8(%rsp),%r11        <- handler of a disabled site
 *   20  the displaced instructions, and the way back   <- site->body
 */
#define PB_STUB_IDLE		15
#define PB_STUB_COPY		20

/*
 * What stands before an exit in the copy of a window that holds it (the same), rsp
 * at the slot. A plain ret is replaced:
 *
 *       jmp  *ret(%rip)             pb_returns.ret
 *
 * and so is any other exit, which comes after it; where it is conditional, its
 * target is such code behind the recipe's:
 *
 *    0  mov  %r11,-8(%rsp)
 *    5  lea  1f(%rip),%r11
 *   12  jmp  *jump(%rip)            pb_returns.jump
 *   18  1: mov -8(%rsp),%r11
 *   23  the exit
 */
#define PB_EXIT_RET_LEN		6
#define PB_EXIT_JUMP_LEN	23

/* What a range of the hit path is of (hot.h). */
#define PB_HOT_ENTRY		0	/* r11 is the site */
#define PB_HOT_RET		1	/* of a plain ret: r11 is the program's */
#define PB_HOT_JUMP		2	/* of another exit: r11 is where its stub goes on */

/*
 * The frame in the red zone, from rsp at the slot (entry) or behind it (exit).
 * -8 holds r11 at an entry, and the slot itself at an exit.
 */
#define F_R11			-8
#define F_RAX			-16
#define F_RCX			-24
#define F_RDX			-32
#define F_FLAGS			-40
#define F_RDI			-48
#define F_RSI			-56
#define F_TARGET		-64
#define F_R8			-72
#define F_EXIT_R11		-64

/* how pb_fgraph_enter() is to treat the call */
#define PB_ENTER_NESTED		1	/* only below a call that is traced */
#define PB_ENTER_LAZY		2
#define PB_ENTER_CALL		4	/* record the entry only */
#define PB_ENTER_SILENT		8
#define PB_ENTER_LIST		16	/* as the list function says */
#define PB_ENTER_FUNCTION	32	/* function tracer */

/* pb_no_clock */
#define PB_CLOCK_FROZEN		1	/* all records have the time pb_frozen_clock */
#define PB_CLOCK_NONE		2	/* --clock=none: it is 0, and wasn't taken */

/* how far the exit path had come when it gave up */
#define PB_EXIT_WHOLE		0	/* nothing done */
#define PB_EXIT_POPPED		1	/* current is the parent already */

#define PB_PROG_CODE		0x100000	/* bytes for native code of programs */

/* pb_prog_hit(): how the call goes on */
#define PB_PROG_JUMP		0	/* at the address, as from the stub */
#define PB_PROG_GATE		1	/* at the gate, the slot is dropped */
#define PB_PROG_RETURN		2	/* not at all: it returns the "address" */

/* struct pt_regs, of the processor's user interface */
#define R_R15			0
#define R_R14			8
#define R_R13			16
#define R_R12			24
#define R_RBP			32
#define R_RBX			40
#define R_R11			48
#define R_R10			56
#define R_R9			64
#define R_R8			72
#define R_RAX			80
#define R_RCX			88
#define R_RDX			96
#define R_RSI			104
#define R_RDI			112
#define R_FLAGS			144	/* as `save` has them, until C code makes flags of it */
#define R_RSP			152
#define R_SIZE			168

#endif
