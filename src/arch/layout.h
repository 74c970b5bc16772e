/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Constants that C code shares with the hit path's assembly, for every architecture: offsets in the
 * state of threads, in sites and in chunks; states of open calls; and the modes of pb_enter(). The
 * layout of open calls is in open_call.h. Frames and stubs differ by architecture, and are in the
 * architecture's frame.h. C code asserts each offset except L_START and L_SITE.
 * doc/design/open-calls.md says what the fields may hold at every instruction.
 */
#ifndef PB_ARCH_LAYOUT_H
#define PB_ARCH_LAYOUT_H

/* The state of an open call. */
#define PB_ENTRY_LEAF		0	/* the call has no ENTRY record yet, but its parent has
					 * one or is about to get one */
#define PB_ENTRY_EMITTED	1	/* its ENTRY record is written */
/* the call has no ENTRY yet, and its parents may have none; the call's exit decides whether the
 * call is recorded */
#define PB_ENTRY_LAZY		2
#define PB_ENTRY_LATE		3	/* a callee needed this call's ENTRY, but the ENTRY wasn't
					 * written: there was no room, or a handler's jump left the
					 * code that was about to write it */
#define PB_ENTRY_SILENT		5	/* neither this call nor any call below it is recorded */
#define PB_ENTRY_PROG		6	/* the call is open only because eBPF programs run at its
					 * return. It isn't in the tree of traced calls: it counts
					 * neither as a parent nor for the depth */
#define PB_ENTRY_FOOT		7	/* the foot of a segment, that is, its first entry. It
					 * stands for the last call of the previous segment. For
					 * the state, look at that call. */
#define PB_ENTRY_CLAIMED	9	/* C code is about to write this call's ENTRY, for the first
					 * time. The assembly's `bts` makes a LEAF call EMITTED by
					 * setting the lowest bit. In this value the bit is already
					 * set, so `bts` doesn't take the call for a LEAF */
#define PB_ENTRY_RECLAIMED	11	/* the same, but the call was LATE, and is counted as late
					 * (doc/design/ring.md, "Late calls") */

/* More than the depth of any call. */
#define PB_DEPTH_MAX		0x7fffffff
/* The call has no eBPF programs of its own, but its exit must go to C code. Usually the reason is a
 * call before it in the array, with the same return slot, that has programs. */
#define PB_WATCH_BELOW		0xffff
#define PB_MAX_WATCHED		6	/* if this many open calls already have a new call's return
					 * slot, no eBPF programs run at the new call's return */

/* struct pb_thread */
#define T_LO			0
#define T_TOP			8
#define T_MAX_DEPTH		16
#define T_NO_CLOCK		20
#define T_WATCHING		21
#define T_FROZEN_CLOCK		24
#define T_POS			32
#define T_CHUNK			40
#define T_LAST			48
#define T_LEAF			56
#define T_COUNTS		64
#define T_LOST			80
#define T_SERIAL		136
#define T_THRESH		504
#define T_BOTTOM		512

/* struct pb_ring_thread */
#define H_LOST			16
#define H_LATE			40
/* struct pb_ring */
#define R_CALLS_LOST		192
#define R_CALLS_LATE		712

/* struct pb_process */
#define PROCESS_EPOCH		4
#define PROCESS_STACKS_FREED	9

/* struct pb_site */
#define S_HANDLER		0
#define S_BODY			8
#define S_ID			16
#define S_FLAGS			24
/* FTRACE_FL_SMALL is the bit PB_SITE_SMALL of the byte at S_SMALL, the sixth byte of the flags */
#define S_SMALL			29
#define PB_SITE_SMALL		0x80

/* struct prog_site */
#define P_SITE			0
#define P_CALL			8
/* the hash by which the address of a struct pb_site leads to its place in pb_prog_sites */
#define PB_PROG_HASH_ALIGN	5
#define PB_PROG_HASH_FACTOR	0x9e3779b97f4a7c15
#define PB_PROG_HASH_BITS	17
/* The least number of bytes of the thread's stack with which programs run. Programs with callbacks
 * or without native code may need more (struct prog_site's `room`). */
#define PB_PROG_ROOM		12288
#define PB_TOLD_GUARD		4096	/* the first page of a stack that the program reported may
					 * be its guard */

/* struct pb_chunk */
#define L_SERIAL		4
/* offsets from the chunk's leaf_start: of leaf_start itself, and of leaf_site */
#define L_START			0
#define L_SITE			8

/* What a part of the hit path handles: an entry, or one of two kinds of exits. */
#define PB_HOT_ENTRY		0
#define PB_HOT_RET		1	/* a plain return */
#define PB_HOT_JUMP		2	/* any other exit; the exit's stub executes it */

/* how pb_enter() treats the call */
#define PB_ENTER_NESTED		1	/* record the call only if it is below a traced call */
#define PB_ENTER_LAZY		2
#define PB_ENTER_CALL		4	/* record the entry only */
#define PB_ENTER_SILENT		8
#define PB_ENTER_LIST		16	/* pb_ftrace_list() decides how to treat the call */
#define PB_ENTER_FUNCTION	32	/* function tracer */

/* pb_no_clock */
#define PB_CLOCK_FROZEN		1	/* all records have the time pb_frozen_clock */
#define PB_CLOCK_NONE		2	/* --clock=none: pb_frozen_clock is 0 */

#define PB_MAX_REPLACED		32	/* how many functions C code of the agent may replace */
#define PB_PROG_CODE		0x100000	/* bytes for native code of programs */

/* how pb_prog_entry() continues after pb_prog_hit() */
#define PB_PROG_JUMP		0	/* it jumps to the address that pb_prog_hit() returned, with
					 * the registers as if the stub had jumped there */
#define PB_PROG_RETURN		1	/* it returns to the function's caller; pb_prog_hit()
					 * returned the call's return value, not an address */

#endif
