/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Finds tables of offsets in position-independent code, for sweep.c and for exits.c. A switch has a
 * table of offsets from the table itself. Computed gotos have tables of offsets from a label
 * (glibc's vfprintf):
 *
 *   lea label(%rip),%b; lea table(%rip),%t; movslq (%t,%i,4),%x; add %b,%x; jmp *%x
 *
 * An offset is the difference of two labels of one function, so the jump stays in that function.
 * No window may have a target in its middle, so all targets must be found. The addition may be far
 * from its jump, so it is unknown which label belongs to which table. So each label of a unit (the
 * code of one FDE) is tried with each datum whose address the unit takes. At worst, the targets of
 * a wrong pair make some windows impossible.
 */
#include <Zydis/Zydis.h>
#include <string.h>
#include "module/analysis/exits_priv.h"

#define MAX_LABELS	16
#define MAX_TABLES	64
#define MAX_ENTRIES	4096

/* True if a table of offsets may be at the address, which code takes: no FDE begins there. */
static bool may_be_table(const struct pb_an *an, uint64_t addr)
{
	long i = pb_range_find(an, addr) ? pb_cfi_find(&an->cfi, addr) : -1;

	return addr % 4 == 0 && (i < 0 || an->cfi.fdes.v[i].start != addr);
}

struct pairs {
	uint64_t labels[MAX_LABELS], tables[MAX_TABLES];
	unsigned nr_labels, nr_tables;
	bool full;
};

static void add(struct pairs *p, uint64_t *v, unsigned *n, unsigned max, uint64_t addr)
{
	for (unsigned i = 0; i < *n; i++)
		if (v[i] == addr)
			return;
	if (*n == max)
		p->full = true;
	else
		v[(*n)++] = addr;
}

/* Collects the labels and the data whose addresses the unit takes. */
static void find_pairs(struct pb_an *an, const struct pb_fde *unit, struct pairs *p)
{
	const struct pb_range *r = pb_range_find(an, unit->start);
	ZydisDecoder decoder;
	struct pb_insn i;

	ZydisDecoderInit(&decoder, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
	for (uint64_t at = unit->start; at < unit->end; at += i.length) {
		uint64_t ea;

		if (!pb_insn_decode(&decoder, r->bytes + (at - r->addr), r->size - (at - r->addr),
				    &i)) {
			i.length = 1;
			continue;
		}
		ea = at + i.length + (uint64_t)i.disp;
		if (i.what != PB_INSN_LEA || !pb_insn_rip_relative(&i))
			continue;
		if (ea > unit->start && ea < unit->end)
			add(p, p->labels, &p->nr_labels, MAX_LABELS, ea);
		else if (may_be_table(an, ea))
			add(p, p->tables, &p->nr_tables, MAX_TABLES, ea);
	}
}

/* Sets *target to the target of the table's entry. False if the entry can't be read, or if no
 * instruction begins at the target. */
static bool target_of(struct pb_an *an, uint64_t label, uint64_t entry, uint64_t *target)
{
	const uint8_t *p = pb_elf_at(&an->elf, entry, 4);
	const struct pb_range *r;
	int32_t v;

	if (!p)
		return false;
	memcpy(&v, p, 4);
	*target = label + (uint64_t)(int64_t)v;
	r = pb_range_find(an, *target);
	return r && pb_bit_test(r->starts, *target - r->addr);
}

bool pb_label_table_fits(struct pb_an *an, uint32_t unit, uint64_t label, uint64_t table)
{
	const struct pb_fde *fde = &an->cfi.fdes.v[unit];
	uint64_t target;
	unsigned n = 0;

	/* pb_labels_follow() has marked targets only for pairs that pass these tests */
	if (!table || table % 4 || pb_range_find(an, table) || label <= fde->start ||
	    label >= fde->end)
		return false;
	for (; n < MAX_ENTRIES && !pb_exit_work(an, 8) &&
	       target_of(an, label, table + n * 4, &target); n++)
		if (target - fde->start >= fde->end - fde->start)
			return false;
	return n && n < MAX_ENTRIES;
}

/* Marks all targets of the table as reached. */
static void follow(struct pb_an *an, uint64_t label, uint64_t table)
{
	uint64_t target;

	for (unsigned n = 0; n < MAX_ENTRIES && !pb_exit_work(an, 8) &&
			     target_of(an, label, table + n * 4, &target); n++)
		pb_mark(an, target, false);
}

/* True if code or data contains an address within the unit, after the unit's start. */
static bool takes_label(struct pb_an *an, const struct pb_fde *unit)
{
	const struct pb_range *r = pb_range_find(an, unit->start);

	if (!r || unit->end - r->addr > r->size)
		return false;
	for (uint64_t at = unit->start + 1; at < unit->end; at++)
		if (pb_bit_test(r->called, at - r->addr))
			return true;
	return false;
}

void pb_labels_follow(struct pb_an *an)
{
	long last = -1;

	for (size_t i = 0; i < an->exits.n; i++) {
		const struct pb_fn_exit *e = &an->exits.v[i];
		const struct pb_fde *unit = &an->cfi.fdes.v[e->unit];
		struct pairs p = { .nr_labels = 0 };

		if (e->kind != PB_EXIT_INDIRECT || (long)e->unit == last ||
		    pb_exit_work(an, unit->end - unit->start))
			continue;
		last = e->unit;
		if (!takes_label(an, unit))
			continue;
		find_pairs(an, unit, &p);
		if (p.full)
			an->units[e->unit] |= 1u << PB_INEXIT_LIMIT;
		for (unsigned k = 0; k < p.nr_labels * p.nr_tables; k++)
			follow(an, p.labels[k % p.nr_labels], p.tables[k / p.nr_labels]);
	}
}

/* Marks the targets of the table at `base`, whose offsets from `base` have `size` bytes. The table
 * has at most `room` bytes, and ends at the first offset that doesn't lead into code. */
static void follow_offsets(struct pb_an *an, uint64_t base, uint64_t room, unsigned size)
{
	const uint8_t *p = pb_elf_at(&an->elf, base, room);

	for (uint64_t off = 0; p && off + size <= room; off += size) {
		int64_t wide;
		int32_t v;

		memcpy(&v, p + off, 4);
		wide = v;
		if (size == 8)
			memcpy(&wide, p + off, 8);
		if (!pb_range_find(an, base + (uint64_t)wide))
			break;
		pb_mark(an, base + (uint64_t)wide, false);
	}
}

/*
 * A switch in position-independent code uses a table of offsets with 4 bytes, or with 8 bytes in
 * the large code model. The target is the table's address plus an offset (lea table(%rip),%r;
 * movslq (%r,%i,4),%i; add %r,%i; jmp *%i). Any datum whose address is taken is read as both kinds
 * of table, up to the next datum whose address is taken. If the datum is not a table, at worst a
 * function is refused.
 */
void pb_tables_follow(struct pb_an *an)
{
	pb_vec_sort(&an->tables, pb_addr_compare);
	for (size_t i = 0; i < an->tables.n; i++) {
		uint64_t base = an->tables.v[i], room = pb_elf_room(&an->elf, base);

		if (i + 1 < an->tables.n && an->tables.v[i + 1] - base < room)
			room = an->tables.v[i + 1] - base;
		if (!room || !may_be_table(an, base))
			continue;
		follow_offsets(an, base, room, 4);
		follow_offsets(an, base, room, 8);
	}
}
