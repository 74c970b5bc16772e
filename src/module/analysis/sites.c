/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Makes each function's entry a site: chooses its window and writes the window's recipe, or refuses
 * the function with a reason. (The recipe, struct pb_recipe, is the code that the stub runs in
 * place of the displaced instructions.) If there is no room for a jump of five bytes, the function
 * gets a short jump to a trampoline slot. The slot lies in padding or in code. A function that is
 * one byte long shares the jump of the next function. Slots are assigned after the windows of all
 * long and short jumps are known.
 *
 * Go's scheduler stops a goroutine by a signal. The handler pushes the interrupted address on the
 * goroutine's stack, and the goroutine goes on at this address later. The agent can't find this
 * word when text changes. So in code that is preempted like this, a jump replaces only one
 * instruction.
 */
#include <errno.h>
#include <string.h>
#include "base/base.h"
#include "module/analysis/stages.h"
#include "module/analysis/relocate.h"
#include "module/elf/runtimes.h"

static uint8_t kind_of(const struct pb_fn *f, const struct pb_window_out *w)
{
	/* there are fewer nops than a jump needs, so instructions are displaced */
	if (f->kind == PB_SITE_NOP && !w->all_nops)
		return PB_SITE_SYMBOL;
	return f->kind;
}

static enum pb_refused make_window(struct pb_an *an, const struct pb_fn *f, unsigned jump_len,
				   struct pb_window_out *w)
{
	return pb_window_at(an, f->addr, f->addr + f->window, jump_len, w);
}

static void add_bytes(struct pb_an *an, const uint8_t *bytes, size_t size)
{
	static const uint8_t zeros[8];

	pb_vec_append(&an->recipes, bytes, size);
	pb_vec_append(&an->recipes, zeros, -an->recipes.n % 8);
}

static void add_recipe(struct pb_an *an, const struct pb_window_out *w)
{
	uint8_t bytes[PB_WINDOW_STORE_MAX];

	add_bytes(an, bytes, pb_window_store(w, bytes));
}

static void keep_window(struct pb_an *an, struct pb_fn *f, const struct pb_window_out *w)
{
	f->refused = PB_REFUSED_NOT;
	f->kind = kind_of(f, w);
	f->window_len = w->head.window_len;
	f->recipe = (uint32_t)an->recipes.n;
	add_recipe(an, w);
}

/* True if the function may be preempted at an instruction that the jump would replace, other than
 * the first of these instructions. */
static bool preempted_inside(const struct pb_an *an, const struct pb_fn *f,
			     const struct pb_window_out *w, unsigned jump_len)
{
	/* cmp 16(%r14), %rsp: the check of the stack's size. Go doesn't preempt a function between
	 * this instruction and the branch after it */
	static const uint8_t check[] = { 0x49, 0x3b, 0x66, 0x10 };
	const struct pb_cand *c = &an->cands.v[f->cand];
	bool inside = false;

	if (!f->nr_cands || f->fde >= 0 || !pb_runtime_preempts(an->runtimes, c->name, c->len))
		return false;
	for (unsigned i = 0; i < w->head.nr_pairs; i++)
		inside |= w->pairs[i].orig && w->pairs[i].orig < jump_len;
	return inside && memcmp(w->orig, check, sizeof(check)) != 0;
}

/* True if functions may have slots: no handler of a Go program sees a program counter at a slot's
 * jump. Go's handlers don't expect a program counter there. The agent hides such a program counter
 * from handlers that are installed by libc's sigaction(). */
static bool slots_are_hidden(struct pb_an *an)
{
	struct pb_elf_symbols t;

	if (!pb_runtime_preempts(an->runtimes, "", 0))
		return true;
	if (!pb_elf_symbols(&an->elf, SHT_DYNSYM, &t))
		return false;
	for (uint64_t i = 1; i < t.n; i++) {
		const char *name = pb_elf_string(&t.strings, t.v[i].st_name);

		if (name && t.v[i].st_shndx == SHN_UNDEF && !strcmp(name, "sigaction"))
			return true;
	}
	return false;
}

/* Makes f a site if there is room for a jump of five bytes. If there is room only for a short jump,
 * notes the window's length, so that no slot is made inside the window. `slots`: functions may have
 * slots. */
static void make_site(struct pb_an *an, struct pb_fn *f, bool slots)
{
	struct pb_window_out w;

	f->refused = (uint8_t)make_window(an, f, PB_JUMP_LEN, &w);
	if (!f->refused && preempted_inside(an, f, &w, PB_JUMP_LEN))
		f->refused = PB_REFUSED_PREEMPTED;
	if (!f->refused)
		keep_window(an, f, &w);
	else if (!make_window(an, f, PB_JUMP_SHORT, &w) &&
		 slots && !preempted_inside(an, f, &w, PB_JUMP_SHORT))
		f->window_len = w.head.window_len;
}

/* Gives f a slot in padding. */
static bool use_padding(struct pb_an *an, struct pb_fn *f, size_t *from)
{
	uint64_t window = f->addr + f->window, slot = pb_padding_slot(an, from, window);
	const struct pb_range *r = slot ? pb_range_find(an, slot) : NULL;
	struct pb_window_out w;

	if (!slot || make_window(an, f, PB_JUMP_SHORT, &w))
		return false;
	f->via = (int16_t)(slot - window);
	keep_window(an, f, &w);
	add_bytes(an, r->bytes + (slot - r->addr), PB_JUMP_LEN);
	return true;
}

/* Gives f a slot in code, and displaces that code. */
static void use_code(struct pb_an *an, struct pb_fn *f)
{
	struct pb_window_out w, second;
	uint64_t at = pb_code_slot(an, f, &second);

	if (!at || make_window(an, f, PB_JUMP_SHORT, &w))
		return;
	f->via = (int16_t)(at + PB_JUMP_LEN - (f->addr + f->window));
	f->second_len = second.head.window_len;
	f->flags |= PB_FUNC_CODE_SLOT;
	keep_window(an, f, &w);
	add_recipe(an, &second);
}

static void make_short_sites(struct pb_an *an)
{
	size_t from = 0, left = 0;

	pb_padding_prepare(an);
	for (size_t i = 0; i < an->fns.n; i++) {
		struct pb_fn *f = &an->fns.v[i];

		if (f->refused && f->window_len)
			left += !use_padding(an, f, &from);
	}
	for (size_t i = 0; left && i < an->fns.n; i++) {
		struct pb_fn *f = &an->fns.v[i];

		if (f->refused && f->window_len)
			use_code(an, f);
	}
}

/* Gives f the first of two shared jumps if f is one byte long and lies directly before `next`. The
 * jump of `next` becomes the second. */
static void share_jump(struct pb_an *an, struct pb_fn *f, const struct pb_fn *next)
{
	struct pb_window_out w;

	if (next->addr != f->addr + PB_JUMP_SHARED || next->refused || next->via || next->window ||
	    next->kind == PB_SITE_CYG || f->window || make_window(an, f, PB_JUMP_SHARED, &w) ||
	    w.head.window_len != PB_JUMP_SHARED)
		return;
	f->flags |= PB_FUNC_SHARES;
	keep_window(an, f, &w);
}

int pb_sites_make(struct pb_an *an, const char **why)
{
	bool slots = slots_are_hidden(an);

	for (size_t i = 0; i < an->fns.n; i++) {
		struct pb_fn *f = &an->fns.v[i];

		if (!f->refused)
			make_site(an, f, slots);
	}
	make_short_sites(an);
	for (size_t i = 0; i + 1 < an->fns.n; i++)
		if (an->fns.v[i].refused == PB_REFUSED_SHORT)
			share_jump(an, &an->fns.v[i], &an->fns.v[i + 1]);
	*why = "too many functions";
	if (an->recipes.n > UINT32_MAX)
		return -EFBIG;
	*why = "no memory";
	return an->recipes.failed ? -ENOMEM : 0;
}
