/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Finds where tail jumps lead. If function f ends by a tail jump to function g, the eBPF program
 * for the return of f must run at the return of g.
 */
#include "engine/text/text_priv.h"
#include "arch/arch.h"
#include "base/base.h"

#define DEPTH	64	/* largest number of tail jumps that are followed one after the other */

struct exit {
	const struct pb_module *m;
	struct pb_place place;
	const struct pb_window_exit *exit;
};

/* Finds the exit whose code in a stub is at `from`. */
static bool find(uint64_t from, struct exit *e)
{
	uint64_t pc = pb_text_original_pc(from).pc;
	struct pb_module *m = pc ? pb_module_at(pc) : NULL;
	int64_t w = m ? pb_window_lower(m->analysis, pc - m->bias) : -1;

	if (w < 0)
		return false;
	e->m = m;
	e->place = pb_window_place(m->analysis, pb_analysis_windows(m->analysis) + w);
	for (e->exit = e->place.exits; e->exit < e->place.exits + e->place.nr_exits; e->exit++)
		if (m->bias + e->place.window + e->exit->off == pc)
			return true;
	return false;
}

/* Returns the address to which the displacement of the exit's instruction leads. The instruction is
 * the last instruction of its window, or a conditional jump. 0: the instruction has no
 * displacement. */
static uint64_t address_in(const struct exit *e)
{
	const struct pb_recipe *r = e->place.recipe;
	const struct pb_fixup *f = pb_recipe_fixups(r);
	unsigned from = (unsigned)pb_recipe_copy_offset(r, e->exit->off);

	for (unsigned i = 0; i < r->nr_fixups; i++)
		if (e->exit->kind == PB_EXIT_JCC ? pb_exit_target(r, e->exit, &f[i]) :
						   f[i].kind == PB_FIX_REL32 && f[i].off >= from)
			return e->m->bias + f[i].value;
	return 0;
}

static bool in_text(const struct pb_module *m, uint64_t address, size_t size)
{
	return m && pb_module_at(address) == m && pb_module_at(address + size - 1) == m;
}

/* A call of another module's function may go through code that the linker made (PLT). If `to` is
 * such code, returns the address to which this code jumps at present. Otherwise returns `to`. */
static uint64_t through_stub(uint64_t to)
{
	const struct pb_module *m = pb_module_at(to);
	const uint64_t *word;

	if (!in_text(m, to, PB_LINKER_STUB) || pb_analysis_at(m->analysis, to - m->bias))
		return to;
	word = pb_linker_stub_word((const uint8_t *)to);
	return word ? *word : to;
}

/* Returns the function that a tail jump leads to; NULL: it isn't known. */
static struct pb_site *target(const struct exit *e, struct pb_module **m)
{
	const uint8_t *code = pb_recipe_code(e->place.recipe) +
			      pb_recipe_copy_offset(e->place.recipe, e->exit->off);
	uint64_t to = address_in(e);
	const struct pb_func *f;

	if (to && e->exit->kind == PB_EXIT_INDIRECT)
		to = pb_jumps_through_word(code) ? *(const uint64_t *)to : 0;
	else if (to)
		to = through_stub(to);
	*m = to ? pb_module_at(to) : NULL;
	if (!*m || !(*m)->sites)
		return NULL;
	f = pb_analysis_at((*m)->analysis, to - (*m)->bias);
	return f ? &(*m)->sites[f - pb_analysis_funcs((*m)->analysis)] : NULL;
}

static bool is_tail(const struct pb_window_exit *e)
{
	return e->kind == PB_EXIT_JMP || e->kind == PB_EXIT_JCC || e->kind == PB_EXIT_INDIRECT;
}

bool pb_text_is_tail(uint64_t from)
{
	struct exit e;

	return find(from, &e) && is_tail(e.exit);
}

bool pb_text_tail_returns_on(uint64_t from)
{
	const struct pb_site *s;
	struct pb_module *m;
	struct exit e;

	if (!find(from, &e) || !(s = target(&e, &m)))
		return false;
	return pb_site_exits_itself(s) ? pb_site_returns_on(m, s) : s->flags & FTRACE_FL_ENDS;
}

/* Marks the exits of s to be patched, and the exits of each function that s reaches by at most
 * `depth` tail jumps in a row. */
static void follow(struct pb_module *m, const struct pb_site *s, unsigned depth)
{
	const uint32_t *window;
	uint32_t nr;

	pb_text_want_returns(m, s);
	if (!depth || !pb_site_returns(m, s))
		return;
	window = pb_func_left_by(m->analysis, pb_site_func(m, s), &nr);
	for (uint32_t i = 0; i < nr; i++) {
		const struct pb_exit_window *w = pb_analysis_windows(m->analysis) + window[i];
		struct exit e = { m, pb_window_place(m->analysis, w), NULL };

		for (e.exit = e.place.exits; e.exit < e.place.exits + e.place.nr_exits; e.exit++) {
			struct pb_module *in;
			struct pb_site *to = is_tail(e.exit) ? target(&e, &in) : NULL;

			if (!to || !pb_site_exits_itself(to) ||
			    to->flags & (FTRACE_FL_RETURNS | FTRACE_FL_REFUSED))
				continue;
			to->flags |= FTRACE_FL_RETURNS;
			follow(in, to, depth - 1);
		}
	}
}

void pb_text_want_tails(struct pb_module *m, const struct pb_site *s)
{
	follow(m, s, DEPTH);
}
