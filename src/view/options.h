/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What the commands that read a data directory have in common: options as argp
 * children whose input is struct pb_view_options, opening the directory, and
 * the errors. Context: the observer, one thread.
 */
#ifndef PB_VIEW_OPTIONS_H
#define PB_VIEW_OPTIONS_H
#include <argp.h>
#include "view/filter.h"
#include "view/view.h"

#define PB_VIEW_MAX_LIST 256

struct pb_view_options {
	const char *command;		/* for errors */
	const char *dir;
	uint32_t buffer;
	bool no_pager;
	uint32_t tids[PB_VIEW_MAX_LIST];
	size_t nr_tids;
	struct { unsigned mark; const char *pattern; } filters[PB_VIEW_MAX_LIST]; /* PB_FILTER_* */
	size_t nr_filters;
	enum pb_match match;
	const char *range, *min_time;
	uint32_t max_depth;
	enum pb_demangle demangle;
	bool demangle_given;
};

/* -d --tid --buffer --demangle --no-pager; and those for what is shown: -F -N -D -t
 * --range --match. */
extern const struct argp pb_view_argp, pb_view_argp_select;

/* One more pattern (-F, -N, or what the view is about). */
void pb_view_add_filter(struct argp_state *state, struct pb_view_options *o, unsigned mark,
			const char *pattern);

/* Runs argp with these options as children's input. 0, or the exit status to
 * return; `stop` is set after --help. */
int pb_view_parse(const struct argp *argp, int argc, char **argv, void *input, bool *stop);

/* "12us", "1.5ms", "3s", "100" (ns) to ns. 0 or -EINVAL. */
int pb_view_parse_time(const char *text, uint64_t *ns);

/* Opens the directory and prepares v; 0, or the exit status after one line.
 * Warnings about a cut-off directory go to stderr. */
int pb_view_open(struct pb_view *v, struct pb_view_options *o, struct pb_out *out, bool pager);
/* Closes all. `ret`: what the view returned. The exit status. */
int pb_view_close(struct pb_view *v, const struct pb_view_options *o, int ret);
#endif
