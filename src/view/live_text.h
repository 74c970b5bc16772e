/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Prints the text of `patchbay live`: replay's text, while the recording runs. A terminal can't
 * show as many calls as a program makes. If there is a limit of lines, calls beyond the limit are
 * left out. In their place, one line gives the number of the calls that were left out.
 *
 * Context: the observer. Only one thread uses it at a time.
 */
#ifndef PB_VIEW_LIVE_TEXT_H
#define PB_VIEW_LIVE_TEXT_H
#include "reader/follow.h"
#include "view/view.h"

struct pb_live_text {
	/* set by the caller */
	struct pb_out *out;
	unsigned flags;			/* PB_FG_* */
	uint32_t lines;			/* limit of lines per second; 0: no limit */

	/* private */
	struct pb_view view;
	struct pb_graph_text *graph;
	struct pb_latest latest;
	uint64_t tokens_ns, clock_ns;	/* tokens_ns: the lines that may still be printed now, as a
					 * time: each line costs 1 s / lines. clock_ns: when
					 * tokens_ns was computed */
	uint64_t left_out;		/* calls that were left out since the last line */
	uint64_t all_left_out, all_shown;
};

/* Prints the new events of the round. */
int pb_live_text_round(struct pb_live_text *l, struct pb_follow *f);
/* Called after the last round. Prints the open calls, the losses, and how many calls were left
 * out. */
void pb_live_text_end(struct pb_live_text *l, struct pb_follow *f);
void pb_live_text_free(struct pb_live_text *l);
#endif
