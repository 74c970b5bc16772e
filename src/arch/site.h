/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A function that can be patched: struct dyn_ftrace with what its stub needs.
 * One array per module, beside its stubs, indexed as the analysis' functions.
 */
#ifndef PB_ARCH_SITE_H
#define PB_ARCH_SITE_H
#include <stdbool.h>
#include <stdint.h>
#include "arch/layout.h"

struct pb_site {
	uint64_t handler;	/* where the stub jumps: one release store toggles the site */
	uint64_t body;		/* where the call goes on: in the stub, whose frame has the
				 * program's value of the register that names the site; or in a
				 * replacement, to which that register means nothing */
	uint32_t id;		/* number in the records */
	uint32_t stub;		/* offset of its stub in the module's; 0: none yet */
	uint64_t flags;		/* FTRACE_FL_* */
};
_Static_assert(__builtin_offsetof(struct pb_site, handler) == S_HANDLER, "layout.h");
_Static_assert(__builtin_offsetof(struct pb_site, body) == S_BODY, "layout.h");
_Static_assert(__builtin_offsetof(struct pb_site, id) == S_ID, "layout.h");

/* Where the stubs of a module's exits jump to; one for each module, beside its sites. replaced.S
 * uses the first member. */
struct pb_returns {
	uint64_t ret;		/* a plain ret, registers as they are; ends in the `ret` itself */
	uint64_t jump;		/* all else, r11 at -8(%rsp); ends in a jump to r11 */
};

/* As the kernel's classic layout: a count of callbacks, and flags. */
#define FTRACE_FL_COUNT		((1ul << 29) - 1)
#define FTRACE_FL_ENABLED	(1ul << 29)	/* the text jumps to the stub */
#define FTRACE_FL_REGS		(1ul << 30)
#define FTRACE_FL_REGS_EN	(1ul << 31)
#define FTRACE_FL_TRAMP		(1ul << 32)
#define FTRACE_FL_TRAMP_EN	(1ul << 33)
#define FTRACE_FL_IPMODIFY	(1ul << 34)
#define FTRACE_FL_DISABLED	(1ul << 35)
#define FTRACE_FL_DIRECT	(1ul << 36)	/* body is a replacement of ours */
#define FTRACE_FL_DIRECT_EN	(1ul << 37)
/* Ours. */
#define FTRACE_FL_REFUSED	(1ul << 49)	/* by the agent; why: bits 56-63 */
#define FTRACE_FL_CALLER	(1ul << 50)	/* of graph_callers */
#define FTRACE_FL_SLOT		(1ul << 51)	/* its jump stands in the slot */
#define FTRACE_FL_RETURNS	(1ul << 52)	/* programs see its return, or need it */
#define FTRACE_FL_GOES_ON	(1ul << 53)	/* its call may go on at an entry without an exit */
#define FTRACE_FL_ENDS		(1ul << 54)	/* DIRECT: it ends as an exit's stub does */
#define FTRACE_FL_PASSES	(1ul << 55)	/* DIRECT: the original's exits end the call */
#define FTRACE_FL_REASON_SHIFT	56

/* Do the exits of the site's function itself end its calls? Not where the agent stands in
 * for it and returns by itself. */
static inline bool pb_site_exits_itself(const struct pb_site *s)
{
	return !(s->flags & FTRACE_FL_DIRECT) || s->flags & FTRACE_FL_PASSES;
}
#endif
