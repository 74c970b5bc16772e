/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Classifies jumps through registers and memory, for exits.c. A jump stays in its function (a
 * switch's table, a computed goto), leaves the function (a tail call), or can't be classified.
 *
 * The instructions that compute the target determine the class. To find them, the search goes back
 * from the jump to the instruction that defines the jump's register. From this instruction it goes
 * back to the instructions that define the operands. Each search ends after MAX_BACK instructions.
 * These are the instructions to find, and their meanings:
 *
 *   movslq (%b,%i,4),%x; add %b,%x; jmp *%x     a table of offsets from the table's address
 *   lea table(%rip),%b; mov (%i4,%b),%eax; cltq; lea table(%rip),%c; add %c,%rax; jmp *%rax
 *                                               the same in unoptimised code
 *   lea label(%rip),%b; movslq (%t,%i,4),%x; add %b,%x; jmp *%x
 *                                               a table of offsets from a label
 *   jmp *table(,%i,8), mov (%b,%i,8),%x         a table of pointers
 *   mov (...),%x, or no definition is found     a pointer from elsewhere
 *   any other sum                               unknown
 */
#include <Zydis/Zydis.h>
#include <string.h>
#include "module/analysis/exits_priv.h"

#define MAX_BACK	24	/* limit on the instructions that a search goes back */

struct decoded {
	ZydisDecodedInstruction insn;
	ZydisDecodedOperand op[ZYDIS_MAX_OPERAND_COUNT];
};

/* The search backwards from one jump, within the straight-line code that leads to the jump. */
struct slice {
	const struct pb_an *an;
	const struct pb_range *r;
	uint64_t floor;
	struct pb_computed *out;
	unsigned steps;
};

static bool decode_full(const struct pb_range *r, uint64_t addr, struct decoded *d)
{
	ZydisDecoder decoder;
	uint64_t off = addr - r->addr;

	ZydisDecoderInit(&decoder, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
	return ZYAN_SUCCESS(ZydisDecoderDecodeFull(&decoder, r->bytes + off, r->size - off,
						   &d->insn, d->op));
}

uint64_t pb_start_before(const struct pb_range *r, uint64_t addr, uint64_t floor)
{
	uint64_t off = addr - r->addr, low = floor - r->addr;

	while (off > low)
		if (pb_bit_test(r->starts, --off))
			return r->addr + off;
	return 0;
}

static ZydisRegister whole(ZydisRegister reg)
{
	return ZydisRegisterGetLargestEnclosing(ZYDIS_MACHINE_MODE_LONG_64, reg);
}

static bool writes(const struct decoded *d, ZydisRegister reg)
{
	for (unsigned i = 0; i < d->insn.operand_count; i++)
		if (d->op[i].type == ZYDIS_OPERAND_TYPE_REGISTER &&
		    d->op[i].actions & ZYDIS_OPERAND_ACTION_MASK_WRITE &&
		    whole(d->op[i].reg.value) == reg)
			return true;
	return false;
}

/* Returns the address of the last instruction before addr that sets the register, or 0. */
static uint64_t definition(struct slice *s, uint64_t addr, ZydisRegister reg, struct decoded *d)
{
	while (s->steps++ < MAX_BACK && (addr = pb_start_before(s->r, addr, s->floor)) != 0) {
		if (!decode_full(s->r, addr, d) || d->insn.mnemonic == ZYDIS_MNEMONIC_CALL)
			return 0;
		if (writes(d, reg))
			return addr;
	}
	return 0;
}

/* Returns the address of the instruction before addr that sets x to a 4-byte word of an array, or
 * 0. */
static uint64_t offset_from(struct slice *s, uint64_t addr, ZydisRegister x, struct decoded *d)
{
	struct slice t = *s;

	t.steps = 0;
	addr = definition(&t, addr, x, d);
	return addr && d->insn.mnemonic == ZYDIS_MNEMONIC_MOVSXD &&
	       d->op[1].type == ZYDIS_OPERAND_TYPE_MEMORY &&
	       d->op[1].mem.index != ZYDIS_REGISTER_NONE && d->op[1].mem.scale == 4 &&
	       !d->op[1].mem.disp.value ? addr : 0;
}

/* Whether register x, before addr, holds an offset that was read from the table at `base`. */
static bool is_offset(struct slice *s, uint64_t addr, ZydisRegister x, ZydisRegister base)
{
	struct slice t = *s;
	struct decoded d, later;
	uint64_t at = offset_from(s, addr, x, &d);

	t.steps = 0;
	return at && d.op[1].mem.base == base && definition(&t, addr, base, &later) <= at;
}

/* Returns the address that a RIP-relative lea before addr puts into the register, or 0. */
static uint64_t address_in(struct slice *s, uint64_t addr, ZydisRegister reg)
{
	struct slice t = *s;
	struct decoded d;

	t.steps = 0;
	addr = definition(&t, addr, reg, &d);
	if (!addr || d.insn.mnemonic != ZYDIS_MNEMONIC_LEA ||
	    d.op[1].mem.base != ZYDIS_REGISTER_RIP)
		return 0;
	return addr + d.insn.length + (uint64_t)d.op[1].mem.disp.value;
}

/* Whether register x, before addr, holds an offset that was read from a table, and register `base`
 * holds a label's address. */
static bool is_label_sum(struct slice *s, uint64_t addr, ZydisRegister x, ZydisRegister base)
{
	uint64_t label = address_in(s, addr, base), at;
	struct decoded d;

	at = label && pb_range_find(s->an, label) ? offset_from(s, addr, x, &d) : 0;
	if (!at)
		return false;
	s->out->how = PB_COMPUTED_LABELS;
	s->out->label = label;
	s->out->table = address_in(s, at, whole(d.op[1].mem.base));
	return true;
}

/* Like is_offset(), but for unoptimised code. `base` has the table's address, and another register
 * has the index times 4. The sum of the two is the address from which x was loaded. Then x was
 * sign-extended. */
static bool is_plain_offset(struct slice *s, uint64_t addr, ZydisRegister x, ZydisRegister base)
{
	uint64_t table = address_in(s, addr, base), at;
	const ZydisDecodedOperandMem *m;
	struct slice t = *s;
	struct decoded d;

	t.steps = 0;
	at = table ? definition(&t, addr, x, &d) : 0;
	if (!at || d.insn.mnemonic != ZYDIS_MNEMONIC_CDQE)
		return false;
	at = definition(&t, at, x, &d);
	m = &d.op[1].mem;
	if (!at || d.insn.mnemonic != ZYDIS_MNEMONIC_MOV || d.op[0].size != 32 ||
	    d.op[1].type != ZYDIS_OPERAND_TYPE_MEMORY || m->index == ZYDIS_REGISTER_NONE ||
	    m->scale != 1 || m->disp.value)
		return false;
	return address_in(s, at, whole(m->base)) == table ||
	       address_in(s, at, whole(m->index)) == table;
}

/* Whether the target is the sum of a base and an offset that was read from a table. If so, sets
 * *s->out. */
static bool is_sum(struct slice *s, uint64_t addr, ZydisRegister a, ZydisRegister b)
{
	a = whole(a);
	b = whole(b);
	if (!is_offset(s, addr, a, b) && !is_offset(s, addr, b, a) &&
	    !is_plain_offset(s, addr, a, b))
		return is_label_sum(s, addr, a, b) || is_label_sum(s, addr, b, a);
	s->out->how = PB_COMPUTED_OFFSETS;
	s->out->table = address_in(s, addr, is_offset(s, addr, b, a) ? a : b);
	return true;
}

/* Classifies a jump whose target is read from this memory operand. */
static void of_memory(struct slice *s, const ZydisDecodedOperandMem *m)
{
	if (m->base == ZYDIS_REGISTER_RIP) {
		s->out->how = PB_COMPUTED_SLOT;
	} else if (m->index != ZYDIS_REGISTER_NONE && m->scale == 8) {
		s->out->how = PB_COMPUTED_POINTERS;
		s->out->table = m->base == ZYDIS_REGISTER_NONE ? (uint64_t)m->disp.value : 0;
	} else {
		s->out->how = PB_COMPUTED_POINTER;
	}
}

/* Classifies a jump whose target is in the register before addr. */
static void of_register(struct slice *s, uint64_t addr, ZydisRegister reg)
{
	struct decoded d;

	s->out->how = PB_COMPUTED_POINTER;
	addr = definition(s, addr, whole(reg), &d);
	if (!addr)
		return;
	switch (d.insn.mnemonic) {
	case ZYDIS_MNEMONIC_MOV:
		if (d.op[1].type == ZYDIS_OPERAND_TYPE_MEMORY)
			of_memory(s, &d.op[1].mem);
		else if (d.op[1].type == ZYDIS_OPERAND_TYPE_REGISTER)
			of_register(s, addr, d.op[1].reg.value);
		break;
	case ZYDIS_MNEMONIC_XOR:
		/* a pointer that libc mangled (PTR_MANGLE) */
		if (d.op[1].type != ZYDIS_OPERAND_TYPE_MEMORY ||
		    d.op[1].mem.segment != ZYDIS_REGISTER_FS)
			s->out->how = PB_COMPUTED_UNKNOWN;
		break;
	case ZYDIS_MNEMONIC_POP: case ZYDIS_MNEMONIC_CMOVB: case ZYDIS_MNEMONIC_CMOVBE:
	case ZYDIS_MNEMONIC_CMOVL: case ZYDIS_MNEMONIC_CMOVLE: case ZYDIS_MNEMONIC_CMOVNB:
	case ZYDIS_MNEMONIC_CMOVNBE: case ZYDIS_MNEMONIC_CMOVNL: case ZYDIS_MNEMONIC_CMOVNLE:
	case ZYDIS_MNEMONIC_CMOVNS: case ZYDIS_MNEMONIC_CMOVNZ: case ZYDIS_MNEMONIC_CMOVS:
	case ZYDIS_MNEMONIC_CMOVZ:
		break;
	case ZYDIS_MNEMONIC_ADD:
		if (d.op[1].type != ZYDIS_OPERAND_TYPE_REGISTER ||
		    !is_sum(s, addr, d.op[0].reg.value, d.op[1].reg.value))
			s->out->how = PB_COMPUTED_UNKNOWN;
		break;
	case ZYDIS_MNEMONIC_LEA:
		/* the address of a label or of a function counts as a pointer */
		if (d.op[1].mem.base == ZYDIS_REGISTER_RIP)
			break;
		if (d.op[1].mem.scale > 1 || d.op[1].mem.disp.value ||
		    !is_sum(s, addr, d.op[1].mem.base, d.op[1].mem.index))
			s->out->how = PB_COMPUTED_UNKNOWN;
		break;
	default:
		s->out->how = PB_COMPUTED_UNKNOWN;
	}
}

void pb_computed_jump(const struct pb_an *an, const struct pb_fn_exit *e, struct pb_computed *out)
{
	struct slice s = { .an = an, .r = pb_range_find(an, e->addr), .floor = e->run, .out = out };
	struct decoded d;

	memset(out, 0, sizeof(*out));
	if (!decode_full(s.r, e->addr, &d) || d.insn.meta.branch_type == ZYDIS_BRANCH_TYPE_FAR)
		return;
	out->on_stack = d.op[0].type == ZYDIS_OPERAND_TYPE_MEMORY &&
			d.op[0].mem.base == ZYDIS_REGISTER_RSP;
	if (d.op[0].type == ZYDIS_OPERAND_TYPE_MEMORY)
		of_memory(&s, &d.op[0].mem);
	else if (d.op[0].type == ZYDIS_OPERAND_TYPE_REGISTER)
		of_register(&s, e->addr, d.op[0].reg.value);
}

bool pb_writes_slot(const struct pb_an *an, uint64_t addr)
{
	const struct pb_range *r = pb_range_find(an, addr);
	struct decoded d;

	if (!decode_full(r, addr, &d) || d.insn.mnemonic == ZYDIS_MNEMONIC_LEA ||
	    d.insn.mnemonic == ZYDIS_MNEMONIC_POP)
		return true;
	for (unsigned i = 0; i < d.insn.operand_count_visible; i++)
		if (d.op[i].type == ZYDIS_OPERAND_TYPE_MEMORY &&
		    d.op[i].actions & ZYDIS_OPERAND_ACTION_MASK_WRITE)
			return true;
	return false;
}

/* Whether the data at ea is a table of offsets from ea to code, and one of these offsets leads into
 * the code that the FDE `unit` covers. */
static bool is_table(struct pb_an *an, uint64_t ea, const struct pb_fde *unit)
{
	for (unsigned i = 0; i < 64; i++) {
		const uint8_t *p = pb_elf_at(&an->elf, ea + i * 4, 4);
		int32_t v;

		if (!p)
			return false;
		memcpy(&v, p, 4);
		if (!pb_range_find(an, ea + (uint64_t)(int64_t)v))
			return false;
		if (ea + (uint64_t)(int64_t)v - unit->start < unit->end - unit->start)
			return true;
	}
	return false;
}

bool pb_unit_has_table(struct pb_an *an, uint32_t unit)
{
	const struct pb_fde *fde = &an->cfi.fdes.v[unit];
	const struct pb_range *r = pb_range_find(an, fde->start);
	ZydisDecoder decoder;
	struct pb_insn i;
	bool any = false;

	ZydisDecoderInit(&decoder, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
	if (pb_exit_work(an, fde->end - fde->start))
		return false;
	for (uint64_t at = fde->start; at < fde->end && !any; at += i.length) {
		uint64_t ea;

		if (!pb_insn_decode(&decoder, r->bytes + (at - r->addr), r->size - (at - r->addr),
				    &i)) {
			i.length = 1;
			continue;
		}
		ea = at + i.length + (uint64_t)i.disp;
		any = i.what == PB_INSN_LEA && pb_insn_rip_relative(&i) && ea % 4 == 0 &&
		      !pb_range_find(an, ea) && is_table(an, ea, fde);
	}
	return any;
}

bool pb_unit_has_labels(struct pb_an *an, uint32_t unit)
{
	const struct pb_fde *fde = &an->cfi.fdes.v[unit];
	const struct pb_range *r = pb_range_find(an, fde->start);
	bool fixed = an->elf.eh->e_type == ET_EXEC;

	if (pb_exit_work(an, fde->end - fde->start))
		return true;

	/* In a program at a fixed address, a number in the data may look like an address by chance.
	 * Such a number counts only if an instruction begins at that address. */
	for (uint64_t at = fde->start + 1; at < fde->end; at++)
		if ((pb_bit_test(r->called, at - r->addr) ||
		     (fixed && pb_bit_test(r->otherwise, at - r->addr) &&
		      pb_bit_test(r->starts, at - r->addr))) && !pb_fn_at(an, at))
			return true;
	return false;
}

/* True if a jump leads from one unit to code of the other one that begins at the address. */
static bool jumps_into(struct pb_an *an, long from, long to, uint64_t addr)
{
	const struct pb_fde *t = &an->cfi.fdes.v[to];

	for (size_t i = pb_cross_jump_lower(an, addr);
	     i < an->cross_jumps.n && an->cross_jumps.v[i].to < t->end && !pb_exit_work(an, 8); i++)
		if (pb_cfi_find(&an->cfi, an->cross_jumps.v[i].from) == from)
			return true;
	return false;
}

/* True if the unit `part` isn't a function, and a jump leads from it into the unit, or from the
 * unit into it: it is a part of the unit's function (foo.cold). A jump to the unit's first
 * instruction may be a tail call. */
static bool is_part(struct pb_an *an, long part, long unit)
{
	uint64_t start = an->cfi.fdes.v[part].start;
	const struct pb_fn *f = pb_fn_at(an, start);
	const struct pb_range *r = pb_range_find(an, start);

	if (!r || (f && (!(f->flags & PB_FUNC_UNNAMED) || pb_bit_test(r->called, start - r->addr))))
		return false;
	return jumps_into(an, unit, part, start) ||
	       jumps_into(an, part, unit, an->cfi.fdes.v[unit].start + 1);
}

/* Reads the element at the address `at` of a jump's array. False if it isn't in the file. */
static bool read_element(struct pb_an *an, const struct pb_computed *c, uint64_t at,
			 uint64_t *target)
{
	const uint8_t *p;
	int32_t v;

	if (c->how != PB_COMPUTED_OFFSETS)
		return pb_word_at(an, at, target);
	p = pb_elf_at(&an->elf, at, 4);
	if (!p)
		return false;
	memcpy(&v, p, 4);
	*target = c->table + (uint64_t)(int64_t)v;
	return true;
}

enum pb_pointer pb_target_is(struct pb_an *an, const struct pb_fn_exit *e,
			     const struct pb_computed *c, uint64_t at, uint64_t *target)
{
	bool offset = c->how == PB_COMPUTED_OFFSETS, part;
	const struct pb_range *r;
	const struct pb_fde *fde;
	long to;

	if (!read_element(an, c, at, target) || !(r = pb_range_find(an, *target)))
		return PB_POINTER_NONE;
	to = pb_cfi_find(&an->cfi, *target);
	if (to < 0 || r->stubs)
		return pb_exit_work(an, 8) ? PB_POINTER_LIMIT : PB_POINTER_FUNCTION;
	part = to != (long)e->unit && is_part(an, to, e->unit);
	/* if the search took too long, its result is wrong */
	if (pb_exit_work(an, 8))
		return PB_POINTER_LIMIT;
	if (part)
		return PB_POINTER_PART;
	/* a function may be in its own array */
	if (to == (long)e->unit)
		return !offset && pb_fn_at(an, *target) ? PB_POINTER_FUNCTION : PB_POINTER_INSIDE;
	fde = &an->cfi.fdes.v[to];
	return pb_fn_at(an, *target) || (fde->start == *target && fde->entry) ?
	       PB_POINTER_FUNCTION : PB_POINTER_OTHER;
}
