/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The common part of the commands that read a data directory: options, opening the directory,
 * errors. The options are argp children; the children's input is struct pb_view_options. Context:
 * the observer, one thread.
 */
#ifndef PB_VIEW_OPTIONS_H
#define PB_VIEW_OPTIONS_H
#include <argp.h>
#include "view/filter.h"
#include "view/view.h"

#define PB_VIEW_MAX_LIST 256

struct pb_view_options {
	const char *command;		/* for errors; set by pb_view_run() */
	const char *dir;
	uint32_t buffer;
	bool no_pager;
	bool selects;			/* the command takes -F -N -D -t --range --match */
	uint32_t tids[PB_VIEW_MAX_LIST];
	size_t nr_tids;
	struct { unsigned mark; const char *pattern; } filters[PB_VIEW_MAX_LIST]; /* PB_FILTER_* */
	size_t nr_filters;
	enum pb_match match;
	const char *min_time;
	bool range;			/* --range was given */
	uint64_t from_ns, to_ns;	/* inclusive; 0 and UINT64_MAX if left out */
	uint32_t max_depth;
	enum pb_demangle demangle;
	bool demangle_given;
};

/* pb_view_argp has the options of all commands: -d --tid --buffer --demangle --no-pager.
 * pb_view_argp_select has the options that select calls: -F -N -D -t --range --match. */
extern const struct argp pb_view_argp, pb_view_argp_select;

/* Adds a pattern. `mark` is a PB_FILTER_*: for -F, for -N, or for the functions that the view is
 * about. */
void pb_view_add_filter(struct argp_state *state, struct pb_view_options *o, unsigned mark,
			const char *pattern);

/* Converts a time to ns. The unit is ns, us, ms, s or m (minutes): "12us", "1.5ms". Without a unit,
 * a number with a decimal point is in seconds, and any other number is in ns. Returns 0, -EINVAL or
 * -ERANGE. */
int pb_view_parse_time(const char *text, uint64_t *ns);

/*
 * A command. pb_view_run() parses the options into `input`, calls `check`, opens the directory,
 * calls `show` and closes the directory. It returns the exit status. `common` is a part of `input`.
 * `check` checks combinations of options and returns 0 or an exit status; it may be NULL. `show`
 * prints the view and returns 0 or -errno. If `show` has already reported an error, it returns a
 * positive exit status instead.
 */
struct pb_view_command {
	const char *name;		/* for errors */
	const struct argp *argp;
	int (*check)(void *input);
	int (*show)(void *input, struct pb_view *v);
};
/* Opens another directory for a comparison, with the same selection. If functions or threads of the
 * selection aren't in that directory, they are ignored. Returns 0. If it fails, prints one line and
 * returns 1. */
int pb_view_open_other(struct pb_view *v, const struct pb_view_options *o, const char *dir,
		       struct pb_out *out);
/* Closes the directory v. If it is damaged, prints the notes that were not printed yet, and the
 * exit status of the command that shows `first` becomes 1. */
void pb_view_close_other(struct pb_view *v, const struct pb_view_options *o, struct pb_view *first);

int pb_view_run(const struct pb_view_command *c, int argc, char **argv, void *input,
		struct pb_view_options *common);
#endif
