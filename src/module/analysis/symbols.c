/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Collects candidates for functions, and labels. They come from every symbol table that belongs to
 * the file: .symtab, .dynsym, and the tables of the debug file and of the mini debug info. Go's
 * table of functions adds those that no symbol names. Names are not copied, but stay in the file's
 * bytes.
 */
#include <errno.h>
#include <string.h>
#include "base/base.h"
#include "base/clean_text.h"
#include "module/analysis/stages.h"
#include "module/elf/go_table.h"
#include "module/elf/runtimes.h"

#define MAX_NAME 4096	/* in bytes; mangled C++ names have up to a few thousand */

/* mov $word, %eax */
#define MOV_EAX		0xb8
#define TYPE_HASH_LEN	5
#define NOP		0x90

/* Returns the length of the name without its version ("@@GLIBC_2.2"). Returns 0 if the name is too
 * long, or has a blank or a control character. */
static size_t usable_name(const char *name)
{
	size_t len = 0;

	for (; name[len] && name[len] != '@'; len++)
		if (name[len] == ' ' || pb_text_control(name + len) || len == MAX_NAME)
			return 0;
	return len;
}

/* The assembler's local labels begin with .L */
static bool is_local_label(const char *name)
{
	return name[0] == '.' && name[1] == 'L';
}

/* With -fsanitize=kcfi, clang puts a hash of the function's type before each function. The code of
 * an indirect call compares this word with the hash that it expects. The word is the operand of a
 * `mov $hash, %eax`, which follows some nops. The nops and the mov never run, so they are data. The
 * symbol __cfi_FUNCTION names them. (Other names that begin with __cfi_ are real functions.) */
static bool is_type_hash(const struct pb_range *r, const Elf64_Sym *s, const char *name)
{
	const uint8_t *code = r->bytes + (s->st_value - r->addr);
	uint64_t nops = 0;

	if (strncmp(name, "__cfi_", strlen("__cfi_")) || s->st_size < TYPE_HASH_LEN ||
	    s->st_size > r->size - (s->st_value - r->addr))
		return false;
	while (nops < s->st_size - TYPE_HASH_LEN && code[nops] == NOP)
		nops++;
	return nops == s->st_size - TYPE_HASH_LEN && code[nops] == MOV_EAX;
}

static void add_symbol(struct pb_an *an, const Elf64_Sym *s, const char *name)
{
	unsigned type = ELF64_ST_TYPE(s->st_info), bind = ELF64_ST_BIND(s->st_info);
	const struct pb_range *r = pb_range_find(an, s->st_value);
	struct pb_cand c = { .addr = s->st_value, .name = name };

	if (!r || r->stubs)
		return;
	if (type == STT_OBJECT)
		pb_vec_push(&an->barriers, s->st_value);
	if (type == STT_NOTYPE) {
		if (!is_local_label(name))
			pb_vec_push(&an->labels, s->st_value);
		return;
	}
	if ((type != STT_FUNC && type != STT_GNU_IFUNC) || is_type_hash(r, s, name))
		return;
	c.len = (uint32_t)usable_name(name);
	if (!c.len) {
		pb_vec_push(&an->labels, s->st_value);
		return;
	}
	/* a size that reaches beyond the range of code is ignored */
	if (s->st_size <= r->size - (s->st_value - r->addr))
		c.size = s->st_size;
	if (bind == STB_GLOBAL || bind == STB_WEAK || bind == STB_GNU_UNIQUE)
		c.flags |= PB_CAND_GLOBAL;
	if (type == STT_GNU_IFUNC)
		c.flags |= PB_CAND_IFUNC;
	pb_vec_push(&an->cands, c);
}

static bool add_table(struct pb_an *an, struct pb_elf *e, unsigned type)
{
	struct pb_elf_symbols t;

	if (!pb_elf_symbols(e, type, &t))
		return false;
	for (uint64_t i = 1; i < t.n; i++) {
		const char *name;

		if (t.v[i].st_shndx == SHN_UNDEF || t.v[i].st_shndx == SHN_ABS || !t.v[i].st_value)
			continue;
		name = pb_elf_string(&t.strings, t.v[i].st_name);
		if (name)
			add_symbol(an, &t.v[i], name);
	}
	return t.n > 1;
}

static int by_addr(const void *a, const void *b)
{
	const struct pb_cand *x = a, *y = b;

	return x->addr < y->addr ? -1 : x->addr > y->addr;
}

/* Returns the end of a function that only Go's table shows. This is the end in Go's table, but at
 * most the next FDE's start, the next symbol's address `next`, and the end of the range. Padding
 * before the end is left out. */
static uint64_t end_of(const struct pb_an *an, const struct pb_range *r,
		       const struct pb_go_func *f, uint64_t next)
{
	const struct pb_fde *fdes = an->cfi.fdes.v;
	size_t fde = pb_bisect(i, 0, an->cfi.fdes.n, fdes[i].start <= f->start);
	uint64_t end = r->addr + r->size;

	next = fde < an->cfi.fdes.n && fdes[fde].start < next ? fdes[fde].start : next;
	next = f->end < next ? f->end : next;
	end = next < end ? next : end;
	if (f->padded || end < f->end)
		while (end > f->start && r->bytes[end - 1 - r->addr] == PB_GO_PADDING)
			end--;
	return end;
}

/* Adds a function that only Go's table shows. If an FDE covers the function's first byte, the FDE
 * must begin there. */
static void add_go_function(struct pb_an *an, const struct pb_go_func *f, uint64_t next)
{
	const struct pb_range *r = pb_range_find(an, f->start);
	long fde = pb_cfi_find(&an->cfi, f->start);
	struct pb_cand c = { .addr = f->start, .name = f->name };

	if (!r || r->stubs || (fde >= 0 && an->cfi.fdes.v[fde].start != f->start))
		return;
	c.len = (uint32_t)usable_name(f->name);
	c.size = end_of(an, r, f, next) - f->start;
	if (c.len && c.size)
		pb_vec_push(&an->cands, c);
	else
		pb_vec_push(&an->labels, f->start);
}

/* Adds the functions of Go's table that no symbol shows. Both lists are sorted. A symbol that shows
 * a function is a better source: it has the whole name, also of a generic function. */
static void add_go_functions(struct pb_an *an, const pb_go_vec *go)
{
	uint64_t covered = 0;	/* the end of the symbols' functions up to here */
	size_t nr = an->cands.n, k = 0;

	pb_vec_sort(&an->cands, by_addr);
	for (size_t i = 0; i < go->n; i++) {
		uint64_t start = go->v[i].start;
		bool known = false;

		for (; k < nr && an->cands.v[k].addr <= start; k++) {
			const struct pb_cand *c = &an->cands.v[k];

			known |= c->addr == start;
			if (c->addr + c->size > covered)
				covered = c->addr + c->size;
		}
		if (!known && start >= covered)
			add_go_function(an, &go->v[i], k < nr ? an->cands.v[k].addr : UINT64_MAX);
	}
}

static bool read_go_table(struct pb_an *an)
{
	uint32_t go = pb_runtimes_of_section(".gopclntab");
	pb_go_vec v = { 0 };
	bool failed;

	pb_go_functions(&an->elf, an->runtimes & go || !an->elf.nr_sh, &v);
	if (v.n) {
		an->runtimes |= go;
		add_go_functions(an, &v);
	}
	failed = v.failed;
	pb_vec_free(&v);
	return !failed;
}

int pb_symbols_read(struct pb_an *an, const char **why)
{
	bool complete = add_table(an, &an->elf, SHT_SYMTAB);

	add_table(an, &an->elf, SHT_DYNSYM);
	for (unsigned i = 0; i < an->nr_debug; i++)
		complete |= add_table(an, &an->debug[i], SHT_SYMTAB);
	if (complete)
		an->an_flags |= PB_AN_HAS_SYMTAB;
	*why = "no memory";
	if (!read_go_table(an))
		return -ENOMEM;
	pb_vec_sort(&an->labels, pb_addr_compare);
	return an->cands.failed || an->labels.failed ? -ENOMEM : 0;
}
