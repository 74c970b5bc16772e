/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Resolves the references of instructions to maps, variables and functions. Maps and variables have
 * the same numbers in all programs, so this step puts the numbers into the instructions. A
 * reference to a function is a distance in instructions, which differs between programs. So this
 * step only records such references in load_func.refs, and load_prog.c resolves them in each
 * program.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "bpfload/load_priv.h"

#define CALL	(BPF_JMP | BPF_CALL)
#define LD_IMM64 (BPF_LD | BPF_IMM | BPF_DW)

static int add_ref(struct load *l, struct load_func *f, uint32_t insn, uint32_t section,
		   uint64_t target)
{
	struct load_func *to = load_func_at(l, section, target);
	struct load_ref *refs;

	if (!to || target != to->start) {
		load_error(l, &f->why, "%s: instruction %u refers to a place that is no function",
			   f->name, insn);
		return 0;
	}
	refs = load_grow(l, f->refs, f->nr_refs, &f->room_refs, sizeof(*refs));
	if (!refs)
		return -ENOMEM;
	f->refs = refs;
	refs[f->nr_refs++] = (struct load_ref){ insn, (uint32_t)(to - l->funcs) };
	return 0;
}

static int relocate_call(struct load *l, struct load_func *f, uint32_t at, const Elf64_Sym *s,
			 uint32_t sym)
{
	struct bpf_insn *insn = &f->insns[at];
	const struct load_extern *e = load_extern_of(l, sym);

	if (insn->src_reg != BPF_PSEUDO_CALL && insn->src_reg != BPF_PSEUDO_KFUNC_CALL) {
		load_error(l, &f->why, "%s: a call of a helper has a relocation", f->name);
		return 0;
	}
	if (!e)
		return add_ref(l, f, at, s->st_shndx, s->st_value / 8 + (uint64_t)insn->imm + 1);
	/* A call of a missing weak function stays in the program. The verifier rejects the program
	 * only if a path reaches the call. */
	if (!e->weak && !e->kfunc)
		load_error(l, &f->why, e->kind == LOAD_KFUNC ?
			   "%s calls %s, a kernel function that Patchbay doesn't have" :
			   "%s calls %s, which isn't defined", f->name, e->name);
	insn->src_reg = BPF_PSEUDO_KFUNC_CALL;
	insn->imm = e->kfunc;
	insn->off = 0;
	return 0;
}

static void relocate_extern(struct load *l, struct load_func *f, struct bpf_insn *insn,
			    const struct load_extern *e)
{
	if (e->kind == LOAD_KCONFIG && (e->known || e->weak)) {
		insn[0].src_reg = BPF_PSEUDO_MAP_VALUE;
		insn[0].imm = l->kconfig;
		insn[1].imm = (int32_t)e->off;
		return;
	}
	if (e->kind == LOAD_KCONFIG)
		load_error(l, &f->why, "%s uses %s, whose value isn't known here", f->name,
			   e->name);
	else if (!e->weak && !e->kfunc)
		load_error(l, &f->why, e->kind == LOAD_UNKNOWN ? "%s uses %s, which isn't defined" :
			   "%s uses %s, a kernel symbol that Patchbay doesn't have", f->name,
			   e->name);
	/* Patchbay's kernel functions have no addresses that programs could use. So the loaded
	 * value only shows whether the function exists: it is 0 if the function doesn't. */
	insn[0].src_reg = 0;
	insn[0].imm = e->kfunc;
	insn[1].imm = 0;
}

/* Returns the map to which this offset of a section belongs, or NULL. In a section that declares
 * maps, a declaration must begin at the offset. A section of variables is a single map. */
static struct pb_bpf_object_map *map_at(const struct load *l, uint32_t section, uint64_t off)
{
	for (uint32_t i = 0; section && i < l->object.nr_maps; i++)
		if (l->places[i].section == section && (off == l->places[i].off ||
		    (l->object.maps[i].kind != PB_BPF_MAP_DECLARED &&
		     l->object.maps[i].kind != PB_BPF_MAP_LEGACY)))
			return &l->object.maps[i];
	return NULL;
}

static int relocate_imm64(struct load *l, struct load_func *f, uint32_t at, const Elf64_Sym *s,
			  uint32_t sym)
{
	struct bpf_insn *insn = &f->insns[at];
	const struct load_extern *e = load_extern_of(l, sym);
	struct pb_bpf_object_map *map;
	uint64_t off = s->st_value;

	if (e) {
		relocate_extern(l, f, insn, e);
		return 0;
	}
	if (s->st_shndx && s->st_shndx < l->elf.nr &&
	    (l->elf.sh[s->st_shndx].sh_flags & SHF_EXECINSTR)) {
		insn->src_reg = BPF_PSEUDO_FUNC;
		return add_ref(l, f, at, s->st_shndx, (s->st_value + (uint64_t)insn->imm) / 8);
	}
	if (ELF64_ST_TYPE(s->st_info) == STT_SECTION)
		off += (uint64_t)insn->imm;
	if (!load_work(l, l->object.nr_maps, &f->why))
		return 0;
	map = map_at(l, s->st_shndx, off);
	if (!map) {
		load_error(l, &f->why, "%s refers to %s, which is no map, variable or function",
			   f->name, pb_bpf_elf_sym_name(&l->elf, s));
		return 0;
	}
	if (map->kind == PB_BPF_MAP_DECLARED || map->kind == PB_BPF_MAP_LEGACY) {
		insn[0].src_reg = BPF_PSEUDO_MAP_FD;
		insn[1].imm = 0;
	} else {
		insn[0].src_reg = BPF_PSEUDO_MAP_VALUE;
		insn[1].imm = (int32_t)(uint32_t)(s->st_value + (uint64_t)insn[0].imm);
	}
	insn[0].imm = (int32_t)(map - l->object.maps);
	return 0;
}

static int relocate(struct load *l, uint32_t section, const Elf64_Rel *rel)
{
	struct load_func *f = load_func_at(l, section, rel->r_offset / 8);
	uint32_t sym = (uint32_t)ELF64_R_SYM(rel->r_info), at;
	Elf64_Sym s = pb_bpf_elf_sym(&l->elf, sym);

	if (!f)		/* the relocation isn't in code, or no symbol names the code */
		return 0;
	at = (uint32_t)(rel->r_offset / 8) - f->start;
	if (!f->relocated)
		f->relocated = load_alloc(l, f->nr / 8 + 1);
	if (!f->relocated)
		return -ENOMEM;
	f->relocated[at / 8] |= (uint8_t)(1 << at % 8);
	if (rel->r_offset % 8)
		load_error(l, &f->why, "%s: a relocation isn't at an instruction", f->name);
	else if (f->insns[at].code == CALL)
		return relocate_call(l, f, at, &s, sym);
	else if (f->insns[at].code == LD_IMM64 && at + 1 < f->nr)
		return relocate_imm64(l, f, at, &s, sym);
	else
		load_error(l, &f->why, "%s: instruction %u can't have a relocation", f->name, at);
	return 0;
}

static int by_insn(const void *a, const void *b)
{
	const struct load_ref *x = a, *y = b;

	return x->insn != y->insn ? x->insn < y->insn ? -1 : 1 : x->func < y->func ? -1 :
	       x->func > y->func;
}

static bool has_ref(const struct load_func *f, uint32_t nr, uint32_t *next, uint32_t insn)
{
	while (*next < nr && f->refs[*next].insn < insn)
		++*next;
	return *next < nr && f->refs[*next].insn == insn;
}

/* Adds references for calls inside a section, since these calls have no relocation. Sorts all
 * references. */
static int near_calls(struct load *l, struct load_func *f)
{
	uint32_t nr = f->nr_refs, next = 0, n = 0;
	int ret = 0;

	if (nr)
		qsort(f->refs, nr, sizeof(f->refs[0]), by_insn);
	for (uint32_t i = 0; i < f->nr && !ret; i++) {
		const struct bpf_insn *insn = &f->insns[i];

		if (insn->code == CALL && insn->src_reg == BPF_PSEUDO_CALL &&
		    !has_ref(f, nr, &next, i))
			ret = add_ref(l, f, i, f->section, f->start + i + (uint64_t)insn->imm + 1);
		else if (insn->code == LD_IMM64 && insn->src_reg == BPF_PSEUDO_FUNC &&
			 !has_ref(f, nr, &next, i))
			load_error(l, &f->why, "%s: a callback has no relocation", f->name);
		i += insn->code == LD_IMM64;
	}
	if (f->nr_refs)
		qsort(f->refs, f->nr_refs, sizeof(f->refs[0]), by_insn);
	for (uint32_t i = 0; i < f->nr_refs; i++)
		if (!n || f->refs[n - 1].insn != f->refs[i].insn)
			f->refs[n++] = f->refs[i];
	f->nr_refs = n;
	return ret;
}

/*
 * Rejects an instruction that loads a map but has no relocation. The instruction's operand is from
 * the program's source: it is a descriptor, or an index into an array of descriptors. The loader
 * has no descriptors, and must not mistake the operand for a map's number. The messages are the
 * kernel's.
 */
static void own_descriptors(struct load *l, struct load_func *f)
{
	for (uint32_t i = 0; i < f->nr; i++) {
		const struct bpf_insn *insn = &f->insns[i];
		bool index = insn->src_reg == BPF_PSEUDO_MAP_IDX ||
			     insn->src_reg == BPF_PSEUDO_MAP_IDX_VALUE;

		if (insn->code != LD_IMM64)
			continue;
		if ((index || insn->src_reg == BPF_PSEUDO_MAP_FD ||
		     insn->src_reg == BPF_PSEUDO_MAP_VALUE) &&
		    !(f->relocated && f->relocated[i / 8] & 1 << i % 8) && !f->why) {
			f->err = index ? -EPROTO : -EBADF;
			load_error(l, &f->why, index ? "fd_idx without fd_array is invalid" :
				   "fd %d is not pointing to valid bpf_map", insn->imm);
		}
		i++;
	}
}

int load_relocs(struct load *l)
{
	int ret = load_each_rel(l, 0, relocate);

	for (uint32_t i = 0; i < l->nr_funcs && !ret; i++) {
		ret = near_calls(l, &l->funcs[i]);
		own_descriptors(l, &l->funcs[i]);
	}
	return ret;
}
