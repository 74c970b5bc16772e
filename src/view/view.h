/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The views of a data directory. Each view prints the decoded stream (reader/stream.h) in one
 * output format. Context: the observer, one thread.
 *
 * Each function that prints a view returns 0 or -errno, for example -ENOMEM. A failed write is no
 * error of the function: struct pb_out keeps the error.
 */
#ifndef PB_VIEW_H
#define PB_VIEW_H
#include "reader/site_names.h"
#include "reader/stream.h"
#include "view/out.h"

struct pb_filters;

struct pb_view {
	struct pb_data *data;
	struct pb_out *out;
	const uint32_t *tids;		/* only these threads or processes are shown; nr_tids 0:
					 * all */
	size_t nr_tids;
	size_t image;			/* pb_view_stacks() only: an index in data->images; only
					 * calls of this image are shown. 0: of all images */
	uint64_t from, to;		/* range of the clock, inclusive; 0 and UINT64_MAX: all */
	uint32_t max_depth;		/* 0: no limit */
	uint64_t min_ns;		/* calls that took less time aren't shown */
	struct pb_filters *filters;	/* NULL: none */
	bool other_damaged;		/* the data is compared with damaged data */
	size_t notes_shown;		/* how many of data->notes were printed to stderr */
	struct pb_latest *latest;	/* `live` only (pb_view_line_ns()); else NULL */
};

/* The latest time that a line has. */
struct pb_latest {
	uint64_t tsc, ns;
};

/*
 * Options of the function_graph text: X(flag, bit, name). The names are those of the kernel's
 * options/funcgraph-*, except "tid". In place of "tid", the kernel has "cpu". The parser, the
 * completion and the help of -O are made from these rows.
 */
#define PB_FG_OPTIONS(X) \
	X(OVERHEAD, 0, "overhead") X(DURATION, 1, "duration") X(TID, 2, "tid") \
	X(PROC, 3, "proc") X(ABSTIME, 4, "abstime") X(TAIL, 5, "tail")

enum pb_fg_flag {
#define X(flag, bit, name) PB_FG_##flag = 1 << (bit),
	PB_FG_OPTIONS(X)
#undef X
	PB_FG_DEFAULT = PB_FG_OVERHEAD | PB_FG_DURATION | PB_FG_TID
};

/* Sets the flag of an option, for example for "funcgraph-tail". "nofuncgraph-tail" clears the flag.
 * Returns false if there is no option with that name. */
bool pb_fg_set(unsigned *flags, const char *name);
/* Returns the name of the i-th option, with "no" if the option is on by default. Returns NULL after
 * the last option. */
const char *pb_fg_name(size_t i);

int pb_view_graph_text(const struct pb_view *v, unsigned flags);
/* Prints the function_graph text for a caller that reads the events itself. If `show` is false, the
 * event is followed, but not printed. */
struct pb_graph_text;
struct pb_graph_text *pb_graph_text_new(const struct pb_view *v, unsigned flags);
void pb_graph_text_event(struct pb_graph_text *p, const struct pb_event *ev, bool show);
/* True if a line of the call has been printed. */
bool pb_graph_text_has(const struct pb_open_call *call);
void pb_function_text_event(const struct pb_view *v, const struct pb_event *ev);
int pb_view_function_text(const struct pb_view *v);
int pb_view_chrome(const struct pb_view *v);
int pb_view_raw(const struct pb_view *v);
int pb_view_flame(const struct pb_view *v);
int pb_view_dot(const struct pb_view *v);
/* If `focus` is true, prints the graph of the functions that have PB_FILTER_FOCUS. Else prints the
 * graph of the whole program. */
int pb_view_graph(const struct pb_view *v, bool focus);

/* --- sums by function --- */
struct pb_report_row {
	const char *name, *module, *raw;	/* raw: the name in the symbol table */
	uint64_t id;
	uint64_t calls, timed;		/* timed: calls whose time is known */
	uint64_t total, self, sum, min, max;	/* ns; total leaves out the time of recursive calls,
						 * because the outer call's time includes it */
};

struct pb_report {
	struct pb_report_row *rows;
	size_t nr;
	uint64_t calls;			/* sum over all rows */
	struct pb_stream_totals totals;
	uint64_t open;			/* number of calls that were still open when the data ended;
					 * a call that a child inherited by fork counts in both
					 * processes */
	bool by_time;			/* records were read in the order of time, because stacks
					 * moved between threads */
};

enum pb_report_sort {
	PB_SORT_TOTAL, PB_SORT_SELF, PB_SORT_CALLS, PB_SORT_MIN, PB_SORT_MAX, PB_SORT_AVG,
	PB_SORT_FUNC,
};

enum pb_report_format { PB_FORMAT_TEXT, PB_FORMAT_CSV, PB_FORMAT_JSON };

int pb_report_make(const struct pb_view *v, struct pb_report *r);
void pb_report_free(struct pb_report *r);
void pb_report_sort(struct pb_report *r, enum pb_report_sort by);
void pb_report_print(const struct pb_view *v, const struct pb_report *r, enum pb_report_sort by);
void pb_report_csv(const struct pb_view *v, const struct pb_report *r);
void pb_report_json(const struct pb_view *v, const struct pb_report *r);
/* Prints the difference of two reports. Reorders the rows of the two reports. `v` is the view of
 * `now`, and base_view that of `base`. */
int pb_report_diff(const struct pb_view *v, const struct pb_view *base_view,
		   struct pb_report *base, struct pb_report *now, enum pb_report_sort by,
		   enum pb_report_format format);
uint64_t pb_report_key(const struct pb_report_row *r, enum pb_report_sort by);
void pb_report_time(struct pb_out *o, uint64_t ns, bool known);	/* prints a column; "-" if the time
								 * isn't known */

/* --- info --- */
int pb_view_info(const struct pb_view *v, bool json, bool open);

/* --- the open calls of a process that runs --- */
/* Prints each call with the time that it has run so far. The data must be a snapshot that was just
 * taken. */
int pb_view_stacks(const struct pb_view *v);

/* --- parts that views share --- */

/* Prints how many calls, records and chunks were lost or are missing, one line for each kind of
 * loss. Each line begins with `prefix`. */
void pb_view_losses(const struct pb_view *v, const struct pb_stream_totals *t, const char *prefix);
/* True if pb_view_open_calls() prints a line for the i-th call of this stack. If a stack has too
 * many calls, only the innermost and the outermost calls are printed. */
bool pb_view_lists_call(const struct pb_call_stack *s, uint32_t i);
/* Prints the calls that were open when the data ended, by stack. Each line begins with `prefix`. */
void pb_view_open_calls(const struct pb_view *v, struct pb_stream *s, const char *prefix);
void pb_view_json_totals(const struct pb_view *v, uint64_t calls, const struct pb_stream_totals *t);
/* Writes ns to buf in ten columns, for example "  1.234 ms". Returns buf. */
const char *pb_view_time(char *buf, size_t len, uint64_t ns);
/* Like pb_view_time(), but without blanks before and after the text. Returns a pointer into buf. */
const char *pb_view_time_left(char *buf, size_t len, uint64_t ns);
const char *pb_view_comm(const struct pb_thread *t);
/* Returns the time that a line shows for `tsc`, in ns. While a recording is followed, the
 * conversion of times after the newest reading of the clocks isn't exact, and the next reading may
 * correct it to earlier times. So a line with a tsc that isn't lower than those of the lines before
 * it gets no earlier time than they have. */
uint64_t pb_view_line_ns(const struct pb_view *v, uint64_t tsc);

static inline bool pb_view_in_range(const struct pb_view *v, uint64_t time)
{
	return time >= v->from && time <= v->to;
}
#endif
