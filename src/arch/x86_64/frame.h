/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Constants of stubs, of the frame in the red zone and of struct pt_regs, which x86-64's assembly
 * and its C code share. Other shared constants are in arch/layout.h.
 */
#ifndef PB_ARCH_X86_64_FRAME_H
#define PB_ARCH_X86_64_FRAME_H
#include "arch/layout.h"

#define PB_RED_ZONE		128	/* bytes below the stack pointer that signals leave alone */
/* Number of bytes of stack that the C code of a slow path needs below the slot. scripts/check-stack
 * adds up what that code needs. */
#define PB_HIT_ROOM		1920
/* Number of bytes of stack that pb_prog_room() needs before it has checked whether PB_HIT_ROOM
 * bytes are left. */
#define PB_LOOK_ROOM		384

/*
 * Functions of some runtimes run on stacks that have no room for the agent's C code: a Go function
 * may be entered with a few hundred bytes left. Below the stack there is no guard page, but memory
 * of the program. So at a site with FTRACE_FL_SMALL, slow_entry.S calls C code on a stack of the
 * agent. A hit takes one of these stacks by storing its owner (hit_stacks.h). If all of them are
 * taken, the call is counted as lost. The first stack is only for a forked child that hasn't freed
 * the stacks of its parent's threads yet. So the child gets a stack for its first hit, even if its
 * parent's threads had taken all others. Handlers of such programs have an alternate stack. But if
 * a handler has none, it runs on the agent's stack, so these stacks are larger than PB_HIT_ROOM.
 */
#define PB_NR_HIT_STACKS	32
#define PB_HIT_STACK_SHIFT	15
#define PB_HIT_EPOCH_BITS	16	/* low bits of an owner */
#define PB_HIT_TAKEN_BIT	63	/* this bit of an owner is 1 */

/* struct pb_hit_stack_use (hit_stacks.h), at the upper end of each of these stacks */
#define HIT_STACK_USE		16
#define U_SLOT			0

/*
 * The stub of a site (made by stub.c). It is entered with the program's registers and with rsp at
 * the slot. The slot is the word of the stack that holds the return address:
 *
 *    0  mov  %r11,-56(%rsp)
 *    5  lea  site(%rip),%r11
 *   12  jmp  *(%r11)              site->handler
 *   15  mov  -56(%rsp),%r11       <- site->body; also site->handler if the site is idle
 *   20  the body: the displaced instructions, and the jump back
 */
/* Bytes before the first stub of a module, for copies of handlers (near.c). */
#define PB_STUBS_HEAD		8192
#define PB_NEAR_LEAVE_LEN	14	/* jmp *word(%rip), and the word */
#define PB_STUB_IDLE		15
#define PB_STUB_COPY		20

/*
 * A window is the code that a jump to a stub replaces (abi/analysis.h). The stub has a copy of the
 * window. In this copy, the window's exits are changed as follows. At each exit, rsp is at the
 * slot. A plain ret becomes
 *
 *       jmp  *ret(%rip)             pb_returns.ret
 *
 * Any other unconditional exit is preceded by the code shown here. For a conditional exit, this
 * code comes after the copy of the window, and the exit's copy jumps to this code. In that case,
 * the last line stands for an unconditional jump to the conditional exit's target:
 *
 *    0  mov  %r11,-56(%rsp)
 *    5  lea  1f(%rip),%r11
 *   12  jmp  *jump(%rip)            pb_returns.jump
 *   18  1: mov -56(%rsp),%r11
 *   23  the exit
 */
#define PB_EXIT_RET_LEN		6
#define PB_EXIT_JUMP_LEN	23
#define PB_EXIT_RELOAD_LEN	5	/* the reload of r11 at label 1; the exit comes after it */

/*
 * The frame in the red zone, as offsets from rsp. At an entry and at an exit, rsp is at the slot.
 * F_R11 is used at an entry, and at an exit that isn't a plain ret.
 *
 * The six words below the slot stay as they are. At an exit, the function has popped its registers
 * from there. GCC's unwind tables say, even at the exit, that the registers are in these words. So
 * an unwinder reads these words if a signal handler interrupts the exit.
 */
#define F_R11			-56
#define F_RAX			-64
#define F_RCX			-72
#define F_RDX			-80
#define F_FLAGS			-88
#define F_RDI			-96
#define F_RSI			-104
#define F_TARGET		-112
#define F_R8			-120
#define F_SERIAL		-128	/* only while a reserved word becomes a PAD */
#define F_RBP			-128	/* only while C code runs on a stack of the agent */

#define PB_THUNK_SIZE		32	/* size of a thunk in replaced.S */

/* the offsets in struct pt_regs, as the kernel exports it to user space */
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
#define R_ORIG_RAX		120
#define R_RIP			128
#define R_CS			136
#define R_FLAGS			144	/* as the macro `save` of hot.inc stores the flags, until C
				 * code converts them */
#define R_RSP			152
#define R_SS			160
#define R_SIZE			168

#endif
