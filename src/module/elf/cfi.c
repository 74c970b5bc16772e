/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Reads FDEs (cfi.h) and executes their instructions row by row. This file keeps only the part of a
 * row that the analysis needs: the CFA, and whether the return address is at its usual place.
 * cfi_rules.c keeps whole rows.
 */
#include "base/base.h"
#include "module/elf/cfi.h"
#include <string.h>
#include "module/elf/cfi_ops.h"
#include "module/elf/dwarf_bytes.h"

#define RA_OFFSET	(-8)	/* the usual offset of the return address from the CFA */
/* Limit on a CIE's instructions. They are executed for every FDE, so too many instructions in a
 * hostile file would take too much time. Real CIEs have about ten bytes of instructions. */
#define MAX_INITIAL	256	/* bytes */

static bool parse_cie(struct bytes b, uint64_t off, struct pb_cie *cie)
{
	uint8_t version = (uint8_t)fixed(&b, 1);
	const char *aug = (const char *)b.p;
	const uint8_t *nul = memchr(b.p, 0, (size_t)(b.end - b.p));

	if (!nul || (version != 1 && version != 3 && version != 4))
		return false;
	b.p = nul + 1;
	memset(cie, 0, sizeof(*cie));
	cie->off = off;
	if (version == 4)
		fixed(&b, 2);	/* skips the sizes of an address and of a segment selector */
	cie->code_align = uleb(&b);
	cie->data_align = sleb(&b);
	cie->ra_reg = (uint8_t)(version == 1 ? fixed(&b, 1) : uleb(&b));
	cie->encoding = PE_ABSPTR;
	cie->lsda_encoding = PE_OMIT;
	if (*aug == 'z') {
		uint64_t len = uleb(&b);

		if (len > (uint64_t)(b.end - b.p))
			return false;
		cie->insns = b.p + len;
		cie->has_augmentation = true;
		while (*++aug) {
			if (*aug == 'R')
				cie->encoding = (uint8_t)fixed(&b, 1);
			else if (*aug == 'S')
				cie->signal = true;
			else if (*aug == 'L')
				cie->lsda_encoding = (uint8_t)fixed(&b, 1);
			else if (*aug == 'P')
				skip_encoded(&b, (uint8_t)fixed(&b, 1));
			else if (*aug != 'B')
				break;
		}
	} else if (*aug) {
		return false;
	} else {
		cie->insns = b.p;
	}
	cie->insns_end = b.end;
	return !b.dry && cie->insns_end - cie->insns <= MAX_INITIAL;
}

static const struct pb_cie *find_cie(const struct pb_cfi *c, uint64_t off)
{
	size_t low = pb_bisect(i, 0, c->cies.n, c->cies.v[i].off < off);

	return low < c->cies.n && c->cies.v[low].off == off ? &c->cies.v[low] : NULL;
}

static void parse_fde(struct pb_cfi *c, struct bytes b, const struct pb_cie *cie, uint64_t vaddr)
{
	const uint8_t *from = b.p;
	struct pb_fde f = { .cie = (uint32_t)(cie - c->cies.v), .signal = cie->signal };
	struct pb_cfi_cursor cur;

	f.start = encoded(&b, cie->encoding, vaddr);
	f.end = f.start + encoded(&b, cie->encoding & 0x0f, vaddr + (uint64_t)(b.p - from));
	if (cie->has_augmentation) {
		uint64_t len = uleb(&b);

		if (len > (uint64_t)(b.end - b.p))
			return;
		if (cie->lsda_encoding != PE_OMIT) {
			struct bytes l = { b.p, b.p + len, false };

			f.lsda = encoded(&l, cie->lsda_encoding, vaddr + (uint64_t)(b.p - from));
			f.lsda = l.dry ? 0 : f.lsda;
		}
		b.p += len;
	}
	/* if the linker discarded a section, its FDE keeps the address 0 */
	if (b.dry || !f.start || f.end <= f.start || f.end >= 1ull << 48)
		return;
	f.insns = b.p;
	f.insns_end = b.end;
	pb_cfi_start(&cur, c, &f);
	pb_cfi_advance(&cur, f.start);
	f.entry = cur.row.cfa_reg == PB_REG_RSP && cur.row.cfa_off == 8;
	f.ra_undefined = cur.row.ra_undefined;
	pb_vec_push(&c->fdes, f);
}

static int by_start(const void *a, const void *b)
{
	const struct pb_fde *x = a, *y = b;

	if (x->start != y->start)
		return x->start < y->start ? -1 : 1;
	return x->end < y->end ? -1 : x->end > y->end;
}

static const uint8_t *find_eh_frame(struct pb_elf *e, uint64_t *vaddr, uint64_t *size)
{
	const Elf64_Shdr *sh = pb_elf_section(e, ".eh_frame");

	if (sh) {
		*vaddr = sh->sh_addr;
		*size = sh->sh_size;
		return pb_elf_section_bytes(e, sh);
	}
	for (unsigned i = 0; i < e->nr_ph; i++) {
		const Elf64_Phdr *p = &e->ph[i];
		struct bytes b;

		if (p->p_type != PT_GNU_EH_FRAME ||
		    !(b.p = pb_elf_bytes(e, p->p_offset, p->p_filesz)))
			continue;
		b.end = b.p + p->p_filesz;
		b.dry = false;
		fixed(&b, 1);
		uint8_t encoding = (uint8_t)fixed(&b, 3);

		*vaddr = encoded(&b, encoding, p->p_vaddr + 4);
		*size = pb_elf_room(e, *vaddr);
		return b.dry ? NULL : pb_elf_at(e, *vaddr, *size);
	}
	return NULL;
}

bool pb_cfi_read(struct pb_cfi *c, struct pb_elf *e)
{
	uint64_t vaddr = 0, size = 0;
	const uint8_t *start = find_eh_frame(e, &vaddr, &size);
	struct bytes b = { start, start ? start + size : start, false };

	memset(c, 0, sizeof(*c));
	while (b.end - b.p >= 8) {
		uint64_t off = (uint64_t)(b.p - start);
		uint64_t len = fixed(&b, 4);

		if (len == 0xffffffff)
			len = fixed(&b, 8);
		if (len < 4 || len > (uint64_t)(b.end - b.p))
			break;
		uint64_t id_off = (uint64_t)(b.p - start);
		struct bytes record = { b.p, b.p + len, false };
		uint64_t id = fixed(&record, 4);
		struct pb_cie cie;
		const struct pb_cie *found;

		b.p += len;
		if (!id) {
			if (parse_cie(record, off, &cie))
				pb_vec_push(&c->cies, cie);
		} else if (id <= id_off && (found = find_cie(c, id_off - id))) {
			parse_fde(c, record, found, vaddr + (uint64_t)(record.p - start));
		}
	}
	pb_vec_sort(&c->fdes, by_start);
	return !c->cies.failed && !c->fdes.failed;
}

void pb_cfi_free(struct pb_cfi *c)
{
	pb_vec_free(&c->cies);
	pb_vec_free(&c->fdes);
}

long pb_cfi_find(const struct pb_cfi *c, uint64_t addr)
{
	size_t low = pb_bisect(i, 0, c->fdes.n, c->fdes.v[i].start <= addr);

	return low && addr < c->fdes.v[low - 1].end ? (long)low - 1 : -1;
}

/* DWARF's numbers of the first eight registers differ from the numbers in instructions. */
static uint8_t x86_reg(uint64_t dwarf)
{
	static const uint8_t map[8] = { 0, 2, 1, 3, 6, 7, 5, 4 };

	return dwarf < 8 ? map[dwarf] : dwarf < 16 ? (uint8_t)dwarf : PB_REG_NONE;
}

static void set_cfa(struct pb_cfi_row *row, uint8_t reg, int64_t off)
{
	row->cfa_reg = off == (int32_t)off ? reg : PB_REG_NONE;
	row->cfa_off = (int32_t)off;
}

static void skip_block(struct bytes *b)
{
	uint64_t len = uleb(b);

	if (len > (uint64_t)(b->end - b->p)) {
		b->dry = true;
		b->p = b->end;
	} else {
		b->p += len;
	}
}

/* Returns the offset that the operand n encodes: n times the CIE's data_align. */
static int64_t factored_by(const struct pb_cfi_cursor *cur, int64_t n)
{
	return (int64_t)((uint64_t)n * (uint64_t)cur->cie->data_align);
}

/* Notes that the return address is saved at CFA + factored * data_align. */
static void ra_at(struct pb_cfi_cursor *cur, int64_t factored)
{
	cur->row.ra_undefined = false;
	cur->row.ra_moved = factored_by(cur, factored) != RA_OFFSET;
}

static void restore(struct pb_cfi_cursor *cur, uint64_t reg)
{
	if (reg != cur->cie->ra_reg)
		return;
	cur->row.ra_undefined = cur->initial.ra_undefined;
	cur->row.ra_moved = cur->initial.ra_moved;
}

/* Executes a rule for a register. Only rules for the return address are kept. */
static void rule(struct pb_cfi_cursor *cur, struct bytes *b, uint8_t op)
{
	uint64_t reg = uleb(b);
	bool ra = reg == cur->cie->ra_reg;
	int64_t at = 0;

	switch (op) {
	case CFA_offset_extended: case CFA_register: case CFA_val_offset:
	case CFA_GNU_negative_offset_extended:
		at = (int64_t)uleb(b);
		break;
	case CFA_offset_extended_sf: case CFA_val_offset_sf:
		at = sleb(b);
		break;
	case CFA_expression: case CFA_val_expression:
		skip_block(b);
		break;
	}
	if (!ra)
		return;
	cur->row.ra_undefined = op == CFA_undefined;
	cur->row.ra_moved = op != CFA_undefined;
	if (op == CFA_offset_extended || op == CFA_offset_extended_sf)
		ra_at(cur, at);
	else if (op == CFA_restore_extended)
		restore(cur, reg);
}

static void advance_loc(struct pb_cfi_cursor *cur, uint64_t delta)
{
	cur->loc += delta * cur->cie->code_align;
}

/* The rest of the instructions can't be interpreted. */
static void lose(struct pb_cfi_cursor *cur, struct bytes *b)
{
	cur->row.cfa_reg = PB_REG_NONE;
	b->p = b->end;
}

/* Executes a rule for the CFA. False: op is not such a rule. */
static bool frame(struct pb_cfi_cursor *cur, struct bytes *b, uint8_t op)
{
	struct pb_cfi_row *row = &cur->row;
	uint8_t reg;

	switch (op) {
	case CFA_def_cfa:
		reg = x86_reg(uleb(b));
		set_cfa(row, reg, (int64_t)uleb(b));
		break;
	case CFA_def_cfa_sf:
		reg = x86_reg(uleb(b));
		set_cfa(row, reg, factored_by(cur, sleb(b)));
		break;
	case CFA_def_cfa_register:
		reg = x86_reg(uleb(b));
		if (row->cfa_reg == PB_REG_NONE)	/* no offset is known */
			lose(cur, b);
		else
			row->cfa_reg = reg;
		break;
	case CFA_def_cfa_offset:
		set_cfa(row, row->cfa_reg, (int64_t)uleb(b));
		break;
	case CFA_def_cfa_offset_sf:
		set_cfa(row, row->cfa_reg, factored_by(cur, sleb(b)));
		break;
	case CFA_def_cfa_expression:
		row->cfa_reg = PB_REG_NONE;
		skip_block(b);
		break;
	default:
		return false;
	}
	return true;
}

static void execute_extended(struct pb_cfi_cursor *cur, struct bytes *b, uint8_t op)
{
	if (frame(cur, b, op))
		return;
	switch (op) {
	case CFA_nop:
		break;
	case CFA_advance_loc1:
		advance_loc(cur, fixed(b, 1));
		break;
	case CFA_advance_loc2:
		advance_loc(cur, fixed(b, 2));
		break;
	case CFA_advance_loc4:
		advance_loc(cur, fixed(b, 4));
		break;
	case CFA_remember_state:
		if (cur->depth < PB_CFI_STACK)
			cur->stack[cur->depth] = cur->row;
		cur->depth++;
		break;
	case CFA_restore_state:
		if (cur->depth && --cur->depth < PB_CFI_STACK)
			cur->row = cur->stack[cur->depth];
		else		/* the state was never saved, or there was no room for it */
			lose(cur, b);
		break;
	case CFA_GNU_args_size:
		uleb(b);
		break;
	case CFA_offset_extended: case CFA_restore_extended: case CFA_undefined:
	case CFA_same_value: case CFA_register: case CFA_expression:
	case CFA_offset_extended_sf: case CFA_val_offset: case CFA_val_offset_sf:
	case CFA_val_expression: case CFA_GNU_negative_offset_extended:
		rule(cur, b, op);
		break;
	default:
		lose(cur, b);	/* op is set_loc (no known compiler writes it) or unknown */
	}
}

static void execute(struct pb_cfi_cursor *cur, uint64_t addr)
{
	struct bytes b = { cur->p, cur->end, false };

	while (b.p < b.end && cur->loc <= addr) {
		uint8_t op = *b.p++;
		uint64_t offset;

		switch (op & 0xc0) {
		case CFA_advance_loc:
			advance_loc(cur, op & 0x3f);
			break;
		case CFA_offset:
			offset = uleb(&b);
			if ((op & 0x3f) == cur->cie->ra_reg)
				ra_at(cur, (int64_t)offset);
			break;
		case CFA_restore:
			restore(cur, op & 0x3f);
			break;
		default:
			execute_extended(cur, &b, op);
		}
		if (b.dry)
			lose(cur, &b);
	}
	cur->p = b.p;
	if (b.p >= b.end && cur->loc <= addr)
		cur->loc = UINT64_MAX;
}

void pb_cfi_start(struct pb_cfi_cursor *cur, const struct pb_cfi *c, const struct pb_fde *f)
{
	const struct pb_cie *cie = &c->cies.v[f->cie];

	memset(cur, 0, sizeof(*cur));
	cur->cie = cie;
	cur->row.cfa_reg = PB_REG_NONE;
	cur->p = cie->insns;
	cur->end = cie->insns_end;
	cur->loc = 0;
	execute(cur, UINT64_MAX - 1);
	cur->initial = cur->row;
	cur->depth = 0;
	cur->p = f->insns;
	cur->end = f->insns_end;
	cur->loc = f->start;
}

void pb_cfi_advance(struct pb_cfi_cursor *cur, uint64_t addr)
{
	if (addr >= cur->loc)
		execute(cur, addr);
}
