/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What the assembly of any architecture's hit path and the C code agree on: the state of
 * threads, site descriptors, chunks, modes. Open calls are in open_call.h; frames and stubs,
 * which only one architecture has so, in its own frame.h. The C code asserts each offset.
 * doc/design/open-calls.md says what each may hold at every instruction.
 */
#ifndef PB_ARCH_LAYOUT_H
#define PB_ARCH_LAYOUT_H

/* What is known of an open call. */
#define PB_ENTRY_LEAF		0	/* no ENTRY record yet; its parent's stands */
#define PB_ENTRY_EMITTED	1	/* ENTRY record written */
#define PB_ENTRY_LAZY		2	/* no ENTRY yet, nor perhaps its parents': at an exit */
#define PB_ENTRY_LATE		3	/* a callee needed the ENTRY: there was no room for it */
#define PB_ENTRY_SILENT		5	/* not recorded, and nothing below it */
#define PB_ENTRY_PROG		6	/* not in the tree: eBPF programs run at the return */
#define PB_ENTRY_FOOT		7	/* of a segment of open calls: the call below it decides */

/* No call is as deep. */
#define PB_DEPTH_MAX		0x7fffffff
#define PB_MAX_WATCHED		6	/* calls that wait for one return */

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

/* What a piece of the hit path belongs to. */
#define PB_HOT_ENTRY		0
#define PB_HOT_RET		1	/* a plain return */
#define PB_HOT_JUMP		2	/* another exit: its stub goes on with it */

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
#define PB_PROG_CODE		0x100000	/* bytes for native code of programs */

/* pb_prog_hit(): how the call goes on */
#define PB_PROG_JUMP		0	/* at the address, as from the stub */
#define PB_PROG_RETURN		1	/* not at all: it returns the "address" */

#endif
