/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Where the assembly of the hit path and the C code agree: thread state, site
 * descriptor, stubs, red-zone frame; open calls are in open_call.h. doc/design/open-calls.md
 * says what each may hold at every instruction.
 */
#ifndef PB_ARCH_LAYOUT_H
#define PB_ARCH_LAYOUT_H

/* What is known of an open call. */
#define PB_ENTRY_LEAF		0	/* no ENTRY record yet; its parent's stands */
#define PB_ENTRY_EMITTED	1	/* ENTRY record written */
#define PB_ENTRY_LAZY		2	/* no ENTRY yet, perhaps nor its parents': at an exit */
#define PB_ENTRY_LATE		3	/* a callee needed the ENTRY, and found no room for it */
#define PB_ENTRY_SILENT		5	/* not recorded, and nothing below it */
#define PB_ENTRY_PROG		6	/* not in the tree: eBPF programs run at the return */
#define PB_ENTRY_FOOT		7	/* of a segment of open calls: the call below it decides */

/* No call is as deep. */
#define PB_DEPTH_MAX		0x7fffffff
#define PB_MAX_WATCHED		6	/* calls that wait for one return */
/* Bytes of the stack, from the slot, that C code of a slow path has for itself; scripts/check-stack
 * adds up what it needs. */
#define PB_HIT_ROOM		1664
/* The same, of pb_prog_room() where it finds less than that. */
#define PB_LOOK_ROOM		384

/* struct pb_thread */
#define T_LO			0
#define T_TOP			8
#define T_BOTTOM		16
#define T_POS			24
#define T_CHUNK			32
#define T_LAST			40
#define T_LEAF			48
#define T_COUNTS		56
#define T_LOST			72
#define T_SERIAL		128

/* struct pb_ring_thread; */
#define H_LOST			16
/* struct pb_ring; */
#define R_CALLS_LOST		192

/* struct pb_site */
#define S_HANDLER		0
#define S_BODY			8
#define S_ID			16

/* struct pb_chunk; */
#define L_SERIAL		4
/* from leaf_start */
#define L_START			0
#define L_SITE			8

/*
 * The stub of a site (made by arch/x86_64/stub.c), entered with the program's
 * registers, rsp at the slot:
 *
 *    0  mov  %r11,-8(%rsp)
 *    5  lea  site(%rip),%r11
 *   12  jmp  *(%r11)              site->handler
 *   15  mov  -8(%rsp),%r11        <- handler of a disabled site; site->body
 *   20  the displaced instructions, and the jump back
 */
/* Before the first stub of a module. */
#define PB_STUBS_HEAD		16
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
#define PB_EXIT_RELOAD_LEN 5	/* the last of them, at r11: r11 again. Then the exit */

/* What a range of the hit path is of (hot.h). */
#define PB_HOT_ENTRY		0	/* r11 is the site */
#define PB_HOT_RET		1	/* of a plain ret: r11 is the program's */
#define PB_HOT_JUMP		2	/* of another exit: r11 is where its stub goes on */

/*
 * The frame in the red zone, from rsp, which is at the slot at an entry and at an exit.
 * -8 holds r11 at an entry, and at an exit that isn't a ret.
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
#define F_SERIAL		-80	/* only while a reserved word becomes a PAD */

/* how pb_enter() is to treat the call */
#define PB_ENTER_NESTED		1	/* only below a call that is traced */
#define PB_ENTER_LAZY		2
#define PB_ENTER_CALL		4	/* record the entry only */
#define PB_ENTER_SILENT		8
#define PB_ENTER_LIST		16	/* as the list function says */
#define PB_ENTER_FUNCTION	32	/* function tracer */

/* pb_no_clock */
#define PB_CLOCK_FROZEN		1	/* all records have the time pb_frozen_clock */
#define PB_CLOCK_NONE		2	/* --clock=none: it is 0, and wasn't taken */

#define PB_MAX_REPLACED		32	/* functions that C code of the agent replaces */
#define PB_THUNK_SIZE		32	/* of replaced.S */

#define PB_PROG_CODE		0x100000	/* bytes for native code of programs */

/* pb_prog_hit(): how the call goes on */
#define PB_PROG_JUMP		0	/* at the address, as from the stub */
#define PB_PROG_RETURN		1	/* not at all: it returns the "address" */

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
