/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The steps of the search for windows of exits (exit_windows.c, exit_shared.c): marking bytes as
 * taken, testing whether a window may begin at an address, and keeping a window.
 *
 * Context: any thread; part of one analysis (stages.h).
 */
#ifndef PB_MODULE_EXIT_PLACER_H
#define PB_MODULE_EXIT_PLACER_H
#include "module/analysis/exits_priv.h"
#include "module/analysis/relocate.h"

struct pb_placer {
	struct pb_an *an;
	ZydisDecoder decoder;
	struct pb_window_out out;	/* the window that was tried last */
	long last;			/* the index of the window that was added last, or -1 */
	pb_gap_vec gaps;		/* padding that may hold slots */
	size_t gap;			/* all gaps before this index in `gaps` are out of reach */
};

/* True if a window, a slot or displaced code occupies any byte of [start, end). */
bool pb_placer_used(const struct pb_an *an, uint64_t start, uint64_t end);
/* Marks [start, end) as taken or as free. */
void pb_placer_use(struct pb_an *an, uint64_t start, uint64_t end, bool used);
/* Adds the window's recipe (struct pb_recipe: the code that the stub runs in place of the displaced
 * instructions) to the file's recipes. Returns the recipe's offset. */
uint32_t pb_placer_recipe(struct pb_an *an, const struct pb_window_out *w);
/* True if the instruction at addr is an endbr64. An indirect branch may lead to an endbr64. */
bool pb_placer_endbr(const struct pb_an *an, uint64_t addr);
/* True if control reaches the instruction. Code that control never reaches may be data. */
bool pb_placer_alive(struct pb_placer *p, uint64_t addr, uint32_t unit);
/* True if a window with a jump of jump_len bytes may begin at `start` and hold the exit. If so,
 * p->out is the window. The window must not contain bytes that pb_placer_use() has marked as taken.
 * Bytes before old_end are an exception: they belong to the window that the new window
 * replaces. */
bool pb_placer_fits(struct pb_placer *p, const struct pb_fn_exit *e, uint64_t start,
		    unsigned jump_len, uint64_t old_end);
/* Makes p->out the exit's window, at `start`. */
void pb_placer_keep(struct pb_placer *p, struct pb_fn_exit *e, uint64_t start,
		    enum pb_exit_how how);
#endif
