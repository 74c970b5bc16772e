/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Translates program counters in two directions: from stubs, slots and targets of shared jumps to
 * the program's original instructions, and from displaced instructions and slots to stubs. */
#include "engine/text/text_priv.h"
#include "abi/stubs.h"
#include "arch/arch.h"
#include "base/base.h"

/* A place, with the addresses of its stub and of the stub's body. */
struct found {
	struct pb_place place;
	uint64_t stub;		/* 0: there is none */
	uint64_t body;
};

static struct found of_func(const struct pb_module *m, const struct pb_func *f)
{
	uint32_t stub = m->sites[f - pb_analysis_funcs(m->analysis)].stub;
	uint64_t at = stub ? (uint64_t)m->stubs + stub : 0;

	return (struct found){ pb_func_place(m->analysis, f), at, at + PB_STUB_COPY };
}

static struct found of_window(const struct pb_module *m, const struct pb_exit_window *w)
{
	const struct pb_func *f = pb_window_func(m->analysis, w);
	uint32_t stub = m->exits ? m->exits[w - pb_analysis_windows(m->analysis)].stub : 0;
	uint64_t at = stub ? (uint64_t)m->stubs + stub : 0;

	return f ? of_func(m, f) : (struct found){ pb_window_place(m->analysis, w), at, at };
}

/* Finds the place whose slot begins in (from, to]. Both are link-time addresses. */
static bool find_slot(const struct pb_module *m, uint64_t from, uint64_t to, struct found *found)
{
	const struct pb_func *f = pb_analysis_slot_in(m->analysis, from, to);
	const struct pb_exit_window *w = f ? NULL : pb_window_slot_in(m->analysis, from, to);

	if (f)
		*found = of_func(m, f);
	else if (w)
		*found = of_window(m, w);
	return f || w;
}

bool pb_slot_owner(const struct pb_module *m, uint64_t pc, struct pb_place *p)
{
	struct found found;
	bool is = find_slot(m, pc - m->bias - 1, pc - m->bias, &found);

	if (is)
		*p = found.place;
	return is;
}

/* Whether pc is at a slot, and the slot's jump is in the text. *found gets the slot's place. */
static bool at_slot(const struct pb_module *m, uint64_t pc, struct found *found)
{
	return m && m->sites && find_slot(m, pc - m->bias - 1, pc - m->bias, found) &&
	       found->stub && pb_slot_is_patched(m, &found->place);
}

/* Returns the window of exits in whose stub the offset `off` lies, or NULL. */
static const struct pb_exit_window *window_of_stub(const struct pb_module *m, uint64_t off)
{
	const uint32_t *at = pb_stubs_windows(m->stub_file);
	uint32_t i = (uint32_t)pb_bisect(k, 0, m->analysis->nr_windows, at[k] <= off);
	const struct pb_exit_window *w = pb_analysis_windows(m->analysis) + i - 1;
	struct pb_place p;

	if (!i || w->how == PB_EXIT_ENTRY)
		return NULL;
	p = pb_window_place(m->analysis, w);
	return off - at[i - 1] < pb_body_size(&p) ? w : NULL;
}

/* Returns the site whose stub is the last that begins at or before the offset `off`, or NULL. */
static const struct pb_site *site_of_stub(const struct pb_module *m, uint64_t off)
{
	for (const uint8_t *at = m->stubs + (off & ~15ul); at > m->stubs; at -= 16) {
		const struct pb_site *s = pb_stub_site(at);

		if (s >= m->sites && s < m->sites + m->analysis->nr_funcs && pb_stub_is(at, s))
			return s;
	}
	return NULL;
}

/* The code comes before the instruction at pc, and has done nothing of that instruction's work. */
static struct pb_original before(uint64_t pc, bool own)
{
	return (struct pb_original){ .pc = pc, .next = pc, .own = own };
}

/* Looks up the code at `off` in the module's stubs. If there is no stub, the result's pc is 0. */
static struct pb_original original(const struct pb_module *m, uint64_t off)
{
	const struct pb_exit_window *w = window_of_stub(m, off);
	const struct pb_site *s = w || off < PB_STUBS_HEAD ? NULL : site_of_stub(m, off);
	uint64_t at = (uint64_t)m->stubs + off;
	struct pb_original o;
	struct found found;

	if (!w && !s)
		return before(0, false);
	found = w ? of_window(m, w) : of_func(m, pb_site_func(m, s));
	if (at < found.body)
		return before(m->bias + found.place.window, true);
	o = pb_body_original(&found.place, (unsigned)(at - found.body));
	o.pc += m->bias;
	o.next += m->bias;
	return o;
}

struct pb_original pb_text_original_pc(uint64_t pc)
{
	struct pb_module *in = pb_module_at(pc);
	struct found found;

	for (uint32_t i = 0; i < pb_nr_modules; i++) {
		const struct pb_module *m = &pb_modules[i];
		uint64_t off = pc - (uint64_t)m->stubs;
		struct pb_original o;

		if (!m->sites || off >= m->stubs_size)
			continue;
		o = original(m, off);
		if (o.pc)
			return o;
	}
	return before(at_slot(in, pc, &found) ? in->bias + found.place.window : pb_shared_at(pc),
		      false);
}

/* Whether the address is inside the bytes that the jump of the place's window replaces, but isn't
 * the first of them. */
static bool in_window(const struct pb_place *p, uint64_t addr)
{
	return addr - p->window - 1 < pb_place_patch_len(p) - 1;
}

/* Finds the jump whose bytes include the address. The first replaced byte doesn't count, because a
 * thread at that byte isn't moved, but executes the new bytes. There are two cases: the jump is in
 * a window, or the address is in a code slot. */
static bool find_jump(const struct pb_module *m, uint64_t addr, struct found *found)
{
	int64_t i = pb_analysis_lower(m->analysis, addr);
	int64_t w = pb_window_lower(m->analysis, addr - 1);

	if (i >= 0 && pb_analysis_funcs(m->analysis)[i].refused == PB_REFUSED_NOT) {
		*found = of_func(m, pb_analysis_funcs(m->analysis) + i);
		if (in_window(&found->place, addr))
			return true;
	}
	if (w >= 0) {
		*found = of_window(m, pb_analysis_windows(m->analysis) + w);
		if (in_window(&found->place, addr))
			return true;
	}
	return find_slot(m, addr - (PB_CODE_SLOT_LEN - PB_JUMP_LEN), addr + PB_JUMP_LEN - 1,
			 found) &&
	       pb_place_in_code(&found->place);
}

/* Returns the address of the copy of the displaced instruction at pc, or 0. If `written` is true,
 * the result is also 0 if the jump isn't in the text. */
static uint64_t copy_of(const struct pb_module *m, uint64_t pc, bool written)
{
	struct found found;
	int copy;

	if (!find_jump(m, pc - m->bias, &found) || !found.stub)
		return 0;
	if (written && !(in_window(&found.place, pc - m->bias) ?
				 pb_window_is_patched(m, &found.place) :
				 pb_slot_is_patched(m, &found.place)))
		return 0;
	copy = pb_body_copy(&found.place, pc - m->bias);
	return copy < 0 ? 0 : found.body + (uint64_t)copy;
}

uint64_t pb_text_moved_pc(uint64_t pc)
{
	struct pb_module *m = pb_module_at(pc);
	struct found found;

	if (!m || !m->sites)
		return 0;
	return at_slot(m, pc, &found) ? found.stub : copy_of(m, pc, false);
}

uint64_t pb_text_displaced_pc(uint64_t pc)
{
	const struct pb_module *m = pb_module_at(pc);

	return m && m->sites ? copy_of(m, pc, true) : 0;
}

/* Finds the window whose first address is pc. */
static bool find_window(const struct pb_module *m, uint64_t pc, struct found *found)
{
	/* the address after the first byte is inside the jump */
	return m && m->sites && find_jump(m, pc - m->bias + 1, found) &&
	       found->place.window == pc - m->bias;
}

bool pb_text_is_window(uint64_t pc)
{
	struct found found;

	return find_window(pb_module_at(pc), pc, &found);
}

uint64_t pb_text_moved_fault(uint64_t pc)
{
	const struct pb_module *m = pb_module_at(pc);
	struct found found;

	if (!find_window(m, pc, &found) || !found.stub || pb_window_is_patched(m, &found.place))
		return 0;
	return found.body + (uint64_t)pb_body_copy(&found.place, found.place.window);
}
