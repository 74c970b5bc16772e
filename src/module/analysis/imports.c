/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Reads the dynamic relocations. They show:
 *
 *   - which pointers lead to the compilers' hooks (mcount, __fentry__, ...);
 *   - which code has its address taken;
 *   - which functions resolve IFUNCs;
 *   - which text the loader rewrites;
 *   - which words the loader will write into the sections of the compiler's records (__mcount_loc
 *     and similar; records.c), and into those that describe restartable sequences (sequences.c).
 *
 * A program at a fixed address contains its pointers without relocations. So in such a program,
 * every aligned word that could be a pointer counts as a pointer.
 */
#include <errno.h>
#include <string.h>
#include "module/analysis/stages.h"

/* the linker makes at most one section of each name */
#define MAX_RECORDS 16
#define MAX_HOOK_NAME 32	/* more characters than the name of any hook has */

static bool is_record_section(const char *name)
{
	return !strcmp(name, "__mcount_loc") || !strcmp(name, "__patchable_function_entries") ||
	       !strcmp(name, "xray_instr_map");
}

static void find_sections(struct pb_an *an)
{
	const struct pb_elf *e = &an->elf;

	for (unsigned i = 1; i < e->nr_sh; i++) {
		const char *name = pb_elf_section_name(e, &e->sh[i]);

		if (is_record_section(name) && an->records.n < MAX_RECORDS)
			pb_vec_push(&an->records, &e->sh[i]);
		if (!strcmp(name, "__rseq_cs") && an->sequence_sections.n < MAX_RECORDS)
			pb_vec_push(&an->sequence_sections, &e->sh[i]);
	}
}

static bool is_in(const pb_section_vec *sections, uint64_t addr)
{
	for (size_t i = 0; i < sections->n; i++)
		if (addr - sections->v[i]->sh_addr < sections->v[i]->sh_size)
			return true;
	return false;
}

/* Notes that the loader will store the address `value` at `at`. */
static void stored(struct pb_an *an, uint64_t at, uint64_t value)
{
	bool record = is_in(&an->records, at);

	if (record || is_in(&an->sequence_sections, at))
		pb_vec_push(&an->words, (struct pb_word){ at, value });
	/* a record has the address of a call or a nop, which doesn't show that a branch leads
	 * there */
	if (!record)
		pb_mark(an, value, true);
}

/* Finds out which hook a symbol names. If a file that isn't static defines a function with the name
 * mcount or __fentry__, this is a function of the program, and calls of it must stay. The hooks of
 * -finstrument-functions have names that are reserved, so programs define them as hooks. */
static enum pb_hook hook_named(const struct pb_an *an, const char *name, size_t len, bool defined)
{
	enum pb_hook h = pb_name_hook(name, len);

	if (defined && !(an->an_flags & PB_AN_STATIC) &&
	    (h == PB_HOOK_MCOUNT || h == PB_HOOK_FENTRY))
		return PB_HOOK_NONE;
	return h;
}

static void one_rela(struct pb_an *an, const Elf64_Rela *r, const struct pb_elf_symbols *syms)
{
	uint64_t type = ELF64_R_TYPE(r->r_info), sym = ELF64_R_SYM(r->r_info);
	const char *name;
	enum pb_hook hook;

	if (pb_range_find(an, r->r_offset) && type != R_X86_64_NONE)
		pb_vec_push(&an->textrels, r->r_offset);
	switch (type) {
	case R_X86_64_RELATIVE:
		stored(an, r->r_offset, (uint64_t)r->r_addend);
		return;
	case R_X86_64_IRELATIVE:
		pb_vec_push(&an->ifuncs, (uint64_t)r->r_addend);
		return;
	case R_X86_64_64: case R_X86_64_GLOB_DAT: case R_X86_64_JUMP_SLOT:
		break;
	default:
		return;
	}
	if (sym >= syms->n)
		return;
	/* the addend of a GLOB_DAT counts for nothing */
	if (syms->v[sym].st_value && type == R_X86_64_GLOB_DAT)
		pb_mark(an, syms->v[sym].st_value, true);
	if (syms->v[sym].st_value && type == R_X86_64_64)
		stored(an, r->r_offset, syms->v[sym].st_value + (uint64_t)r->r_addend);
	name = pb_elf_string(&syms->strings, syms->v[sym].st_name);
	hook = name ? hook_named(an, name, strnlen(name, MAX_HOOK_NAME),
				 syms->v[sym].st_shndx != SHN_UNDEF) : PB_HOOK_NONE;
	if (hook)
		pb_vec_push(&an->hook_slots, (struct pb_hook_at){ r->r_offset, (uint8_t)hook, 0 });
}

static void rela_table(struct pb_an *an, const Elf64_Rela *r, uint64_t n)
{
	struct pb_elf_symbols syms;

	if (!r || (uintptr_t)r % 8)
		return;
	if (!pb_elf_symbols(&an->elf, SHT_DYNSYM, &syms))
		syms.n = 0;
	for (uint64_t i = 0; i < n; i++)
		one_rela(an, &r[i], &syms);
}

/* Reads packed relative relocations: an address, and after it bitmaps that cover 63 words each. */
static void relr_table(struct pb_an *an, const uint64_t *r, uint64_t n)
{
	uint64_t next = 0;

	if (!r || (uintptr_t)r % 8)
		return;
	for (uint64_t i = 0; i < n; i++) {
		uint64_t bits = r[i] & 1 ? r[i] >> 1 : 1;

		if (!(r[i] & 1))
			next = r[i];
		for (unsigned k = 0; bits; k++, bits >>= 1) {
			uint64_t at = next + k * 8, value;
			const void *p = bits & 1 ? pb_elf_at(&an->elf, at, 8) : NULL;

			if (!p)
				continue;
			memcpy(&value, p, 8);
			if (pb_range_find(an, at))
				pb_vec_push(&an->textrels, at);
			stored(an, at, value);
		}
		next += r[i] & 1 ? 63 * 8 : 8;
	}
}

static void dynamic_relocations(struct pb_an *an)
{
	struct pb_elf *e = &an->elf;
	uint64_t addr, size;

	if (pb_elf_dynamic(e, DT_RELA, &addr) && pb_elf_dynamic(e, DT_RELASZ, &size))
		rela_table(an, pb_elf_at(e, addr, size), size / sizeof(Elf64_Rela));
	if (pb_elf_dynamic(e, DT_JMPREL, &addr) && pb_elf_dynamic(e, DT_PLTRELSZ, &size))
		rela_table(an, pb_elf_at(e, addr, size), size / sizeof(Elf64_Rela));
	if (pb_elf_dynamic(e, DT_RELR, &addr) && pb_elf_dynamic(e, DT_RELRSZ, &size))
		relr_table(an, pb_elf_at(e, addr, size), size / 8);
	if (pb_elf_dynamic(e, DT_TEXTREL, &addr) ||
	    (pb_elf_dynamic(e, DT_FLAGS, &addr) && addr & DF_TEXTREL))
		an->an_flags |= PB_AN_TEXTREL;
}

/* Reads the relocations of a static program. Sections of a hostile file may cover the same bytes,
 * so this ends when more bytes are read than the file has. */
static void static_relocations(struct pb_an *an)
{
	struct pb_elf *e = &an->elf;
	uint64_t left = e->size;

	for (unsigned i = 1; i < e->nr_sh; i++) {
		const Elf64_Shdr *sh = &e->sh[i];

		if (sh->sh_type != SHT_RELA || !(sh->sh_flags & SHF_ALLOC))
			continue;
		if (sh->sh_size > left)
			return;
		left -= sh->sh_size;
		rela_table(an, pb_elf_section_bytes(e, sh), sh->sh_size / sizeof(Elf64_Rela));
	}
}

/* For a program at a fixed address: takes each aligned word for an address, and marks the address
 * if it lies in code. The word may also be part of a switch's table, so it doesn't prove that a
 * function begins there. */
static void pointers_in_place(struct pb_an *an)
{
	struct pb_elf *e = &an->elf;
	uint64_t left = 2 * e->size;	/* segments of a hostile file may cover the same bytes */

	for (unsigned i = 0; i < e->nr_ph; i++) {
		const Elf64_Phdr *p = &e->ph[i];
		uint64_t skip = -p->p_vaddr % 8;
		const uint8_t *v;

		if (p->p_type != PT_LOAD || p->p_filesz < skip ||
		    !(v = pb_elf_bytes(e, p->p_offset, p->p_filesz)))
			continue;
		if (p->p_filesz > left)
			return;
		left -= p->p_filesz;
		for (uint64_t off = skip; p->p_filesz - off >= 8; off += 8) {
			uint64_t value;

			memcpy(&value, v + off, 8);
			if (!is_in(&an->records, p->p_vaddr + off))
				pb_mark(an, value, false);
		}
	}
}

/* Finds the linker's stubs that jump to a hook: [endbr64] [bnd] jmp *slot(%rip). */
static void find_stubs(struct pb_an *an, const struct pb_range *r)
{
	static const uint8_t endbr[] = { 0xf3, 0x0f, 0x1e, 0xfa };

	for (uint64_t i = 0; i + 6 <= r->size; i++) {
		const uint8_t *p = r->bytes + i;
		const struct pb_hook_at *slot;
		int32_t disp;
		uint64_t at = i;

		if (p[0] != 0xff || p[1] != 0x25)
			continue;
		memcpy(&disp, p + 2, 4);
		slot = pb_hook_find(&an->hook_slots, r->addr + i + 6 + (uint64_t)(int64_t)disp);
		if (!slot)
			continue;
		pb_vec_push(&an->hook_stubs, (struct pb_hook_at){ r->addr + at, slot->hook, 0 });
		if (at && r->bytes[at - 1] == 0xf2)
			pb_vec_push(&an->hook_stubs,
				    (struct pb_hook_at){ r->addr + --at, slot->hook, 0 });
		if (at >= 4 && !memcmp(r->bytes + at - 4, endbr, 4))
			pb_vec_push(&an->hook_stubs,
				    (struct pb_hook_at){ r->addr + at - 4, slot->hook, 0 });
	}
}

static int by_addr(const void *a, const void *b)
{
	const struct pb_word *x = a, *y = b;

	return x->addr < y->addr ? -1 : x->addr > y->addr;
}

int pb_imports_read(struct pb_an *an, const char **why)
{
	struct pb_elf *e = &an->elf;

	find_sections(an);
	if (e->nr_dyn)
		dynamic_relocations(an);
	else
		static_relocations(an);
	if (e->eh->e_type == ET_EXEC)
		pointers_in_place(an);
	pb_hooks_sort(&an->hook_slots);
	for (size_t i = 0; i < an->ranges.n && an->hook_slots.n; i++)
		if (an->ranges.v[i].stubs)
			find_stubs(an, &an->ranges.v[i]);
	/* a static program contains the hooks themselves */
	for (size_t i = 0; i < an->cands.n; i++) {
		enum pb_hook h = hook_named(an, an->cands.v[i].name, an->cands.v[i].len, true);

		if (h)
			pb_vec_push(&an->hook_stubs,
				    (struct pb_hook_at){ an->cands.v[i].addr, (uint8_t)h, 0 });
		if (an->cands.v[i].flags & PB_CAND_IFUNC)
			pb_vec_push(&an->ifuncs, an->cands.v[i].addr);
	}
	pb_hooks_sort(&an->hook_stubs);
	pb_vec_sort(&an->words, by_addr);
	pb_vec_sort(&an->ifuncs, pb_addr_compare);
	pb_vec_sort(&an->textrels, pb_addr_compare);
	*why = "no memory";
	return an->words.failed || an->records.failed || an->sequence_sections.failed ||
	       an->ifuncs.failed || an->textrels.failed || an->hook_slots.failed ||
	       an->hook_stubs.failed ? -ENOMEM : 0;
}

bool pb_word_at(struct pb_an *an, uint64_t addr, uint64_t *value)
{
	size_t low = 0, high = an->words.n;
	const void *p;

	while (low < high) {
		size_t mid = low + (high - low) / 2;

		if (an->words.v[mid].addr < addr)
			low = mid + 1;
		else
			high = mid;
	}
	if (low < an->words.n && an->words.v[low].addr == addr) {
		*value = an->words.v[low].value;
		return true;
	}
	p = pb_elf_at(&an->elf, addr, 8);
	if (p)
		memcpy(value, p, 8);
	return p;
}
