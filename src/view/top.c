/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Computes each function's calls and times since the last table (top.h). */
#include "view/top.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/base.h"
#include "view/top_priv.h"

/* --- groups ---------------------------------------------------------------- */

static void *map(size_t size)
{
	void *p = mmap(NULL, size, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	return p == MAP_FAILED ? NULL : p;
}

/* Makes the arrays, for the functions that are known now. */
static int init_arrays(struct pb_top_group *g, const struct pb_view *v)
{
	int ret = pb_sums_init(&g->sums, v);

	if (ret)
		return ret;
	g->sums.weight = PB_SAMPLE_UNIT;
	g->size = (size_t)g->sums.sites.total * sizeof(*g->now);
	g->now = map(g->size);
	g->before = map(g->size);
	return g->now && g->before ? 0 : -ENOMEM;
}

static void free_arrays(struct pb_top_group *g)
{
	pb_sums_free(&g->sums);
	if (g->now)
		munmap(g->now, g->size);
	if (g->before)
		munmap(g->before, g->size);
	g->now = g->before = NULL;
}

static struct pb_top_group *add_group(struct pb_top *t, struct pb_thread *thread)
{
	struct pb_top_group *g = calloc(1, sizeof(*g));
	void *groups = realloc(t->groups, (t->nr_groups + 1) * sizeof(*t->groups));

	t->groups = groups ? groups : t->groups;
	if (!g || !groups || init_arrays(g, &t->view)) {
		if (g)
			free_arrays(g);
		free(g);
		return NULL;
	}
	g->thread = thread;
	return t->groups[t->nr_groups++] = g;
}

struct pb_top_group *pb_top_group(struct pb_top *t, struct pb_follow *f, size_t index)
{
	struct pb_stream *s = pb_follow_stream(f);

	if (!t->threads)
		index = 0;
	while (t->nr_groups <= index)
		if (!add_group(t, t->threads ? s->cursors[t->nr_groups].thread : NULL))
			return NULL;
	return t->groups[index];
}

/* --- new modules change the functions' numbers ------------------------------ */

/* Returns 0, an unknown site, if the function has no number any more. */
static uint32_t new_number(const struct pb_sites *old, const struct pb_sites *new, uint32_t number)
{
	size_t next = pb_bisect(i, 0, old->nr_modules, old->modules[i].base <= number);
	const struct pb_sites_module *m;

	if (number < PB_MAX_SITES || !next)
		return number;
	m = &old->modules[next - 1];
	for (size_t i = 0; i < new->nr_modules; i++)
		if (new->modules[i].module == m->module && number - m->base < new->modules[i].nr)
			return new->modules[i].base + (number - m->base);
	return 0;
}

static bool is_used(const struct pb_sum *s)
{
	return s->calls || s->timed || s->total || s->self;
}

static int renumber_group(struct pb_top_group *g, const struct pb_view *v)
{
	struct pb_top_group old = *g;
	uint32_t n;
	int ret = init_arrays(g, v);

	if (ret) {
		free_arrays(g);
		*g = old;
		return ret;
	}
	memcpy(g->sums.sites.unknown, old.sums.sites.unknown, sizeof(old.sums.sites.unknown));
	for (uint32_t i = 0; (i = pb_sites_next(&old.sums.sites, i)) < old.sums.sites.total; i++) {
		n = new_number(&old.sums.sites, &g->sums.sites, i);
		if (is_used(&old.sums.sums[i]) || old.sums.sums[i].last)
			g->sums.sums[n] = old.sums.sums[i];
		if (old.before[i].table)
			g->before[n] = old.before[i];
	}
	g->sums.stack = old.sums.stack;
	g->sums.budget = old.sums.budget;
	free_arrays(&old);
	return 0;
}

int pb_top_renumber(struct pb_top *t, struct pb_follow *f)
{
	struct pb_stream *stream = pb_follow_stream(f);
	struct pb_call_stack *s;
	struct pb_sites old, new;
	int ret;

	if (!t->nr_groups)
		return 0;
	old = t->groups[0]->sums.sites;
	ret = pb_sites_init(&new, t->view.data);
	if (ret)
		return ret;
	for (size_t i = 0; (s = pb_stacks_nth(stream->stacks, i)); i++)
		for (uint32_t n = 0; n < s->depth; n++)
			s->calls[n].view = new_number(&old, &new, s->calls[n].view);
	pb_sites_free(&new);
	for (size_t i = 0; !ret && i < t->nr_groups; i++)
		ret = renumber_group(t->groups[i], &t->view);
	return ret;
}

/* --- states ----------------------------------------------------------------- */

/* Returns the function's state in this table. */
static struct pb_top_state *touch(struct pb_top_group *g, uint32_t number)
{
	struct pb_top_state *st = &g->now[number];

	if (st->table == g->table)
		return st;
	if (g->nr_numbers == g->room) {
		size_t room = g->room ? 2 * g->room : 256;
		uint32_t *numbers = realloc(g->numbers, room * sizeof(*numbers));

		if (!numbers)
			return NULL;
		g->numbers = numbers;
		g->room = room;
	}
	g->numbers[g->nr_numbers++] = number;
	*st = (struct pb_top_state){ .table = g->table };
	return st;
}

static void add_ended(struct pb_top_group *g)
{
	const struct pb_sites *sites = &g->sums.sites;

	g->table++;
	g->nr_numbers = 0;
	for (uint32_t i = 0; (i = pb_sites_next(sites, i)) < sites->total; i++) {
		const struct pb_sum *s = &g->sums.sums[i];
		struct pb_top_state *st = is_used(s) ? touch(g, i) : NULL;

		if (!st)
			continue;
		st->calls = s->calls;
		st->total = s->total;
		st->self = s->self;
	}
}

static uint64_t since(uint64_t start, uint64_t now)
{
	return now > start ? now - start : 0;
}

/* Adds an open call that has run for `ticks`. Of these, `inner` ticks were spent in its callees. If
 * open calls are recursive, only the outermost call adds to the total. */
static void add_call(struct pb_top_group *g, uint32_t number, uint32_t stack, uint64_t ticks,
		     uint64_t inner, unsigned calls)
{
	struct pb_top_state *st = touch(g, number);

	if (!st)
		return;
	st->calls += calls * PB_SAMPLE_UNIT;
	st->self += since(inner, ticks);
	if (st->stack != stack)
		st->total += ticks;
	st->stack = stack;
}

/* Returns how long a call that began at `start` has run, or 0 if `start` is 0 (unknown). */
static uint64_t run_time(const struct pb_top *t, uint64_t start, uint64_t now)
{
	return start && now > start ?
	       pb_clock_ticks_between(&t->view.data->clock, start, now) : 0;
}

/* Returns the start of that part of the call whose time counts. This is the call's `aux`, if it is
 * a time: the time of the fork, if the call was inherited, or the beginning of the decoded part, if
 * the thread's chunks are sampled. 0: `aux` isn't set. 1: an inherited call in a recording without
 * a clock. */
static uint64_t start_of(const struct pb_open_call *call)
{
	return call->aux > 1 ? call->aux : call->start;
}

static void add_open(struct pb_top *t, struct pb_follow *f, struct pb_call_stack *s, uint32_t nth,
		     uint64_t now)
{
	ssize_t n = pb_follow_index(f, s->serial);
	struct pb_top_group *g = n < 0 ? NULL : pb_top_group(t, f, (size_t)n);
	const struct pb_cursor *c = n < 0 ? NULL : &pb_follow_stream(f)->cursors[n];
	uint32_t leaf = s->leaf_site;
	uint64_t start = s->leaf_start, inner;
	bool counts = !s->leaf_inherited;

	if (!g || g->sums.sites.total == 0)
		return;
	/* leave out a paused thread: its chunks since the pause aren't decoded (reader/sample.h),
	 * so its open calls aren't known */
	if (pb_top_thread(t, (size_t)n)->paused)
		return;
	if (!leaf && c->stack == s && pb_follow_leaf(f, (size_t)n, &leaf, &start))
		counts = start >= c->born;
	if (start < pb_top_thread(t, (size_t)n)->from)
		start = pb_top_thread(t, (size_t)n)->from;
	/* if the thread has ended, its calls ended with it */
	now = pb_follow_alive_until(f, (size_t)n, now);
	inner = leaf ? run_time(t, start, now) : 0;
	for (uint32_t i = 0; i < s->depth; i++) {
		const struct pb_open_call *call = &s->calls[i];
		uint64_t ticks = run_time(t, start_of(call), now);
		uint64_t callee = i + 1 < s->depth ? run_time(t, start_of(call + 1), now) : inner;

		add_call(g, call->view, nth + 1, ticks, callee + call->child,
			 pb_open_call_counts(call));
	}
	if (leaf)
		add_call(g, pb_sites_number(&g->sums.sites, c->image, leaf), nth + 1, inner, 0,
			 counts);
}

/* --- rows ------------------------------------------------------------------- */

static uint64_t units(uint64_t weighted)
{
	return (weighted + PB_SAMPLE_UNIT / 2) / PB_SAMPLE_UNIT;
}

static int make_rows(struct pb_top *t, struct pb_top_group *g, bool all)
{
	const struct pb_clock *clock = &t->view.data->clock;
	struct pb_report *r = &g->report;

	pb_report_free(r);
	r->rows = calloc(g->nr_numbers + 1, sizeof(*r->rows));
	if (!r->rows)
		return -ENOMEM;
	for (size_t i = 0; i < g->nr_numbers; i++) {
		uint32_t n = g->numbers[i];
		struct pb_top_state b = all ? (struct pb_top_state){ 0 } : g->before[n];
		const struct pb_top_state *a = &g->now[n];
		struct pb_function fn;

		g->before[n] = *a;
		if (a->calls <= b.calls && a->self <= b.self && a->total <= b.total)
			continue;
		fn = pb_sites_function(&g->sums.sites, n);
		r->rows[r->nr++] = (struct pb_report_row){
			.name = fn.name, .module = fn.module, .raw = fn.raw, .id = fn.id,
			.calls = units(since(b.calls, a->calls)), .timed = 1,
			.total = pb_clock_span(clock, since(b.total, a->total)),
			.self = pb_clock_span(clock, since(b.self, a->self)),
		};
		r->calls += units(since(b.calls, a->calls));
	}
	pb_report_sort(r, t->sort);
	return 0;
}

int pb_top_compute(struct pb_top *t, struct pb_follow *f, uint64_t now, bool all)
{
	struct pb_stream *stream = pb_follow_stream(f);
	struct pb_call_stack *s;
	int ret = 0;

	t->by_time |= stream->shared;
	for (size_t i = 0; i < t->nr_groups; i++)
		add_ended(t->groups[i]);
	for (size_t i = 0; (s = pb_stacks_nth(stream->stacks, i)); i++)
		add_open(t, f, s, (uint32_t)i, now);
	for (size_t i = 0; !ret && i < t->nr_groups; i++)
		ret = make_rows(t, t->groups[i], all);
	return ret;
}

void pb_top_free(struct pb_top *t)
{
	for (size_t i = 0; i < t->nr_groups; i++) {
		pb_report_free(&t->groups[i]->report);
		free_arrays(t->groups[i]);
		free(t->groups[i]->numbers);
		free(t->groups[i]);
	}
	free(t->groups);
	free(t->each);
	pb_sample_free(&t->sample);
	t->groups = NULL;
	t->each = NULL;
	t->nr_groups = 0;
}
