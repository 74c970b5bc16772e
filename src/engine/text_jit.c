/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What a debugger needs to know about stubs, by gdb's JIT interface: for each
 * module with stubs one ELF image in memory, with a symbol patchbay_stub_NAME
 * for each stub and its unwind table. gdb reads it when it attaches, or when it is
 * told (base/debugger.h).
 *
 *   struct pb_debugger_entry
 *   ELF header, section headers and their names
 *   .symtab	of absolute addresses
 *   .strtab
 *   .eh_frame	addresses relative to .text, the region of stubs
 *
 * The unwind table follows what displaced instructions do to the stack, as far
 * as their first bytes tell: push and pop; sub, add and lea of a constant to
 * rsp; rsp realigned when rbp is the frame's base. Behind anything else that
 * changes rsp the frame is taken to be where it was. Code dug away for a hole
 * has no entry.
 */
#include <elf.h>
#include <sys/mman.h>
#include "engine/text_priv.h"
#include "arch/x86_64/stub.h"
#include "base/base.h"
#include "base/debugger.h"
#include "base/pages.h"
#include "base/sys.h"

#define STUB_PREFIX	"patchbay_stub_"
#define CIE_SIZE	20
#define FDE_HEAD	17	/* length, CIE, start, size, no augmentation */
#define ROW_MAX		14	/* advance 2, offset 6, saved register 6 */
#define DW_RBX		3
#define DW_RBP		6
#define DW_RSP		7

enum { NONE, TEXT, SYMTAB, STRTAB, EH_FRAME, SHSTRTAB, NR_SECTIONS };

/* All that comes before .symtab. */
struct image {
	struct pb_debugger_entry entry;
	Elf64_Ehdr ehdr;
	Elf64_Shdr sections[NR_SECTIONS];
	char names[48];
};

static const char section_names[] = "\0.text\0.symtab\0.strtab\0.eh_frame\0.shstrtab";
static const uint8_t section_name_at[] = { 0, 1, 7, 15, 23, 33 };

/* ---- unwind table -------------------------------------------------------- */

struct table {
	uint8_t *at, *end;
	uint8_t *cie;
	uint64_t text;		/* addresses count from here */
	uint64_t plain;		/* a run of stubs with one row starts here; 0: none */
};

static void put(struct table *t, const void *bytes, size_t n)
{
	memcpy(t->at, bytes, n);
	t->at += n;
}

static void put_byte(struct table *t, unsigned v)
{
	*t->at++ = (uint8_t)v;
}

static void put_u32(struct table *t, uint64_t v)
{
	uint32_t v32 = (uint32_t)v;

	put(t, &v32, 4);
}

static void put_uleb(struct table *t, uint32_t v)
{
	for (; v >= 0x80; v >>= 7)
		put_byte(t, (v & 0x7f) | 0x80);
	put_byte(t, v);
}

/* The record that began at `start` ends: its length, padded. */
static void close_record(struct table *t, uint8_t *start)
{
	uint32_t len;

	while ((t->at - start) % 4)
		put_byte(t, 0);	/* DW_CFA_nop */
	len = (uint32_t)(t->at - start) - 4;
	memcpy(start, &len, 4);
}

static void put_cie(struct table *t)
{
	static const uint8_t cie[] = {
		0, 0, 0, 0, 0, 0, 0, 0, 1, 'z', 'R', 0,
		1, 0x78, 16,	/* factors 1 and -8, return address is column 16 */
		1, 0x23,	/* addresses: 4 bytes, relative to .text */
		0x0c, DW_RSP, 8, 0x90, 1,	/* CFA = rsp + 8, r16 at CFA - 8 */
	};

	t->cie = t->at;
	put(t, cie, sizeof(cie));
	close_record(t, t->cie);
}

static uint8_t *open_fde(struct table *t, uint64_t start, uint64_t size)
{
	uint8_t *fde = t->at;

	put_u32(t, 0);
	put_u32(t, (uint64_t)(t->at - t->cie));
	put_u32(t, start - t->text);
	put_u32(t, size);
	put_byte(t, 0);
	return fde;
}

static void end_run(struct table *t, uint64_t end)
{
	if (t->plain)
		close_record(t, open_fde(t, t->plain, end - t->plain));
	t->plain = 0;
}

/* What one instruction does to the frame. */
struct effect {
	int32_t bytes;		/* that rsp goes down */
	int8_t saved;		/* register that is pushed (DWARF), or -1 */
	bool to_rbp;		/* rbp := rsp */
	bool realigned;		/* rsp &= a constant */
};

static int32_t imm(const uint8_t *p, bool wide)
{
	int32_t v;

	memcpy(&v, p, 4);
	return wide ? v : (int8_t)*p;
}

static struct effect effect_of(const uint8_t *p)
{
	static const int8_t dwarf[8] = { 0, 2, 1, 3, 7, 6, 4, 5 };
	struct effect e = { .saved = -1 };
	unsigned rex = *p >= 0x40 && *p < 0x50 ? *p++ : 0, op = p[0], reg = op & 7;

	if ((op & 0xf8) == 0x50) {
		e.bytes = 8;
		e.saved = rex & 1 ? (int8_t)(8 + reg) : dwarf[reg];
	} else if (op == 0x6a || op == 0x68 || op == 0x9c || (op == 0xff && (p[1] & 0x38) == 0x30)) {
		e.bytes = 8;
	} else if ((op & 0xf8) == 0x58 || op == 0x9d) {
		e.bytes = -8;
	} else if (rex == 0x48 && (op == 0x83 || op == 0x81)) {
		if (p[1] == 0xec)
			e.bytes = imm(p + 2, op == 0x81);
		else if (p[1] == 0xc4)
			e.bytes = -imm(p + 2, op == 0x81);
		e.realigned = p[1] == 0xe4;
	} else if (rex == 0x48 && op == 0x8d && (p[1] & 0x3f) == 0x24 && p[2] == 0x24) {
		e.bytes = -imm(p + 3, p[1] >> 6 == 2);
	} else if (rex == 0x48 && ((op == 0x89 && p[1] == 0xe5) || (op == 0x8b && p[1] == 0xec))) {
		e.to_rbp = true;
	}
	return e;
}

static bool is_kept(int reg)
{
	return reg == DW_RBX || reg == DW_RBP || reg >= 12;
}

/* From here on, `bytes` have been pushed since the entry. */
struct rows {
	uint32_t at;		/* the last row's place in the copy */
	uint32_t cfa;
	uint32_t rbp_cfa;	/* CFA = rbp + this; 0: not known */
	bool last;		/* rsp says nothing any more */
};

static void new_row(struct table *t, struct rows *r, uint32_t at)
{
	put_byte(t, 0x02);	/* DW_CFA_advance_loc1 */
	put_byte(t, at - r->at);
	r->at = at;
}

static void put_row(struct table *t, struct rows *r, const struct effect *e, uint32_t at)
{
	if (r->last)
		return;
	new_row(t, r, at);
	r->last = e->realigned;
	if (e->realigned && r->rbp_cfa) {
		put_byte(t, 0x0c);	/* DW_CFA_def_cfa */
		put_byte(t, DW_RBP);
		put_uleb(t, r->rbp_cfa);
		return;
	}
	put_byte(t, 0x0e);	/* DW_CFA_def_cfa_offset */
	put_uleb(t, r->cfa);
	if (e->saved >= 0 && is_kept(e->saved)) {
		put_byte(t, 0x80u | (unsigned)e->saved);	/* DW_CFA_offset */
		put_uleb(t, r->cfa / 8);
	}
}

/* A call's return address is pushed in two steps, in the middle of its copy. */
static void put_calls(struct table *t, struct rows *rows, const struct pb_recipe *r)
{
	for (unsigned i = 0; i < r->nr_fixups; i++) {
		const struct pb_fixup *f = &pb_recipe_fixups(r)[i];
		static const struct effect push = { .saved = -1 };

		if (f->kind != PB_FIX_LO32 || PB_STUB_COPY + f->off + 4u <= rows->at)
			continue;
		rows->cfa += 8;
		put_row(t, rows, &push, PB_STUB_COPY + f->off + 4u);
	}
}

static bool has_effect(const struct effect *e)
{
	return e->bytes || e->realigned;
}

static bool is_plain(const struct pb_recipe *r)
{
	for (unsigned i = 0; i < r->nr_pairs; i++) {
		struct effect e = effect_of(pb_recipe_orig(r) + pb_recipe_pairs(r)[i].orig);

		if (pb_recipe_pairs(r)[i].orig < r->window_len && has_effect(&e))
			return false;
	}
	for (unsigned i = 0; i < r->nr_fixups; i++)
		if (pb_recipe_fixups(r)[i].kind == PB_FIX_LO32)
			return false;
	return true;
}

static void put_stub(struct table *t, uint64_t stub, const struct pb_recipe *r, bool dug)
{
	const struct pb_pair *p = pb_recipe_pairs(r);
	struct rows rows = { 0, 8, 0 };
	uint8_t *fde;

	if (is_plain(r) && !dug) {
		t->plain = t->plain ? t->plain : stub;
		return;
	}
	end_run(t, stub);
	fde = open_fde(t, stub, (uint64_t)PB_STUB_COPY + r->len);
	for (unsigned i = 0; i + 1 < r->nr_pairs; i++) {
		struct effect e = effect_of(pb_recipe_orig(r) + p[i].orig);

		rows.cfa += (uint32_t)e.bytes;
		if (e.to_rbp)
			rows.rbp_cfa = rows.cfa;
		if (has_effect(&e))
			put_row(t, &rows, &e, PB_STUB_COPY + p[i + 1].copy);
	}
	put_calls(t, &rows, r);
	close_record(t, fde);
}

/* ---- the image ----------------------------------------------------------- */

struct sizes {
	uint32_t stubs;
	size_t names, table;
};

static struct sizes sizes_of(const struct pb_module *m)
{
	struct sizes s = { 0, 1, CIE_SIZE + 16 };

	for (uint32_t i = 0; i < m->analysis->nr_funcs; i++) {
		const struct pb_func *f = pb_analysis_funcs(m->analysis) + i;
		const struct pb_recipe *r;

		if (!m->sites[i].stub)
			continue;
		r = pb_func_recipe(m->analysis, f);
		s.stubs++;
		s.names += sizeof(STUB_PREFIX) + strlen(pb_func_name(m->analysis, f));
		/* a run may end before each of them */
		s.table += 2 * (FDE_HEAD + 4) + ROW_MAX * ((size_t)r->nr_pairs + r->nr_fixups);
	}
	return s;
}

static void put_section(struct image *im, unsigned i, uint32_t type, const void *start, size_t size)
{
	im->sections[i] = (Elf64_Shdr){
		.sh_name = section_name_at[i], .sh_type = type, .sh_size = size, .sh_addralign = 1,
		.sh_offset = (uint64_t)start - (uint64_t)&im->ehdr,
	};
}

static void put_headers(struct image *im, const struct pb_module *m)
{
	memcpy(im->names, section_names, sizeof(section_names));
	im->ehdr = (Elf64_Ehdr){
		.e_ident = { ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64, ELFDATA2LSB, EV_CURRENT },
		.e_type = ET_EXEC, .e_machine = EM_X86_64, .e_version = EV_CURRENT,
		.e_shoff = offsetof(struct image, sections) - offsetof(struct image, ehdr),
		.e_ehsize = sizeof(Elf64_Ehdr), .e_shentsize = sizeof(Elf64_Shdr),
		.e_shnum = NR_SECTIONS, .e_shstrndx = SHSTRTAB,
	};
	put_section(im, TEXT, SHT_NOBITS, &im->ehdr, m->stubs_used);
	im->sections[TEXT].sh_flags = SHF_ALLOC | SHF_EXECINSTR;
	im->sections[TEXT].sh_addr = (uint64_t)m->stubs;
	put_section(im, SHSTRTAB, SHT_STRTAB, im->names, sizeof(im->names));
}

/* Symbols, in the order of the functions. */
static char *put_symbols(struct image *im, const struct pb_module *m, const struct sizes *s)
{
	Elf64_Sym *sym = (Elf64_Sym *)(im + 1), *first = sym++;
	char *names = (char *)(first + s->stubs + 1);
	size_t at = 1;

	for (uint32_t i = 0; i < m->analysis->nr_funcs; i++) {
		const struct pb_func *f = pb_analysis_funcs(m->analysis) + i;

		if (!m->sites[i].stub)
			continue;
		struct pb_place p = pb_func_place(m->analysis, f);
		size_t size = pb_stub_size(&p);

		*sym++ = (Elf64_Sym){
			.st_name = (uint32_t)at, .st_info = ELF64_ST_INFO(STB_LOCAL, STT_FUNC),
			.st_shndx = TEXT, .st_value = (uint64_t)m->stubs + m->sites[i].stub,
			.st_size = size,
		};
		pb_put_str(names, s->names, &at, STUB_PREFIX);
		pb_put_str(names, s->names, &at, pb_func_name(m->analysis, f));
		at++;
	}
	put_section(im, SYMTAB, SHT_SYMTAB, first, (size_t)((char *)sym - (char *)first));
	im->sections[SYMTAB].sh_link = STRTAB;
	im->sections[SYMTAB].sh_info = s->stubs + 1;
	im->sections[SYMTAB].sh_entsize = sizeof(Elf64_Sym);
	put_section(im, STRTAB, SHT_STRTAB, names, at);
	return names + at;
}

/* In the order of the stubs: runs of plain ones share an entry. */
static uint8_t *put_table(struct image *im, const struct pb_module *m, uint8_t *start)
{
	struct table t = { .at = start, .text = (uint64_t)m->stubs };
	const uint8_t *at = m->stubs + 16, *end = m->stubs + m->stubs_used;

	put_cie(&t);
	while (at < end) {
		const struct pb_site *s = pb_stub_site(at);
		struct pb_place p;

		if (s < m->sites || s >= m->sites + m->analysis->nr_funcs || !pb_stub_is(at, s)) {
			at += 16;
			continue;
		}
		p = pb_func_place(m->analysis, pb_site_func(m, s));
		put_stub(&t, (uint64_t)at, p.recipe, p.second);
		at += pb_stub_size(&p);
	}
	end_run(&t, (uint64_t)end);
	put_u32(&t, 0);
	put_section(im, EH_FRAME, SHT_PROGBITS, start, (size_t)(t.at - start));
	return t.at;
}

void pb_jit_withdraw(struct pb_module *m)
{
	struct pb_debugger_entry *e = m->jit;

	if (!e)
		return;
	m->jit = NULL;
	pb_debugger_remove(e);
	pb_pages_unmap((uint64_t)e, m->jit_size);
}

void pb_jit_announce(struct pb_module *m)
{
	struct sizes s = sizes_of(m);
	size_t size = sizeof(struct image) + (s.stubs + 1) * sizeof(Elf64_Sym) + s.names + s.table;
	struct image *im;
	long p;

	pb_jit_withdraw(m);
	p = pb_pages_map(0, size, PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (pb_sys_failed(p))
		return;	/* a debugger sees less */
	pb_pages_dump((uint64_t)p, size);
	im = (struct image *)p;
	put_headers(im, m);
	im->entry.symfile = (const char *)&im->ehdr;
	im->entry.size = (uint64_t)put_table(im, m, (uint8_t *)put_symbols(im, m, &s)) -
				 (uint64_t)&im->ehdr;
	m->jit = &im->entry;
	m->jit_size = size;
	m->jit_stubs = m->stubs_used;
	pb_debugger_add(&im->entry);
}
