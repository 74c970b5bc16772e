/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The layout of a stack's open calls, for assembly and C. doc/design/open-calls.md
 * explains the states, and what a signal handler may see at each instruction.
 *
 * An open call is an entry of 32 bytes in an array. The entry's first word (O_WORD) says whether
 * the entry is in use, and in which stage: being filled, live, or being ended. (The field O_STATE
 * says something else; layout.h has its values.) The word's values:
 *
 *     slot         live: this stack slot holds the call's return address
 *     ~slot        claimed: the handler of the function's entry is filling these 32 bytes
 *     slot | 2^63  leaving: the code that the exit's stub jumps to is writing the record
 *     ~(slot + 2)  closing: C code is writing the end of a skipped call
 *     slot - 1     the foot of a segment: stands for a call in another segment
 *     -1           free
 *     0            the end of the segment
 *
 * Slots are 8-aligned addresses below 2^47. In a signed comparison, only the words of live calls
 * and of feet can be greater than a stack pointer.
 */
#ifndef PB_ARCH_OPEN_CALL_H
#define PB_ARCH_OPEN_CALL_H

#define O_WORD			0
#define O_START			8
#define O_SITE			16
#define O_STATE			20
#define O_RECORD		21
#define O_WATCH			22
#define O_RET			24
#define PB_OPEN_SIZE		32
#define PB_OPEN_SHIFT		5

/* A segment of the array holds a header, the foot, the calls and the end. */
#define PB_OPEN_SEGMENT		4096	/* bytes, and alignment */
#define PB_OPEN_CALLS		((PB_OPEN_SEGMENT - PB_OPEN_SIZE) / PB_OPEN_SIZE - 2)
#define G_PREV			0
#define G_DEPTH			24

/* O_RECORD: the state of a leaving call's record. */
#define PB_OPEN_UNKNOWN		0
#define PB_OPEN_UNRESERVED	1
#define PB_OPEN_RESERVED	2
#define PB_OPEN_WRITTEN		3

#define PB_OPEN_FREE		-1
#define PB_OPEN_LEAVING		0x80	/* in the word's highest byte */
#define PB_OPEN_END		0

#endif
