/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Adds windows of exits to a batch. A window is wanted if it has an exit of a function whose
 * returns are to be hooked. Exits in an entry's window are patched together with the entry.
 */
#include "engine/text/text_priv.h"
#include "arch/arch.h"
#include "base/base.h"

/* Returns false if the agent has found that the window can't be patched: its bytes differ from the
 * file, or no stub can be made. If the window is that of an entry, or shares bytes with an entry's
 * jump, the entry must not be refused either. */
static bool usable(const struct pb_module *m, uint32_t window)
{
	const struct pb_exit_window *w = pb_analysis_windows(m->analysis) + window;
	const struct pb_func *f = pb_window_func(m->analysis, w);

	if (!f)
		f = pb_window_next(m->analysis, w);
	if (m->exits[window].flags & PB_EXIT_FL_REFUSED)
		return false;
	/* a function isn't patched if the compiler's hooks report its calls */
	return !f || (f->kind != PB_SITE_CYG &&
		      !(m->sites[f - pb_analysis_funcs(m->analysis)].flags & FTRACE_FL_REFUSED));
}

static bool is_on(const struct pb_module *m, uint32_t window)
{
	const struct pb_exit_window *w = pb_analysis_windows(m->analysis) + window;
	const struct pb_func *f = pb_window_func(m->analysis, w);

	if (f)
		return m->sites[f - pb_analysis_funcs(m->analysis)].flags & FTRACE_FL_ENABLED;
	return m->exits[window].flags & PB_HAS_WINDOW;
}

static bool all_windows(const struct pb_module *m, const struct pb_site *s,
			bool (*are)(const struct pb_module *m, uint32_t window))
{
	const struct pb_func *f = pb_site_func(m, s);
	const uint32_t *window;
	uint32_t nr;

	if (!pb_func_returns(m->analysis, f))
		return false;
	window = pb_func_left_by(m->analysis, f, &nr);
	for (uint32_t i = 0; i < nr; i++)
		if (!are(m, window[i]))
			return false;
	return true;
}

bool pb_site_returns(const struct pb_module *m, const struct pb_site *s)
{
	return all_windows(m, s, usable);
}

bool pb_site_returns_on(const struct pb_module *m, const struct pb_site *s)
{
	return pb_site_returns(m, s) && all_windows(m, s, is_on);
}

void pb_text_want_returns(struct pb_module *m, const struct pb_site *s)
{
	const uint32_t *window;
	uint32_t nr;

	if (!pb_site_returns(m, s))
		return;
	window = pb_func_left_by(m->analysis, pb_site_func(m, s), &nr);
	for (uint32_t i = 0; i < nr; i++)
		m->exits[window[i]].flags |= PB_EXIT_FL_WANTED;
	m->exits_used = true;
}

bool pb_text_hosts_returns(const struct pb_module *m, const struct pb_site *s)
{
	const struct pb_func *f = pb_site_func(m, s);

	const struct pb_exit_window *before;

	if (!m->exits_used)
		return false;
	before = pb_func_before(m->analysis, f);
	return (f->flags & PB_FUNC_EXITS &&
		pb_exit_of(m, pb_func_exits(m->analysis, f))->flags & PB_EXIT_FL_WANTED) ||
	       (before && pb_exit_of(m, before)->flags & (PB_EXIT_FL_WANTED | PB_HAS_WINDOW));
}

static void change(struct pb_module *m, uint32_t window, bool on);

/* Returns the address to which the jump of a window of exits must lead. Usually this is the
 * window's own stub. But if the jump is the second of two shared jumps, its bytes are also a part
 * of the first jump. So the targets of both jumps are chosen together, and can't be the stubs
 * themselves (text_shared.c). Then the result is the target that was chosen for the second jump. At
 * that address another jump is written, which leads to the window's own stub. If this stub is new,
 * through_landing() makes the first jump's stub, too. */
static uint64_t through_landing(struct pb_module *m, uint32_t window, bool is_new)
{
	const struct pb_exit_window *w = pb_analysis_windows(m->analysis) + window;
	const struct pb_exit_window *before = pb_window_shared_first(m->analysis, w);
	uint64_t stub = (uint64_t)m->stubs + m->exits[window].stub, to;
	struct pb_exit_site *first = before ? pb_exit_of(m, before) : NULL;
	struct pb_place p;

	if (!first)
		return stub;
	if (is_new && !first->stub) {
		p = pb_window_place(m->analysis, before);
		if (!pb_exit_make_stub(m, window - 1, &p) ||
		    !pb_shared_make(m, m->bias + p.window, (uint64_t)m->stubs + first->stub, stub))
			first->flags |= PB_EXIT_FL_REFUSED;
	}
	to = pb_shared_target(m->bias + w->start);
	return to ? to : stub;
}

/* `window` has the first of two shared jumps, and the next window has the second. Adds the second
 * jump to the batch, if it isn't in the text. False: the first jump can't be written. */
static bool second_is_on(struct pb_module *m, uint32_t window)
{
	struct pb_exit_site *second = &m->exits[window + 1];

	if (!(second->flags & (PB_HAS_WINDOW | PB_EXIT_FL_REFUSED)))
		change(m, window + 1, true);
	return second->flags & PB_HAS_WINDOW && m->exits[window].stub &&
	       !(m->exits[window].flags & PB_EXIT_FL_REFUSED);
}

/* If the window's jump is the first of two shared jumps, adds the second jump to the batch. The
 * second jump belongs to the next function's entry or to another window. False: the first jump
 * can't be written. */
static bool next_is_on(struct pb_module *m, uint32_t window)
{
	const struct pb_func *f =
		pb_window_next(m->analysis, pb_analysis_windows(m->analysis) + window);
	struct pb_site *s = f ? &m->sites[f - pb_analysis_funcs(m->analysis)] : NULL;

	if (!s && pb_window_shared_second(m->analysis, pb_analysis_windows(m->analysis) + window))
		return second_is_on(m, window);
	if (!s)
		return true;
	if (!pb_text_settled(s, true))
		pb_text_change(m, s, true);
	/* If no targets were found for both jumps, the call above has refused the exit. In this
	 * case the next function gets a jump that isn't shared. */
	return pb_text_settled(s, true) && m->exits[window].stub &&
	       !(m->exits[window].flags & PB_EXIT_FL_REFUSED);
}

/* Whether the window has the second of two shared jumps, and the first, of another window, stays in
 * the text. */
static bool first_stays(const struct pb_module *m, uint32_t window)
{
	const struct pb_exit_window *w = pb_analysis_windows(m->analysis) + window;
	const struct pb_exit_window *first = pb_window_shared_first(m->analysis, w);

	return first && pb_exit_of(m, first)->flags & PB_HAS_WINDOW;
}

static void change(struct pb_module *m, uint32_t window, bool on)
{
	struct pb_place p = pb_window_place(m->analysis, pb_analysis_windows(m->analysis) + window);
	struct pb_exit_site *e = &m->exits[window];
	unsigned has = e->flags & (PB_HAS_WINDOW | PB_HAS_SLOT);
	bool is_new = !e->stub;
	uint64_t stub;

	if (on && (!next_is_on(m, window) || (!e->stub && !pb_exit_make_stub(m, window, &p)))) {
		e->flags |= PB_EXIT_FL_REFUSED;
		return;
	}
	stub = on ? through_landing(m, window, is_new) : 0;
	if (!on)
		pb_batch_off(m, &p, &has);
	else if (pb_batch_on(m, &p, stub, stub, &has))
		e->flags |= PB_EXIT_FL_REFUSED;
	e->flags = (e->flags & ~(PB_HAS_WINDOW | PB_HAS_SLOT)) | has;
}

/* The first of two shared jumps has the lower address, so its window comes first. If its jump can't
 * be taken out now, because memory is short, the second jump stays, too. */
void pb_text_change_returns(struct pb_module *m, uint32_t *from, uint64_t to, bool keep)
{
	const struct pb_exit_window *w = pb_analysis_windows(m->analysis);

	for (; m->exits_used && *from < m->analysis->nr_windows && w[*from].start < to; (*from)++) {
		struct pb_exit_site *e = &m->exits[*from];
		bool on = !pb_text_only_restores &&
			  (e->flags & PB_EXIT_FL_WANTED || (keep && e->stub));
		bool settled = on ? e->flags & PB_HAS_WINDOW :
			       !(e->flags & (PB_HAS_WINDOW | PB_HAS_SLOT));

		e->flags &= ~PB_EXIT_FL_WANTED;
		if (!settled && w[*from].how != PB_EXIT_ENTRY && !(e->flags & PB_EXIT_FL_REFUSED) &&
		    (on || !first_stays(m, *from)))
			change(m, *from, on);
	}
}

void pb_text_look_returns(struct pb_module *m)
{
	for (uint32_t i = 0; m->exits && i < m->analysis->nr_windows; i++) {
		struct pb_place p;

		/* in a child that was forked in the middle of a batch, a mark of its parent's. Most
		 * windows have none, and their pages aren't written */
		if (m->exits[i].flags & PB_EXIT_FL_WANTED)
			m->exits[i].flags &= ~PB_EXIT_FL_WANTED;
		if (!m->exits[i].stub)
			continue;
		p = pb_window_place(m->analysis, pb_analysis_windows(m->analysis) + i);
		m->exits[i].flags &= ~(PB_HAS_WINDOW | PB_HAS_SLOT);
		m->exits[i].flags |= pb_place_look(m, &p);
	}
}
