/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Prints the tables of `top` and `live --top`. A table that is refreshed in place has only the rows
 * that fit on the terminal. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "view/distinct.h"
#include "view/screen.h"
#include "view/top_priv.h"

#define LINE_MAX_BYTES	2048	/* a line of a terminal is cut to less than this */
#define NAME_MAX_BYTES	1024	/* and a name in it */

struct page {
	struct pb_top *t;
	unsigned lines, columns;	/* the terminal's size; 0 lines: no limit */
	unsigned used;			/* number of lines that were printed so far */
	size_t line;			/* where the current line begins in the buffer of the
					 * output */
	bool all;			/* the table of the whole recording */
};

static bool is_estimated(const struct page *p, const struct pb_top_group *g)
{
	return p->all ? g->ever_estimated : g->estimated;
}

/* Makes room in the output's buffer for a whole line, so that end_line() can cut the line. */
static void begin_line(struct page *p)
{
	struct pb_out *o = p->t->out;

	if (p->lines && PB_OUT_SIZE - o->used < LINE_MAX_BYTES)
		pb_out_flush(o);
	p->line = o->used;
}

/* On a terminal, cuts the line to the terminal's width, but not inside of a UTF-8 character. */
static void cut_line(struct page *p)
{
	struct pb_out *o = p->t->out;
	size_t end = p->line + p->columns;

	if (!p->lines || o->used <= end)
		return;
	while (end > p->line && (o->buf[end] & 0xc0) == 0x80)
		end--;
	o->used = end;
}

static void end_line(struct page *p)
{
	cut_line(p);
	p->used++;
	if (p->t->screen && p->lines)
		pb_screen_line(p->t->out);
	else
		pb_out_char(p->t->out, '\n');
}

static bool fits(const struct page *p)
{
	return !p->lines || p->used + 1 < p->lines;
}

/* Prints the time from the first instant to the second. */
static void print_seconds(struct pb_out *o, const struct pb_clock *clock, uint64_t from,
			  uint64_t to)
{
	uint64_t ms = pb_clock_span(clock, pb_clock_ticks_between(clock, from, to)) / 1000000;

	pb_out_u64(o, ms / 1000, 0, ' ');
	pb_out_char(o, '.');
	pb_out_u64(o, ms % 1000, 3, '0');
	pb_out_str(o, " s");
}

/* Prints which part of the records was read for the estimate. */
static void print_estimate(struct page *p, uint64_t decoded, uint64_t skipped)
{
	double percent = 100.0 * (double)decoded / (double)(decoded + skipped);

	if (!skipped)
		return;
	begin_line(p);
	pb_out_fmt(p->t->out, "# estimated from %.*f %% of the records; a number with ~ is an "
		   "estimate", percent < 10 ? 1 : 0, percent);
	end_line(p);
}

static void print_title(struct page *p, uint64_t from, uint64_t to, const char *what)
{
	const struct pb_clock *clock = &p->t->view.data->clock;
	const struct pb_sample *s = &p->t->sample;
	struct pb_out *o = p->t->out;
	uint64_t calls = 0;
	bool estimated = false;

	for (size_t i = 0; i < p->t->nr_groups; i++) {
		calls += p->t->groups[i]->report.calls;
		estimated |= is_estimated(p, p->t->groups[i]);
	}
	begin_line(p);
	pb_out_fmt(o, "# %.40s: %s", p->t->name, what);
	if (!clock->none) {
		print_seconds(o, clock, p->t->begun, from);
		pb_out_str(o, " to ");
		print_seconds(o, clock, p->t->begun, to);
		pb_out_str(o, ", ");
	}
	if (estimated)
		pb_out_char(o, '~');
	pb_out_commas(o, calls);
	pb_out_fmt(o, " call%s", pb_plural(calls));
	if (p->t->lost) {
		pb_out_str(o, ", ");
		pb_out_commas(o, p->t->lost);
		pb_out_str(o, " lost");
	}
	end_line(p);
	print_estimate(p, p->all ? s->decoded : s->decoded - p->t->decoded,
		       p->all ? s->skipped : s->skipped - p->t->skipped);
	begin_line(p);
	pb_out_str(o, pb_data_has_times(p->t->view.data) ?
		   "  Total time   Self time       Calls  Function" : "       Calls  Function");
	end_line(p);
}

/* An estimate has the mark "~" before its first digit. */
static void print_time(struct pb_out *o, uint64_t ns, const char *mark)
{
	char text[40], marked[48];

	snprintf(marked, sizeof(marked), "%s%s", mark, pb_view_time(text, sizeof(text), ns) +
		 strspn(text, " "));
	pb_out_fmt(o, " %11s", marked);
}

static void print_row(struct page *p, const struct pb_report_row *row, const char *name,
		      const char *mark)
{
	struct pb_out *o = p->t->out;
	size_t len = strlen(name);
	char calls[32];

	begin_line(p);
	if (pb_data_has_times(p->t->view.data)) {
		print_time(o, row->total, mark);
		print_time(o, row->self, mark);
	}
	snprintf(calls, sizeof(calls), "%s%llu", mark, (unsigned long long)row->calls);
	pb_out_fmt(o, " %11s  ", calls);
	if (p->lines && len > NAME_MAX_BYTES)
		len = NAME_MAX_BYTES;
	pb_out_mem(o, name, len);
	end_line(p);
}

static void print_group(struct page *p, const struct pb_top_group *g, unsigned share)
{
	const struct pb_report *r = &g->report;
	size_t nr = share && r->nr > share ? share : r->nr;
	struct pb_function *f = calloc(nr + 1, sizeof(*f));
	struct pb_distinct distinct = { 0 };
	const char *mark = is_estimated(p, g) ? "~" : "";

	for (size_t i = 0; f && i < nr; i++)
		f[i] = (struct pb_function){ r->rows[i].name, r->rows[i].module, r->rows[i].raw,
					     r->rows[i].id };
	if (f)
		pb_distinct_array(&distinct, p->t->view.data, f, nr);
	if (g->thread && nr && fits(p)) {
		begin_line(p);
		pb_out_fmt(p->t->out, "# thread %u, %s: ", g->thread->tid,
			   pb_view_comm(g->thread));
		pb_out_str(p->t->out, mark);
		pb_out_commas(p->t->out, r->calls);
		pb_out_fmt(p->t->out, " call%s", pb_plural(r->calls));
		end_line(p);
	}
	for (size_t i = 0; i < nr && fits(p); i++)
		print_row(p, &r->rows[i], f ? f[i].name : r->rows[i].name, mark);
	pb_distinct_free(&distinct);
	free(f);
}

/* Returns how many rows of each group fit on the page; 0: no limit. */
static unsigned share_of(const struct page *p)
{
	unsigned busy = 0, left = p->lines > p->used ? p->lines - p->used : 0;

	for (size_t i = 0; i < p->t->nr_groups; i++)
		busy += p->t->groups[i]->report.nr != 0;
	if (!p->lines || !p->t->threads || !busy)
		return 0;
	return left / busy > 2 ? left / busy - 1 : 1;
}

static void print_groups(struct page *p)
{
	unsigned share = share_of(p);

	for (size_t i = 0; i < p->t->nr_groups; i++)
		print_group(p, p->t->groups[i], share);
}

int pb_top_print(struct pb_top *t, struct pb_follow *f, uint64_t now)
{
	struct page p = { .t = t };
	int ret = pb_top_compute(t, f, now, false);

	if (ret)
		return ret;
	if (t->screen) {
		pb_screen_size(t->out, &p.lines, &p.columns);
		pb_screen_begin(t->out);
	}
	t->begun = t->begun ? t->begun : now;
	print_title(&p, t->last ? t->last : now, now, "");
	print_groups(&p);
	if (t->screen)
		pb_screen_end(t->out);
	else
		pb_out_flush(t->out);
	t->last = now;
	t->decoded = t->sample.decoded;
	t->skipped = t->sample.skipped;
	for (size_t i = 0; i < t->nr_groups; i++)
		t->groups[i]->estimated = false;
	return 0;
}

int pb_top_print_all(struct pb_top *t, struct pb_follow *f, uint64_t now)
{
	struct page p = { .t = t, .all = true };
	int ret = pb_top_compute(t, f, now, true);

	if (ret)
		return ret;
	print_title(&p, t->begun ? t->begun : now, now, "in all, ");
	print_groups(&p);
	pb_view_losses(&t->view, pb_stream_totals(pb_follow_stream(f)), "# ");
	pb_out_flush(t->out);
	return 0;
}
