/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Writes the analysis' file (abi/analysis.h) from the results of the stages. The file is one block
 * of bytes with offsets, so that the agent can map it read-only. Nothing in the file depends on the
 * machine or the process that made it.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include "abi/analysis_check.h"
#include "base/base.h"
#include "module/elf/runtimes.h"
#include "module/analysis/stages.h"

#define MAX_STRINGS	(1u << 30)

typedef PB_VEC(char) text;

static uint32_t add_string(text *t, const char *s, size_t len)
{
	size_t at = t->n;

	if (t->n + len + 1 > MAX_STRINGS) {
		t->failed = true;
		return 0;
	}
	pb_vec_append(t, s, len);
	pb_vec_push(t, '\0');
	return (uint32_t)at;
}

static bool same_name(const struct pb_cand *a, const struct pb_cand *b)
{
	return a->len == b->len && !memcmp(a->name, b->name, a->len);
}

/* Adds all names of a function except the best name, c[0]. If both .symtab and .dynsym have
 * a name, the name is in c[] twice, and is added once. The two copies are neighbours, because
 * equal names with the same binding are neighbours. */
static uint32_t add_aliases(text *t, const struct pb_cand *c, size_t n)
{
	size_t at = t->n, i;

	for (i = 1; i < n; i++) {
		if (same_name(&c[i], &c[i - 1]) || same_name(&c[i], c))
			continue;
		if (t->n + c[i].len + 2 > MAX_STRINGS)
			t->failed = true;
		pb_vec_append(t, c[i].name, c[i].len);
		pb_vec_push(t, '\n');
	}
	if (t->n == at)
		return 0;
	pb_vec_push(t, '\0');
	return (uint32_t)at;
}

static void fill_func(const struct pb_an *an, const struct pb_fn *f, struct pb_func *to, text *t)
{
	char made[32];

	*to = (struct pb_func){
		.addr = f->addr, .size = (uint32_t)f->size, .window = f->window, .kind = f->kind,
		.refused = f->refused, .flags = f->flags,
	};
	if (!f->refused) {
		to->window_len = f->window_len;
		to->recipe = f->recipe;
		to->via = f->via;
	}
	if (f->nr_cands) {
		const struct pb_cand *c = &an->cands.v[f->cand];

		to->name = add_string(t, c->name, c->len);
		to->aliases = add_aliases(t, c, f->nr_cands);
	} else {
		int len = snprintf(made, sizeof(made), "sub_%llx", (unsigned long long)f->addr);

		to->name = add_string(t, made, (size_t)len);
	}
}

/* Computes an id for a file that has no build-id. The hash isn't cryptographic: two streams of
 * multiply-and-fold run over the whole file. */
static void hash_file(struct pb_elf *e, uint8_t out[16])
{
	uint64_t h[2] = { 0x9e3779b97f4a7c15ull ^ e->size, 0xc2b2ae3d27d4eb4full };

	for (uint64_t off = 0; off < e->size; off += 8) {
		uint64_t left = e->size - off, v = 0;
		const void *p = pb_elf_bytes(e, off, left < 8 ? left : 8);

		if (p)
			memcpy(&v, p, left < 8 ? left : 8);
		h[0] = (h[0] ^ v) * 0x9fb21c651e98df25ull;
		h[0] ^= h[0] >> 29;
		h[1] = (h[1] + v) * 0xd6e8feb86659fd93ull;
		h[1] ^= h[1] >> 32;
	}
	memcpy(out, h, 16);
}

static void fill_identity(struct pb_an *an, struct pb_analysis *a)
{
	unsigned len;
	uint64_t vaddr = 0;
	const uint8_t *id = pb_elf_build_id(&an->elf, &len, &vaddr);

	if (id) {
		a->build_id_len = len < PB_BUILD_ID_MAX ? len : PB_BUILD_ID_MAX;
		memcpy(a->build_id, id, a->build_id_len);
		a->note_vaddr = vaddr;
	} else {
		a->build_id_len = 16;
		hash_file(&an->elf, a->build_id);
	}
}

static void fill_extents(const struct pb_an *an, struct pb_analysis *a)
{
	const struct pb_elf *e = &an->elf;

	a->text_start = a->image_start = UINT64_MAX;
	for (unsigned i = 0; i < e->nr_ph; i++) {
		const Elf64_Phdr *p = &e->ph[i];
		uint64_t end = p->p_vaddr + p->p_memsz;

		if (p->p_type != PT_LOAD)
			continue;
		if (p->p_vaddr < a->image_start)
			a->image_start = p->p_vaddr;
		if (end > a->image_end)
			a->image_end = end;
		if (p->p_flags & PF_W && !(p->p_flags & PF_X)) {
			a->data_start = p->p_vaddr;
			a->data_end = end;
		}
		if (!(p->p_flags & PF_X))
			continue;
		if (p->p_vaddr < a->text_start)
			a->text_start = p->p_vaddr;
		if (end > a->text_end)
			a->text_end = end;
	}
	if (a->image_start > a->image_end)
		a->image_start = a->image_end = 0;
	if (a->text_start > a->text_end)
		a->text_start = a->text_end = 0;
	if (a->data_start > a->data_end)
		a->data_start = a->data_end = 0;
}

static uint64_t place(uint64_t *at, uint64_t size)
{
	uint64_t offset = *at;

	*at = pb_align_up(offset + size, 8);
	return offset;
}

/* Decides where the tables of exits lie in the file. */
static void place_exits(const struct pb_an *an, struct pb_analysis *a, uint64_t *at)
{
	const struct pb_exit_tables *t = &an->exit_tables;

	if (!(an->flags & PB_MODULE_RETURNS))
		return;
	a->flags |= PB_AN_RETURNS;
	a->nr_windows = (uint32_t)t->windows.n;
	a->nr_exits = (uint32_t)t->exits.n;
	a->nr_left_by = (uint32_t)t->left_by.n;
	a->windows_offset = place(at, t->windows.n * sizeof(*t->windows.v));
	a->exits_offset = place(at, t->exits.n * sizeof(*t->exits.v));
	a->leaves_offset = place(at, t->leaves.n * sizeof(*t->leaves.v));
	a->left_by_offset = place(at, t->left_by.n * sizeof(*t->left_by.v));
	a->inexits_offset = place(at, an->fns.n);
}

static void put(uint8_t *to, const void *from, size_t size)
{
	if (size)
		memcpy(to, from, size);
}

static void put_exits(const struct pb_an *an, const struct pb_analysis *a, uint8_t *blob)
{
	const struct pb_exit_tables *t = &an->exit_tables;

	if (!(an->flags & PB_MODULE_RETURNS))
		return;
	put(blob + a->windows_offset, t->windows.v, t->windows.n * sizeof(*t->windows.v));
	put(blob + a->exits_offset, t->exits.v, t->exits.n * sizeof(*t->exits.v));
	put(blob + a->leaves_offset, t->leaves.v, t->leaves.n * sizeof(*t->leaves.v));
	put(blob + a->left_by_offset, t->left_by.v, t->left_by.n * sizeof(*t->left_by.v));
	for (size_t i = 0; i < an->fns.n; i++)
		blob[a->inexits_offset + i] = an->fns.v[i].inexit;
}

/* Returns how many KiB of the code belong to no function (unknown_kib in abi/analysis.h). Returns
 * 0 if this is at most half of the code, or less than 64 KiB. A function whose size is unknown
 * reaches to the next function. */
static uint32_t unknown_kib(const struct pb_an *an)
{
	uint64_t code = 0, known = 0, at = 0;

	for (size_t i = 0; i < an->ranges.n; i++)
		code += an->ranges.v[i].stubs ? 0 : an->ranges.v[i].size;
	for (size_t i = 0; i < an->fns.n; i++) {
		const struct pb_fn *f = &an->fns.v[i];
		uint64_t end = f->addr + f->size;

		if (!f->size && i + 1 < an->fns.n)
			end = f[1].addr;
		at = f->addr > at ? f->addr : at;
		if (end > at) {
			known += end - at;
			at = end;
		}
	}
	if (known >= code / 2 || code - known < 65536)
		return 0;
	return (uint32_t)((code - known) / 1024);
}

int pb_emit(struct pb_an *an, uint8_t **blob, size_t *size, const char **why)
{
	struct pb_analysis a = {
		.magic = PB_ANALYSIS_MAGIC, .version = PB_ANALYSIS_VERSION,
		.flags = an->an_flags | (pb_runtime_has_small_stacks(an->runtimes) ?
					 PB_AN_SMALL_STACKS : 0),
		.runtimes = an->runtimes,
		.nr_funcs = (uint32_t)an->fns.n, .nr_nops = (uint32_t)an->nops.n,
		.recipes_size = an->recipes.n,
	};
	struct pb_func *funcs = calloc(an->fns.n + 1, sizeof(*funcs));
	uint64_t at = pb_align_up(sizeof(a), (size_t)8);
	text t = { 0 };

	add_string(&t, "", 0);
	a.soname = add_string(&t, an->soname, strlen(an->soname));
	a.path = add_string(&t, an->path, strlen(an->path));
	for (size_t i = 0; funcs && i < an->fns.n; i++) {
		fill_func(an, &an->fns.v[i], &funcs[i], &t);
		a.nr_sites += funcs[i].refused == PB_REFUSED_NOT;
	}
	a.nr_refused = a.nr_funcs - a.nr_sites;
	fill_identity(an, &a);
	fill_extents(an, &a);
	a.unknown_kib = unknown_kib(an);
	a.strings_size = t.n;
	a.funcs_offset = place(&at, an->fns.n * sizeof(*funcs));
	a.nops_offset = place(&at, an->nops.n * sizeof(struct pb_nop));
	a.recipes_offset = place(&at, an->recipes.n);
	place_exits(an, &a, &at);
	a.strings_offset = place(&at, t.n);
	a.size = at;
	*blob = funcs && !t.failed ? calloc(1, at) : NULL;
	if (*blob) {
		memcpy(*blob, &a, sizeof(a));
		memcpy(*blob + a.funcs_offset, funcs, an->fns.n * sizeof(*funcs));
		put(*blob + a.nops_offset, an->nops.v, an->nops.n * sizeof(struct pb_nop));
		put(*blob + a.recipes_offset, an->recipes.v, an->recipes.n);
		put_exits(an, &a, *blob);
		memcpy(*blob + a.strings_offset, t.v, t.n);
		*size = at;
	}
	pb_vec_free(&t);
	free(funcs);
	*why = "no memory";
	return *blob ? 0 : -ENOMEM;
}
