/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The static functions return sums of the bytes that they have read, so that the compiler keeps the
 * reads. */
#include "use_analysis.h"

#include <string.h>

#include "arch/arch.h"
#include "driver.h"

static uint64_t use_strings(const struct pb_analysis *a, const struct pb_func *f)
{
	return strlen(pb_func_name(a, f)) + strlen(pb_analysis_string(a, f->aliases));
}

static uint64_t use_recipe(const struct pb_recipe *r)
{
	uint64_t sum = 0;

	for (unsigned k = 0; k < r->window_len; k++)
		sum += pb_recipe_orig(r)[k] ^ pb_recipe_rest(r)[k];
	for (unsigned k = 0; k < r->len; k++)
		sum += pb_recipe_code(r)[k] + pb_recipe_orig_offset(r, (uint8_t)k);
	for (unsigned k = 0; k <= r->window_len; k++)
		sum += (unsigned)pb_recipe_copy_offset(r, (uint8_t)k);
	return sum;
}

static struct pb_returns words;

/* Translates the PCs of a place's copy to PCs of the original code, and back. */
static uint64_t use_body(const struct pb_place *p)
{
	uint64_t sum = 0;

	for (unsigned k = 0; k <= pb_body_size(p); k++) {
		struct pb_original o = pb_body_original(p, k);

		FUZZ_CHECK(o.pushed == 0 || o.pushed == 8);
		sum += o.pc + o.next + o.own;
	}
	for (uint64_t at = p->window - 2; at < p->window + p->recipe->window_len + 2u; at++) {
		int copy = pb_body_copy(p, at);

		FUZZ_CHECK(copy < (int)pb_body_size(p));
		if (copy >= 0 && at - p->window < p->recipe->window_len)
			FUZZ_CHECK(copy <= (int)p->recipe->len);
	}
	return sum;
}

/* Uses a site as the agent does. */
static uint64_t use_site(const struct pb_analysis *a, const struct pb_func *f)
{
	static _Alignas(16) uint8_t stub[PB_STUB_MAX];
	static struct pb_site site;
	struct pb_place p = pb_func_place(a, f);
	const struct pb_recipe *r = pb_func_recipe(a, f), *code_slot = pb_func_code_recipe(a, f);
	uint8_t jump[PB_JUMP_LEN];
	uint64_t sum = use_recipe(r);

	if (code_slot)
		sum += use_recipe(code_slot);
	for (unsigned k = 0; f->via && !code_slot && k < PB_JUMP_LEN; k++)
		sum += pb_recipe_slot(r)[k];
	if (f->via) {
		FUZZ_CHECK(pb_analysis_slot_at(a, pb_func_slot(f)) == f);
		pb_jump_emit_short(jump, f->via);
		FUZZ_CHECK((int8_t)jump[1] + PB_JUMP_SHORT == f->via);
	}
	if (f->flags & PB_FUNC_SHARES)
		FUZZ_CHECK(pb_func_is_second(a, f + 1) && f[1].addr == f->addr + 1 &&
			   !f[1].refused);
	FUZZ_CHECK(pb_stub_size(&p) <= sizeof(stub));
	pb_stub_emit(stub, (uint64_t)stub, &site, &p, &words, (uint64_t)stub - f->addr);
	return sum + stub[0] + use_body(&p);
}

/* Uses a window of exits as the agent does. */
static uint64_t use_window(const struct pb_analysis *a, const struct pb_exit_window *w)
{
	static _Alignas(16) uint8_t body[PB_STUB_MAX];
	const struct pb_recipe *r = pb_window_recipe(a, w), *second = pb_window_second(a, w);
	struct pb_place p = pb_window_place(a, w);
	uint64_t sum = use_recipe(r) + (second ? use_recipe(second) : 0);

	FUZZ_CHECK(r->window_len == w->len);
	FUZZ_CHECK(pb_window_lower(a, w->start) == w - pb_analysis_windows(a));
	if (w->how == PB_EXIT_ENTRY)
		FUZZ_CHECK(pb_func_exits(a, pb_window_func(a, w)) == w);
	for (unsigned k = 0; w->how == PB_EXIT_PADDING_SLOT && k < PB_JUMP_LEN; k++)
		sum += pb_recipe_slot(r)[k];
	for (unsigned k = 0; k < w->nr; k++) {
		const struct pb_window_exit *e = pb_window_exits(a, w) + k;
		int at = pb_recipe_copy_offset(r, e->off);

		FUZZ_CHECK(at >= 0 && at < r->len);
		for (unsigned i = 0; i < e->len; i++)
			sum += pb_recipe_orig(r)[e->off + i];
		for (unsigned i = 0; e->kind == PB_EXIT_JCC && i < r->nr_fixups; i++)
			sum += (unsigned)pb_exit_target(r, e, &pb_recipe_fixups(r)[i]);
	}
	FUZZ_CHECK(pb_body_size(&p) <= sizeof(body));
	pb_body_emit(body, (uint64_t)body, &p, &words, (uint64_t)body - w->start);
	return sum + body[0] + use_body(&p);
}

static uint64_t use_exits(const struct pb_analysis *a)
{
	const struct pb_func *f = pb_analysis_funcs(a);
	uint64_t sum = 0;

	for (uint32_t i = 0; i < a->nr_windows; i++)
		sum += use_window(a, pb_analysis_windows(a) + i);
	for (uint32_t i = 0; i < a->nr_funcs; i++) {
		uint32_t nr;
		const uint32_t *left_by = pb_func_left_by(a, &f[i], &nr);

		FUZZ_CHECK(pb_func_inexit(a, &f[i]) < PB_NR_INEXIT);
		for (uint32_t k = 0; k < nr; k++)
			sum += pb_analysis_windows(a)[left_by[k]].start;
		sum += pb_func_exits(a, &f[i]) != NULL;
	}
	return sum;
}

void use_analysis(const struct pb_analysis *a)
{
	const struct pb_func *f = pb_analysis_funcs(a);
	const struct pb_nop *n = pb_analysis_nops(a);
	uint64_t sum = a->soname ? strlen(pb_analysis_string(a, a->soname)) : 0;

	sum += strlen(pb_analysis_string(a, a->path));
	for (uint32_t i = 0; i < a->nr_funcs; i++) {
		FUZZ_CHECK(!i || f[i].addr > f[i - 1].addr);
		sum += use_strings(a, &f[i]);
		sum += pb_analysis_find(a, f[i].addr) != NULL;
		if (!f[i].refused)
			sum += use_site(a, &f[i]);
	}
	for (uint32_t i = 0; i < a->nr_nops; i++)
		sum += n[i].orig[n[i].len - 1];
	if (a->flags & PB_AN_RETURNS)
		sum += use_exits(a);
	__asm__ volatile("" : : "r"(sum));		/* makes the compiler keep the reads */
}
