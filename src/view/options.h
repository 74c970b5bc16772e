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
	bool selects;			/* takes -F and its like */
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

/* "12us", "1.5ms", "3s", "100" (ns) to ns. 0 or -EINVAL. */
int pb_view_parse_time(const char *text, uint64_t *ns);

/*
 * A command whole: parses into input (of which `common` is part), opens the
 * directory, lets `show` print, closes. The exit status. `show` returns 0,
 * -errno, or a status after it has said why. `check`, if there is one, looks
 * at the options together before anything is opened: 0 or a status.
 */
struct pb_view_command {
	const struct argp *argp;
	int (*check)(void *input);
	int (*show)(void *input, struct pb_view *v);
};
/* Another directory with the same choice, to be compared with; missing parts are
 * ignored. 0 or 1 after one line. */
int pb_view_open_other(struct pb_view *v, const struct pb_view_options *o, const char *dir,
		       struct pb_out *out);
void pb_view_close_other(struct pb_view *v);

int pb_view_run(const struct pb_view_command *c, int argc, char **argv, void *input,
		struct pb_view_options *common);
#endif
