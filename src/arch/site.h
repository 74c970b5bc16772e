/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A function that can be patched: like the kernel's struct dyn_ftrace, with the words that the stub
 * needs. Each module has an array of struct pb_site beside its stubs. A function has the same index
 * in this array as in the module's analysis.
 */
#ifndef PB_ARCH_SITE_H
#define PB_ARCH_SITE_H
#include <stdbool.h>
#include <stdint.h>
#include "arch/layout.h"

struct pb_site {
	uint64_t handler;	/* where the stub jumps; one release store here switches the site on
				 * or off */
	uint64_t body;		/* where the handler jumps: to a replacement, or into the stub, to
				 * the instruction before the stub's body. That instruction restores
				 * r11, which hasn't the program's value at the jump. A replacement
				 * doesn't need r11. */
	uint32_t id;		/* number in the records */
	uint32_t stub;		/* the stub's offset in the module's stubs; 0: there is no stub
				 * yet */
	uint64_t flags;		/* FTRACE_FL_* */
};
_Static_assert(__builtin_offsetof(struct pb_site, handler) == S_HANDLER, "layout.h");
_Static_assert(__builtin_offsetof(struct pb_site, body) == S_BODY, "layout.h");
_Static_assert(__builtin_offsetof(struct pb_site, id) == S_ID, "layout.h");
_Static_assert(__builtin_offsetof(struct pb_site, flags) == S_FLAGS, "layout.h");

/* The addresses that the stubs of a module's exits jump to. Each module has one such struct,
 * beside its sites. replaced.S uses the first member. */
struct pb_returns {
	uint64_t ret;		/* serves a plain ret: the code at this address executes the ret.
				 * When the stub jumps, all registers have the program's values. */
	uint64_t jump;		/* serves any other exit: the code at this address jumps back to the
				 * address in r11. The program's r11 is at -56(%rsp). */
};

/* As in the kernel: a count of callbacks, and flags with the kernel's names. Most flags have other
 * bits than in the kernel. */
#define FTRACE_FL_COUNT		((1ul << 29) - 1)
#define FTRACE_FL_ENABLED	(1ul << 29)	/* the function's text jumps to the stub */
#define FTRACE_FL_REGS		(1ul << 30)
#define FTRACE_FL_REGS_EN	(1ul << 31)
#define FTRACE_FL_TRAMP		(1ul << 32)
#define FTRACE_FL_TRAMP_EN	(1ul << 33)
#define FTRACE_FL_IPMODIFY	(1ul << 34)
#define FTRACE_FL_DISABLED	(1ul << 35)
#define FTRACE_FL_DIRECT	(1ul << 36)	/* body is a replacement: code of the agent */
#define FTRACE_FL_DIRECT_EN	(1ul << 37)
/* Patchbay's own. */
#define FTRACE_FL_SMALL		(1ul << 47)	/* may run on a stack without room for C code
						 * (PB_AN_SMALL_STACKS) */
#define FTRACE_FL_TIMED		(1ul << 48)	/* an ops needs to know how long the site's calls
						 * take */
#define FTRACE_FL_REFUSED	(1ul << 49)	/* refused by the analysis or by the agent; bits
						 * 56-63 say why (enum pb_refused) */
#define FTRACE_FL_CALLER	(1ul << 50)	/* selected by graph_callers */
#define FTRACE_FL_SLOT		(1ul << 51)	/* its trampoline slot holds the jump to the stub */
#define FTRACE_FL_RETURNS	(1ul << 52)	/* eBPF programs need its returns to be hooked */
#define FTRACE_FL_GOES_ON	(1ul << 53)	/* control may continue to the function's own entry,
						 * or to the next function's entry, without passing
						 * an exit */
#define FTRACE_FL_ENDS		(1ul << 54)	/* with DIRECT: the call's end is recorded when the
						 * replacement returns */
#define FTRACE_FL_PASSES	(1ul << 55)	/* with DIRECT: the call's end is recorded at the
						 * exits of the original, to which the replacement
						 * jumps. With neither flag, it isn't recorded */
#define FTRACE_FL_REASON_SHIFT	56
_Static_assert(FTRACE_FL_SMALL == (uint64_t)PB_SITE_SMALL << 8 * (S_SMALL - S_FLAGS), "layout.h");

/* Returns whether a call of the function ends at the function's own exits. False: a replacement
 * returns in the function's place. */
static inline bool pb_site_exits_itself(const struct pb_site *s)
{
	return !(s->flags & FTRACE_FL_DIRECT) || s->flags & FTRACE_FL_PASSES;
}
#endif
