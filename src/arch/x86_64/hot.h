/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Describes the hit path (section pb_hot) for C code that interprets program counters. A struct
 * pb_hot_range describes one range of code. Everywhere in the range, rsp points to the return
 * address. From the offset `saved` on, the frame in the red zone (frame.h) has the program's values
 * of the registers that the code uses. Before that offset, the frame has only rax, and this only
 * from the range's second instruction on.
 */
#ifndef PB_ARCH_HOT_H
#define PB_ARCH_HOT_H
#include <stdbool.h>
#include <stdint.h>

struct pb_hot_range {
	int32_t start;		/* offset of the range's first byte from this member's address */
	uint32_t saved, end;	/* offsets from the range's first byte; `end` is the range's size */
	uint32_t rdi_rsi;	/* Which of rdi, rsi and r8 have their program's values only in the
				 * frame. 0: none of them; the frame may have the values, too. 1:
				 * rdi and rsi. 2: all three. 3: rdi; the frame has rsi, too. */
	uint32_t of;		/* What r11 holds. PB_HOT_ENTRY: the site. PB_HOT_RET: the program's
				 * r11. PB_HOT_JUMP: the address at which the exit's stub goes
				 * on. */
};
/* Code that reloads registers from the frame. From the second instruction on, some registers have
 * the program's values again. This also holds at the instruction after this code. */
struct pb_hot_restore {
	int32_t start;		/* offset from this member's own address */
	uint32_t length;
};

/* Code in which an exit is under way, and the exit's record isn't written yet. rcx is the call that
 * ends, or 0 if there is none. In all other code of exits, either no exit is under way, or its
 * record is written. */
struct pb_hot_unwritten {
	int32_t start;		/* offset from this member's own address */
	uint32_t length;	/* in bytes */
	uint32_t record;	/* PB_OPEN_UNRESERVED or PB_OPEN_RESERVED */
};

/* Code that is copied to the stubs of each module that is far from the agent (near.c). */
struct pb_near_range {
	int32_t start;		/* offset from this member's own address */
	uint32_t length;
};

#define PB_HIDDEN __attribute__((visibility("hidden")))
extern const struct pb_near_range __start_pb_near_ranges[] PB_HIDDEN;
extern const struct pb_near_range __stop_pb_near_ranges[] PB_HIDDEN;
/* The jumps out of copied code. Each element is the offset of a jump from the element's own
 * address. */
extern const int32_t __start_pb_near_leaves[] PB_HIDDEN, __stop_pb_near_leaves[] PB_HIDDEN;
extern const struct pb_hot_range __start_pb_hot_ranges[] PB_HIDDEN;
extern const struct pb_hot_range __stop_pb_hot_ranges[] PB_HIDDEN;
extern const struct pb_hot_restore __start_pb_hot_restores[] PB_HIDDEN;
extern const struct pb_hot_restore __stop_pb_hot_restores[] PB_HIDDEN;
extern const struct pb_hot_unwritten __start_pb_hot_unwritten[] PB_HIDDEN;
extern const struct pb_hot_unwritten __stop_pb_hot_unwritten[] PB_HIDDEN;
extern const char __start_pb_hot[] PB_HIDDEN, __stop_pb_hot[] PB_HIDDEN;
#undef PB_HIDDEN

extern bool pb_hot_linked;	/* each load of the TLS word contains the word's offset (hot_tls.c),
				 * so the code in pb_near_ranges can be copied */

static inline bool pb_hot_holds(uint64_t pc)
{
	return pc - (uint64_t)__start_pb_hot < (uint64_t)(__stop_pb_hot - __start_pb_hot);
}
#endif
