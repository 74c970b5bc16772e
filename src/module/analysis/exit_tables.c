/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Makes the file's tables of exits (abi/analysis.h). If all exits of a function can be hooked, the
 * function has a list of the windows that must be patched. The table of windows has only windows
 * that are in such a list. If an entry's window became longer to hold exits, the longer window
 * replaces the entry's old window in the table of functions.
 */
#include <errno.h>
#include <stdlib.h>
#include "module/analysis/exits_priv.h"
#include "module/analysis/flags.h"

#define NONE		UINT32_MAX
#define MAX_LEFT_BY	(4u << 20)	/* real files need a few rows for each function */

struct maker {
	struct pb_an *an;
	struct pb_exit_tables *t;
	uint32_t *units;	/* the units of one function, in the order in which they are
				 * found */
	uint32_t *unit_seen, *window_seen;	/* for each unit and window: the number, from 1, of
						 * the last function that listed it */
	uint32_t *place;	/* for each window: its index in the file, or NONE if the window
				 * isn't needed */
};

static void add_unit(struct maker *m, uint32_t unit, uint32_t stamp, size_t *n)
{
	if (m->unit_seen[unit] == stamp)
		return;
	m->unit_seen[unit] = stamp;
	m->units[(*n)++] = unit;
}

static void add_window(struct maker *m, uint32_t window, uint32_t stamp)
{
	if (m->window_seen[window] == stamp)
		return;
	m->window_seen[window] = stamp;
	pb_vec_push(&m->t->left_by, window);
}

/* Lists the windows of all units that have code of f. False if a limit is reached. */
static bool list_windows(struct maker *m, struct pb_fn *f, uint32_t stamp)
{
	struct pb_an *an = m->an;
	size_t n = 0;

	add_unit(m, (uint32_t)pb_exits_unit(an, f), stamp, &n);
	for (size_t u = 0; u < n; u++) {
		size_t nr;
		const struct pb_exit_edge *edge = pb_exits_edges(an, m->units[u], &nr);

		if (pb_exit_work(an, 1 + nr))
			return false;
		if (an->goes_on[m->units[u]])
			f->flags |= PB_FUNC_GOES_ON;
		for (size_t i = 0; i < nr; i++)
			add_unit(m, edge[i].to, stamp, &n);
		for (size_t i = pb_exits_lower(an, m->units[u]);
		     i < an->exits.n && an->exits.v[i].unit == m->units[u]; i++) {
			const struct pb_fn_exit *e = &an->exits.v[i];

			if (pb_exit_work(an, 1))
				return false;
			if (!e->how)
				continue;
			add_window(m, e->window, stamp);
			/* two shared jumps work only if the windows of both are patched */
			if (an->exit_windows.v[e->window].on >= 0)
				add_window(m, (uint32_t)an->exit_windows.v[e->window].on, stamp);
		}
	}
	return m->t->left_by.n <= MAX_LEFT_BY;
}

static void list_functions(struct maker *m)
{
	struct pb_an *an = m->an;

	pb_vec_push(&m->t->leaves, 0);
	for (size_t i = 0; i < an->fns.n; i++) {
		struct pb_fn *f = &an->fns.v[i];
		size_t from = m->t->left_by.n;

		if (f->inexit == PB_INEXIT_NOT && !list_windows(m, f, (uint32_t)i + 1)) {
			m->t->left_by.n = from;
			f->inexit = PB_INEXIT_LIMIT;
		}
		pb_vec_push(&m->t->leaves, (uint32_t)m->t->left_by.n);
	}
}

struct order {
	uint64_t start;
	uint32_t window;
};

static int by_start(const void *a, const void *b)
{
	const struct order *x = a, *y = b;

	return x->start < y->start ? -1 : x->start > y->start;
}

/* Puts the windows that functions need into the file's table, sorted by address. Then changes the
 * elements of left_by: an index in an->exit_windows becomes an index in the file's table. */
static void put_windows(struct maker *m)
{
	struct pb_an *an = m->an;
	PB_VEC(struct order) order = { 0 };

	for (size_t i = 0; i < m->t->left_by.n; i++) {
		uint32_t w = m->t->left_by.v[i];

		if (m->place[w] != NONE)
			continue;
		m->place[w] = 0;
		pb_vec_push(&order, (struct order){ an->exit_windows.v[w].start, w });
	}
	pb_vec_sort(&order, by_start);
	for (size_t i = 0; i < order.n; i++) {
		const struct pb_an_window *w = &an->exit_windows.v[order.v[i].window];
		bool entry = w->fn >= 0;

		m->place[order.v[i].window] = (uint32_t)i;
		pb_vec_push(&m->t->windows, (struct pb_exit_window){
			.start = w->start, .len = w->len, .how = w->how, .via = entry ? 0 : w->via,
			.recipe = entry ? (uint32_t)w->fn : w->recipe });
	}
	m->t->windows.failed |= order.failed;
	pb_vec_free(&order);
	for (size_t i = 0; i < m->t->left_by.n; i++)
		m->t->left_by.v[i] = m->place[m->t->left_by.v[i]];
}

static uint8_t kind_of(const struct pb_an *an, const struct pb_fn_exit *e)
{
	const struct pb_range *r = pb_range_find(an, e->addr);

	/* a `ret imm16`: c2 and two bytes */
	if (e->kind == PB_EXIT_RET && e->len > 2 &&
	    r->bytes[e->addr - r->addr + e->len - 3u] == PB_INSN_RET_POPS)
		return PB_EXIT_RET_POPS;
	return e->kind;
}

static int by_addr(const void *a, const void *b)
{
	const struct pb_fn_exit *const *x = a, *const *y = b;

	return (*x)->addr < (*y)->addr ? -1 : (*x)->addr > (*y)->addr;
}

/* Windows do not overlap. So if exits are sorted by address, their windows are sorted, too. */
static void put_exits(struct maker *m)
{
	struct pb_an *an = m->an;
	PB_VEC(const struct pb_fn_exit *) order = { 0 };

	for (size_t i = 0; i < an->exits.n; i++)
		if (an->exits.v[i].how && m->place[an->exits.v[i].window] != NONE)
			pb_vec_push(&order, &an->exits.v[i]);
	pb_vec_sort(&order, by_addr);
	for (size_t i = 0; i < order.n; i++) {
		const struct pb_fn_exit *e = order.v[i];
		struct pb_exit_window *w = &m->t->windows.v[m->place[e->window]];

		if (i && order.v[i - 1]->addr == e->addr)
			continue;
		if (!w->nr++)
			w->first = (uint32_t)m->t->exits.n;
		pb_vec_push(&m->t->exits, (struct pb_window_exit){
			(uint8_t)(e->addr - w->start), kind_of(an, e), e->len });
	}
	m->t->exits.failed |= order.failed;
	pb_vec_free(&order);
}

/* If an entry's window was made longer to hold exits, the function gets the longer window. */
static void lengthen_entries(struct maker *m)
{
	struct pb_an *an = m->an;

	for (size_t i = 0; i < an->exit_windows.n; i++) {
		const struct pb_an_window *w = &an->exit_windows.v[i];
		struct pb_fn *f = w->fn >= 0 && m->place[i] != NONE ? &an->fns.v[w->fn] : NULL;

		if (!f)
			continue;
		f->window_len = w->len;
		f->recipe = w->recipe;
		f->flags |= PB_FUNC_EXITS;
		if (f->kind == PB_SITE_NOP)
			f->kind = PB_SITE_SYMBOL;
	}
}

int pb_exit_tables_make(struct pb_an *an, const char **why)
{
	struct pb_exit_tables *t = &an->exit_tables;
	struct maker m = { .an = an, .t = t };
	size_t nr = an->exit_windows.n;
	int err = -ENOMEM;

	*why = "no memory";
	if (!(an->flags & PB_MODULE_RETURNS))
		return 0;
	m.units = calloc(an->cfi.fdes.n + 1, sizeof(*m.units));
	m.unit_seen = calloc(an->cfi.fdes.n + 1, sizeof(*m.unit_seen));
	m.window_seen = calloc(nr + 1, sizeof(*m.window_seen));
	m.place = calloc(nr + 1, sizeof(*m.place));
	if (m.units && m.unit_seen && m.window_seen && m.place) {
		for (size_t i = 0; i < nr; i++)
			m.place[i] = NONE;
		list_functions(&m);
		if (!t->leaves.failed && !t->left_by.failed)
			put_windows(&m);
		if (!t->windows.failed)
			put_exits(&m);
		if (!t->leaves.failed && !t->left_by.failed && !t->windows.failed &&
		    !t->exits.failed) {
			lengthen_entries(&m);
			err = 0;
		}
	}
	free(m.units);
	free(m.unit_seen);
	free(m.window_seen);
	free(m.place);
	return err;
}
