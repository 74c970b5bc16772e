/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Finds the functions of an object by its symbols. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "bpfload/load_priv.h"

static bool is_code(const struct load *l, uint32_t section)
{
	return section && section < l->elf.nr && l->elf.sh[section].sh_type == SHT_PROGBITS &&
	       (l->elf.sh[section].sh_flags & SHF_EXECINSTR);
}

static bool is_func(const struct load *l, const Elf64_Sym *s)
{
	return ELF64_ST_TYPE(s->st_info) == STT_FUNC && is_code(l, s->st_shndx) && s->st_size;
}

static int add_func(struct load *l, const Elf64_Sym *s)
{
	struct load_func *f = &l->funcs[l->nr_funcs++];
	uint64_t size = l->elf.sh[s->st_shndx].sh_size;
	unsigned visibility = ELF64_ST_VISIBILITY(s->st_other);

	f->name = load_text(l, pb_bpf_elf_sym_name(&l->elf, s));
	if (!f->name)
		return -ENOMEM;
	if (s->st_value % 8 || s->st_size % 8 || s->st_value > size ||
	    s->st_size > size - s->st_value)
		return load_refuse(l, "function %s isn't inside its section", f->name);
	f->section = s->st_shndx;
	f->start = (uint32_t)(s->st_value / 8);
	f->nr = (uint32_t)(s->st_size / 8);
	f->global = ELF64_ST_BIND(s->st_info) != STB_LOCAL;
	f->hidden = visibility == STV_HIDDEN || visibility == STV_INTERNAL;
	return 0;
}

static int by_place(const void *a, const void *b)
{
	const struct load_func *x = a, *y = b;

	if (x->section != y->section)
		return x->section < y->section ? -1 : 1;
	if (x->start != y->start)
		return x->start < y->start ? -1 : 1;
	if (x->global != y->global)
		return x->global ? -1 : 1;
	return strcmp(x->name, y->name);
}

/* If a function has several names, drops all of them but one. It is an error if two different
 * functions overlap. */
static int drop_aliases(struct load *l)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < l->nr_funcs; i++) {
		struct load_func *f = &l->funcs[i], *last = n ? &l->funcs[n - 1] : NULL;

		if (last && last->section == f->section && f->start < last->start + last->nr) {
			if (f->start == last->start && f->nr == last->nr)
				continue;
			return load_refuse(l, "functions %s and %s overlap", last->name, f->name);
		}
		l->funcs[n++] = *f;
	}
	l->nr_funcs = n;
	return 0;
}

static int copy_insns(struct load *l, struct load_func *f)
{
	size_t size;
	const uint8_t *p = pb_bpf_elf_data(&l->elf, f->section, &size);

	f->insns = load_alloc(l, f->nr * sizeof(f->insns[0]));
	if (!f->insns)
		return -ENOMEM;
	memcpy(f->insns, p + f->start * 8ull, f->nr * 8ull);
	/* a global function is a program, but in .text only if the object has no other function */
	f->entry = f->global &&
		   (l->nr_funcs == 1 || strcmp(pb_bpf_elf_name(&l->elf, f->section), ".text"));
	return 0;
}

int load_funcs(struct load *l)
{
	uint32_t n = 0, progs = 0;
	int ret = 0;

	for (uint32_t i = 1; i < l->elf.nr_syms; i++) {
		Elf64_Sym s = pb_bpf_elf_sym(&l->elf, i);

		n += is_func(l, &s);
	}
	l->funcs = load_alloc(l, n * sizeof(l->funcs[0]));
	if (!l->funcs)
		return -ENOMEM;
	for (uint32_t i = 1; i < l->elf.nr_syms && !ret; i++) {
		Elf64_Sym s = pb_bpf_elf_sym(&l->elf, i);

		if (is_func(l, &s))
			ret = add_func(l, &s);
	}
	if (ret)
		return ret;
	qsort(l->funcs, l->nr_funcs, sizeof(l->funcs[0]), by_place);
	ret = drop_aliases(l);
	for (uint32_t i = 0; i < l->nr_funcs && !ret; i++) {
		ret = copy_insns(l, &l->funcs[i]);
		l->funcs[i].number = progs;
		progs += l->funcs[i].entry;
	}
	return ret;
}

struct load_func *load_func_at(const struct load *l, uint32_t section, uint64_t insn)
{
	uint32_t low = 0, high = l->nr_funcs;

	while (low < high) {
		uint32_t mid = low + (high - low) / 2;
		struct load_func *f = &l->funcs[mid];

		if (f->section == section && insn >= f->start && insn - f->start < f->nr)
			return f;
		if (f->section < section || (f->section == section && f->start <= insn))
			low = mid + 1;
		else
			high = mid;
	}
	return NULL;
}
