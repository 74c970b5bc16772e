/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Finds a file's code: its executable sections, or its executable segments if the file has no
 * section headers. Each range has bitmaps with one bit for each byte of code. The later stages
 * share the bitmaps. This file also finds the addresses where decoding restarts, and searches the
 * sorted lists of addresses that stages use.
 */
#include <errno.h>
#include <string.h>
#include "base/base.h"
#include "module/analysis/stages.h"

#define MAX_CODE	(2ull << 30)	/* how far a rel32 can reach */
#define MAX_RANGES	65536

static int by_addr(const void *a, const void *b)
{
	const struct pb_range *x = a, *y = b;

	return x->addr < y->addr ? -1 : x->addr > y->addr;
}

static bool is_stubs(const char *name)
{
	static const char *const names[] = { ".plt", ".plt.got", ".plt.sec", ".plt.bnd", ".iplt" };

	for (size_t i = 0; i < pb_array_size(names); i++)
		if (!strcmp(name, names[i]))
			return true;
	return false;
}

static bool executable_at(const struct pb_elf *e, uint64_t addr)
{
	for (unsigned i = 0; i < e->nr_ph; i++)
		if (e->ph[i].p_type == PT_LOAD && e->ph[i].p_flags & PF_X &&
		    addr - e->ph[i].p_vaddr < e->ph[i].p_filesz)
			return true;
	return false;
}

/* Adds a range with the bytes that the loader maps. These bytes may differ from the section's
 * bytes. */
static void add(struct pb_an *an, uint64_t addr, uint64_t size, bool stubs)
{
	struct pb_range r = { .addr = addr, .size = size, .stubs = stubs };

	if (!size || !addr || !executable_at(&an->elf, addr))
		return;
	r.bytes = pb_elf_at(&an->elf, addr, size);
	if (r.bytes)
		pb_vec_push(&an->ranges, r);
}

static void drop_overlaps(struct pb_an *an)
{
	size_t n = 0;

	pb_vec_sort(&an->ranges, by_addr);
	for (size_t i = 0; i < an->ranges.n; i++) {
		const struct pb_range *r = &an->ranges.v[i];

		if (n && r->addr < an->ranges.v[n - 1].addr + an->ranges.v[n - 1].size)
			continue;
		an->ranges.v[n++] = *r;
	}
	an->ranges.n = n;
}

int pb_ranges_read(struct pb_an *an, const char **why)
{
	struct pb_elf *e = &an->elf;
	uint64_t total = 0;

	for (unsigned i = 1; i < e->nr_sh && an->ranges.n < MAX_RANGES; i++)
		if (e->sh[i].sh_flags & SHF_EXECINSTR && e->sh[i].sh_flags & SHF_ALLOC &&
		    e->sh[i].sh_type != SHT_NOBITS)
			add(an, e->sh[i].sh_addr, e->sh[i].sh_size,
			    is_stubs(pb_elf_section_name(e, &e->sh[i])));
	if (!an->ranges.n)
		for (unsigned i = 0; i < e->nr_ph; i++)
			if (e->ph[i].p_type == PT_LOAD && e->ph[i].p_flags & PF_X)
				add(an, e->ph[i].p_vaddr, e->ph[i].p_filesz, false);
	drop_overlaps(an);
	*why = "no memory";
	if (an->ranges.failed)
		return -ENOMEM;
	for (size_t i = 0; i < an->ranges.n; i++) {
		struct pb_range *r = &an->ranges.v[i];

		total += r->size;
		if (r->size > an->ranges.v[an->main_range].size)
			an->main_range = i;
		*why = "more code than a branch can reach";
		if (total > MAX_CODE)
			return -EFBIG;
		*why = "no memory";
		r->reached = calloc(r->size / 64 + 1, 8);
		r->called = calloc(r->size / 64 + 1, 8);
		r->starts = calloc(r->size / 64 + 1, 8);
		r->branched = calloc(r->size / 64 + 1, 8);
		if (!r->reached || !r->called || !r->starts || !r->branched)
			return -ENOMEM;
		if (!(an->flags & PB_MODULE_RETURNS))
			continue;
		r->used = calloc(r->size / 64 + 1, 8);
		r->otherwise = calloc(r->size / 64 + 1, 8);
		r->direct = calloc(r->size / 64 + 1, 8);
		if (!r->used || !r->otherwise || !r->direct)
			return -ENOMEM;
	}
	return 0;
}

struct pb_range *pb_range_find(const struct pb_an *an, uint64_t addr)
{
	struct pb_range *v = an->ranges.v;
	size_t low, often = an->main_range;

	if (an->ranges.n && addr - v[often].addr < v[often].size)
		return &v[often];
	low = pb_bisect(i, 0, an->ranges.n, v[i].addr <= addr);
	return low && addr - v[low - 1].addr < v[low - 1].size ? &v[low - 1] : NULL;
}

void pb_mark(const struct pb_an *an, uint64_t addr, bool called)
{
	struct pb_range *r = pb_range_find(an, addr);

	if (!r)
		return;
	pb_bit_set(r->reached, addr - r->addr);
	if (called)
		pb_bit_set(r->called, addr - r->addr);
	if (r->otherwise)
		pb_bit_set(r->otherwise, addr - r->addr);
}

bool pb_bits_any(const uint64_t *bits, uint64_t from, uint64_t to)
{
	for (uint64_t i = from / 64; i <= to / 64; i++) {
		uint64_t word = bits[i];

		if (i == from / 64)
			word &= ~0ull << from % 64;
		if (i == to / 64)
			word &= ~0ull >> (63 - to % 64);
		if (word)
			return true;
	}
	return false;
}

static int by_cut(const void *a, const void *b)
{
	const struct pb_cut *x = a, *y = b;

	return x->addr < y->addr ? -1 : x->addr > y->addr;
}

/* A symbol without an FDE says that the bytes within its size are code. It says nothing about the
 * bytes after them. */
void pb_cuts_make(const struct pb_an *an, pb_cut_vec *cuts)
{
	size_t n = 0;

	for (size_t i = 0; i < an->ranges.n; i++) {
		pb_vec_push(cuts, (struct pb_cut){ an->ranges.v[i].addr, false });
		pb_vec_push(cuts, (struct pb_cut){
			an->ranges.v[i].addr + an->ranges.v[i].size, false });
	}
	for (size_t i = 0; i < an->cfi.fdes.n; i++) {
		pb_vec_push(cuts, (struct pb_cut){ an->cfi.fdes.v[i].start, true });
		pb_vec_push(cuts, (struct pb_cut){ an->cfi.fdes.v[i].end, false });
	}
	for (size_t i = 0; i < an->cands.n; i++) {
		const struct pb_cand *c = &an->cands.v[i];

		pb_vec_push(cuts, (struct pb_cut){ c->addr, true });
		if (c->size && pb_cfi_find(&an->cfi, c->addr) < 0)
			pb_vec_push(cuts, (struct pb_cut){ c->addr + c->size, false });
	}
	for (size_t i = 0; i < an->labels.n; i++)
		pb_vec_push(cuts, (struct pb_cut){ an->labels.v[i], true });
	if (cuts->failed)
		return;
	pb_vec_sort(cuts, by_cut);
	for (size_t i = 0; i < cuts->n; i++) {
		if (n && cuts->v[n - 1].addr == cuts->v[i].addr)
			cuts->v[n - 1].code |= cuts->v[i].code;
		else
			cuts->v[n++] = cuts->v[i];
	}
	cuts->n = n;
}

int pb_addr_compare(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

size_t pb_addr_lower(const pb_addr_vec *v, uint64_t addr)
{
	return pb_bisect(i, 0, v->n, v->v[i] < addr);
}

bool pb_has_symbol(const struct pb_an *an, uint64_t addr)
{
	size_t low = pb_bisect(i, 0, an->cands.n, an->cands.v[i].addr < addr);
	size_t label = pb_addr_lower(&an->labels, addr);

	return (low < an->cands.n && an->cands.v[low].addr == addr) ||
	       (label < an->labels.n && an->labels.v[label] == addr);
}

static int by_hook_addr(const void *a, const void *b)
{
	const struct pb_hook_at *x = a, *y = b;

	return x->addr < y->addr ? -1 : x->addr > y->addr;
}

void pb_hooks_sort(pb_hook_vec *v)
{
	pb_vec_sort(v, by_hook_addr);
}

const struct pb_hook_at *pb_hook_find(const pb_hook_vec *v, uint64_t addr)
{
	size_t low = pb_bisect(i, 0, v->n, v->v[i].addr < addr);

	return low < v->n && v->v[low].addr == addr ? &v->v[low] : NULL;
}

static int by_target(const void *a, const void *b)
{
	const struct pb_cross_jump *x = a, *y = b;

	if (x->to != y->to)
		return x->to < y->to ? -1 : 1;
	return x->from < y->from ? -1 : x->from > y->from;
}

size_t pb_cross_jump_lower(const struct pb_an *an, uint64_t to)
{
	return pb_bisect(i, 0, an->cross_jumps.n, an->cross_jumps.v[i].to < to);
}

size_t pb_exits_lower(const struct pb_an *an, uint32_t unit)
{
	return pb_bisect(i, 0, an->exits.n, an->exits.v[i].unit < unit);
}

void pb_cross_jumps_sort(struct pb_an *an)
{
	pb_vec_sort(&an->cross_jumps, by_target);
}
