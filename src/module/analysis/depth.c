/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Finds the stack's depth in assembly that has no CFI, by a dataflow analysis. The flow begins at
 * each function symbol that no FDE covers. At these symbols the return address is on top of the
 * stack. The flow follows all direct branches, also from one of these functions to another. For
 * each instruction the analysis finds the distance from the CFA to rsp, or to a register with a
 * copy of rsp. If paths disagree, or if an instruction changes rsp in an unknown way, the depth is
 * unknown.
 *
 * The result is one FDE for each symbol, so that all users of the CFI get the result. The sweep
 * (stages.h) compares these FDEs with the code, like all other FDEs.
 *
 * Big programs without CFI are not written in assembly. Their compilers (Go, GHC) use the stack in
 * other ways than C compilers, so this analysis leaves such programs alone.
 */
#include <errno.h>
#include "base/base.h"
#include "module/analysis/stages.h"
#include "module/elf/cfi_ops.h"
#include "module/elf/runtimes.h"
#include <Zydis/Zydis.h>

#define MAX_CODE	(1u << 20)	/* limit on code without CFI, in bytes */
#define UNKNOWN		INT32_MAX
#define MAX_DEPTH	(1 << 24)
#define NO_REG		255

/* The state before an instruction: CFA = rsp + .rsp, and CFA = the register .reg + .copy. Each byte
 * of code has a state, because an instruction may begin at any byte. */
struct state {
	int32_t rsp, copy;
	uint8_t reg;
	uint8_t len;		/* the instruction's length; 0: control doesn't reach the byte */
};

/* The code of one symbol. */
struct piece {
	uint64_t start, end;
	size_t states;		/* index in `states` of the first byte's state */
	size_t insns, insns_end; /* the instructions of the piece's FDE, in an->depth_rows */
};

struct depths {
	struct pb_an *an;
	PB_VEC(struct piece) pieces;	/* sorted, disjoint */
	struct state *states;
	size_t nr_states;
	pb_addr_vec work;		/* addresses of instructions whose state has changed */
	ZydisDecoder decoder;
};

/* ---- the pieces ---------------------------------------------------------------- */

static int by_addr(const void *a, const void *b)
{
	const struct pb_cand *x = a, *y = b;

	return x->addr < y->addr ? -1 : x->addr > y->addr;
}

/* Returns the start of the first FDE after addr. */
static uint64_t next_fde(const struct pb_cfi *cfi, uint64_t addr)
{
	size_t low = pb_bisect(i, 0, cfi->fdes.n, cfi->fdes.v[i].start <= addr);

	return low < cfi->fdes.n ? cfi->fdes.v[low].start : UINT64_MAX;
}

/* Cuts code into pieces. A piece is a function's bytes, up to the next function or FDE. Returns
 * false if there is no memory. */
static bool find_pieces(struct depths *d)
{
	struct pb_an *an = d->an;
	PB_VEC(struct pb_cand) c = { 0 };

	pb_vec_append(&c, an->cands.v, an->cands.n);
	pb_vec_sort(&c, by_addr);
	for (size_t i = 0; i < c.n && d->nr_states <= MAX_CODE; i++) {
		uint64_t start = c.v[i].addr, end = start + c.v[i].size;
		uint64_t next = next_fde(&an->cfi, start);
		const struct pb_range *r = pb_range_find(an, start);

		/* several symbols may name the code, some of them without a size */
		if (!c.v[i].size || pb_cfi_find(&an->cfi, start) >= 0 ||
		    (d->pieces.n && d->pieces.v[d->pieces.n - 1].start == start))
			continue;
		for (size_t k = i + 1; k < c.n && c.v[k].addr < end; k++)
			if (c.v[k].addr > start)
				end = c.v[k].addr;
		end = end < next ? end : next;
		if (!r || r->stubs || end > r->addr + r->size)
			continue;
		pb_vec_push(&d->pieces, (struct piece){
			.start = start, .end = end, .states = d->nr_states });
		d->nr_states += end - start;
	}
	bool failed = c.failed || d->pieces.failed;

	pb_vec_free(&c);
	return !failed;
}

static struct piece *piece_of(const struct depths *d, uint64_t addr)
{
	size_t low = pb_bisect(i, 0, d->pieces.n, d->pieces.v[i].start <= addr);

	return low && addr < d->pieces.v[low - 1].end ? &d->pieces.v[low - 1] : NULL;
}

/* ---- one instruction -------------------------------------------------------------- */

/* Returns the number of the general register that reg is part of. Instructions encode the register
 * by this number. */
static uint8_t number(ZydisRegister reg)
{
	ZydisRegister whole = ZydisRegisterGetLargestEnclosing(ZYDIS_MACHINE_MODE_LONG_64, reg);

	return ZydisRegisterGetClass(whole) == ZYDIS_REGCLASS_GPR64 ?
	       (uint8_t)ZydisRegisterGetId(whole) : NO_REG;
}

static void no_copy(struct state *s)
{
	s->reg = NO_REG;
	s->copy = UNKNOWN;
}

static int32_t bounded(int64_t v)
{
	return v > -MAX_DEPTH && v < MAX_DEPTH ? (int32_t)v : UNKNOWN;
}

/* Returns the CFA's offset from the operand's value. address: the operand belongs to an lea. */
static int32_t offset_from(const struct state *s, const ZydisDecodedOperand *o, bool address)
{
	bool mem = o->type == ZYDIS_OPERAND_TYPE_MEMORY;
	ZydisRegister base = mem ? o->mem.base : o->reg.value;
	int64_t disp = mem && o->mem.disp.has_displacement ? o->mem.disp.value : 0;
	int32_t from;

	if (mem != address || (!mem && o->type != ZYDIS_OPERAND_TYPE_REGISTER) ||
	    (mem && o->mem.index != ZYDIS_REGISTER_NONE) || o->size != 64)
		return UNKNOWN;
	from = base == ZYDIS_REGISTER_RSP ? s->rsp : s->reg != NO_REG && number(base) == s->reg &&
	       ZydisRegisterGetWidth(ZYDIS_MACHINE_MODE_LONG_64, base) == 64 ? s->copy : UNKNOWN;
	return from == UNKNOWN ? UNKNOWN : bounded(from - disp);
}

static bool is_reg64(const ZydisDecodedOperand *o)
{
	return o->type == ZYDIS_OPERAND_TYPE_REGISTER && o->size == 64;
}

/* Returns the CFA's offset after the instruction. The offset is from rsp, or from the register that
 * the instruction sets. */
static int32_t moved(const struct state *s, const ZydisDecodedInstruction *i,
		     const ZydisDecodedOperand *o)
{
	int64_t imm = o[1].type == ZYDIS_OPERAND_TYPE_IMMEDIATE ? o[1].imm.value.s : INT64_MAX;

	switch (i->mnemonic) {
	case ZYDIS_MNEMONIC_MOV:
		return is_reg64(&o[0]) ? offset_from(s, &o[1], false) : UNKNOWN;
	case ZYDIS_MNEMONIC_LEA:
		return is_reg64(&o[0]) ? offset_from(s, &o[1], true) : UNKNOWN;
	case ZYDIS_MNEMONIC_ADD: case ZYDIS_MNEMONIC_SUB: {
		int32_t from = is_reg64(&o[0]) ? offset_from(s, &o[0], false) : UNKNOWN;

		if (from == UNKNOWN || imm < -MAX_DEPTH || imm > MAX_DEPTH)
			return UNKNOWN;
		return bounded(i->mnemonic == ZYDIS_MNEMONIC_ADD ? from - imm : from + imm);
	}
	case ZYDIS_MNEMONIC_PUSH: case ZYDIS_MNEMONIC_PUSHFQ:
		return i->operand_width == 64 && s->rsp != UNKNOWN ? bounded(s->rsp + 8) : UNKNOWN;
	case ZYDIS_MNEMONIC_POP: case ZYDIS_MNEMONIC_POPFQ:
		return i->operand_width == 64 && s->rsp != UNKNOWN &&
		       o[0].reg.value != ZYDIS_REGISTER_RSP ? bounded(s->rsp - 8) : UNKNOWN;
	case ZYDIS_MNEMONIC_LEAVE:
		return s->reg == PB_REG_RBP && s->copy != UNKNOWN ? bounded(s->copy - 8) : UNKNOWN;
	default:
		return UNKNOWN;
	}
}

/* A bit for each register that a callee need not preserve. */
static const uint16_t lost_at_calls = 1 << 0 | 1 << 1 | 1 << 2 | 1 << 6 | 1 << 7 | 0xf << 8;

/* Changes *s to the state after the instruction. */
static void step(struct state *s, const ZydisDecodedInstruction *i, const ZydisDecodedOperand *o)
{
	struct state before = *s;

	if (i->meta.category == ZYDIS_CATEGORY_CALL) {
		if (s->reg != NO_REG && lost_at_calls >> s->reg & 1)
			no_copy(s);
		return;
	}
	for (unsigned k = 0; k < i->operand_count; k++) {
		bool reg = o[k].type == ZYDIS_OPERAND_TYPE_REGISTER;
		uint8_t to = reg ? number(o[k].reg.value) : NO_REG;

		if (!reg || !(o[k].actions & ZYDIS_OPERAND_ACTION_MASK_WRITE) || to == NO_REG)
			continue;
		if (to == PB_REG_RSP)
			s->rsp = moved(&before, i, o);
		else if (to == s->reg)
			no_copy(s);
	}
	/* a new copy of rsp replaces an earlier one */
	if ((i->mnemonic == ZYDIS_MNEMONIC_MOV || i->mnemonic == ZYDIS_MNEMONIC_LEA) &&
	    is_reg64(&o[0]) && o[0].reg.value != ZYDIS_REGISTER_RSP) {
		int32_t copy = moved(&before, i, o);

		if (copy != UNKNOWN) {
			s->reg = number(o[0].reg.value);
			s->copy = copy;
		}
	}
}

/* ---- the flow --------------------------------------------------------------------- */

/* Called when control reaches addr in state *s. Merges *s with the known state at addr. */
static void arrive(struct depths *d, uint64_t addr, const struct state *s)
{
	const struct piece *p = piece_of(d, addr);
	struct state *at, was;

	if (!p)
		return;
	at = &d->states[p->states + (addr - p->start)];
	was = *at;
	if (!at->len) {
		*at = *s;
		at->len = 1;	/* a preliminary length, since the instruction is not decoded yet */
	} else {
		if (at->rsp != s->rsp)
			at->rsp = UNKNOWN;
		if (at->reg != s->reg || at->copy != s->copy)
			no_copy(at);
	}
	if (!was.len || at->rsp != was.rsp || at->reg != was.reg)
		pb_vec_push(&d->work, addr);
}

/* Carries the state at addr on to the instructions that may come next. */
static void go_on(struct depths *d, uint64_t addr)
{
	const struct pb_range *r = pb_range_find(d->an, addr);
	const struct piece *p = piece_of(d, addr);
	ZydisDecodedOperand o[ZYDIS_MAX_OPERAND_COUNT];
	ZydisDecodedInstruction i;
	struct state *at = &d->states[p->states + (addr - p->start)], s;
	uint64_t next;

	if (!ZYAN_SUCCESS(ZydisDecoderDecodeFull(&d->decoder, r->bytes + (addr - r->addr),
						 r->size - (addr - r->addr), &i, o)))
		return;
	at->len = i.length;
	s = *at;
	next = addr + i.length;
	step(&s, &i, o);
	if (i.raw.imm[0].is_relative && i.meta.category != ZYDIS_CATEGORY_CALL)
		arrive(d, next + (uint64_t)i.raw.imm[0].value.s, &s);
	if (i.meta.category != ZYDIS_CATEGORY_UNCOND_BR && i.meta.category != ZYDIS_CATEGORY_RET)
		arrive(d, next, &s);
}

/* ---- the FDEs ----------------------------------------------------------------------- */

static void put(struct pb_an *an, uint8_t byte)
{
	pb_vec_push(&an->depth_rows, byte);
}

static void put_sleb(struct pb_an *an, int64_t v)
{
	bool more = true;

	while (more) {
		uint8_t byte = v & 0x7f;

		v >>= 7;
		more = !((v == 0 && !(byte & 0x40)) || (v == -1 && byte & 0x40));
		put(an, byte | (more ? 0x80 : 0));
	}
}

/* Returns the register's number in DWARF. DWARF numbers the first eight registers in another
 * order. */
static uint8_t dwarf_reg(uint8_t reg)
{
	static const uint8_t of[8] = { 0, 2, 1, 3, 7, 6, 4, 5 };

	return reg < 8 ? of[reg] : reg;
}

static void put_cfa(struct pb_an *an, uint8_t reg, int32_t off)
{
	if (reg == NO_REG) {
		put(an, CFA_def_cfa_expression);
		put(an, 0);
		return;
	}
	put(an, CFA_def_cfa_sf);
	put(an, dwarf_reg(reg));
	put_sleb(an, off);
}

/* Finds the CFA at byte `off` of the piece: the CFA is the register *reg + *cfa. Returns whether an
 * instruction begins at this byte. */
static bool row_at(const struct depths *d, const struct piece *p, uint64_t off, uint8_t *reg,
		   int32_t *cfa)
{
	const struct state *s = &d->states[p->states + off];
	bool top = s->len && s->rsp != UNKNOWN && s->rsp >= 8;
	bool copied = s->len && !top && s->reg != NO_REG;

	*reg = top ? PB_REG_RSP : copied ? s->reg : NO_REG;
	*cfa = top ? s->rsp : copied ? s->copy : 0;
	return s->len;
}

/* Writes the instructions of the piece's FDE. */
static void put_rows(struct depths *d, struct piece *p)
{
	struct pb_an *an = d->an;
	uint64_t last = 0;
	uint8_t reg = PB_REG_RSP, now;
	int32_t cfa = 8, off;

	p->insns = an->depth_rows.n;
	for (uint64_t at = 0; at < p->end - p->start;) {
		unsigned len = row_at(d, p, at, &now, &off) ? d->states[p->states + at].len : 1;

		if (now != reg || off != cfa) {
			uint32_t delta = (uint32_t)(at - last);

			put(an, CFA_advance_loc4);
			pb_vec_append(&an->depth_rows, (const uint8_t *)&delta, sizeof(delta));
			put_cfa(an, now, off);
			last = at;
			reg = now;
			cfa = off;
		}
		at += len;
	}
	p->insns_end = an->depth_rows.n;
}

static int by_start(const void *a, const void *b)
{
	const struct pb_fde *x = a, *y = b;

	return x->start < y->start ? -1 : x->start > y->start;
}

static bool add_fdes(struct depths *d)
{
	/* the CFA is rsp + 8, and the return address is at CFA - 8 */
	static const uint8_t begin[] = { CFA_def_cfa_sf, 7, 8, CFA_offset_extended_sf, 16, 0x78 };
	struct pb_an *an = d->an;
	uint32_t cie = (uint32_t)an->cfi.cies.n;

	for (size_t i = 0; i < d->pieces.n; i++)
		put_rows(d, &d->pieces.v[i]);
	if (an->depth_rows.failed)
		return false;
	pb_vec_push(&an->cfi.cies, (struct pb_cie){
		.insns = begin, .insns_end = begin + sizeof(begin), .code_align = 1,
		.data_align = 1, .ra_reg = 16 });
	for (size_t i = 0; i < d->pieces.n; i++) {
		const struct piece *p = &d->pieces.v[i];

		pb_vec_push(&an->cfi.fdes, (struct pb_fde){
			.start = p->start, .end = p->end, .insns = an->depth_rows.v + p->insns,
			.insns_end = an->depth_rows.v + p->insns_end, .cie = cie, .entry = true });
	}
	pb_vec_sort(&an->cfi.fdes, by_start);
	return !an->cfi.cies.failed && !an->cfi.fdes.failed;
}

int pb_depths_find(struct pb_an *an, const char **why)
{
	struct depths d = { .an = an };
	struct state entry = { .rsp = 8, .reg = NO_REG, .copy = UNKNOWN };
	bool ok;

	*why = "no memory";
	if (!(an->flags & PB_MODULE_RETURNS) || pb_runtime_has_own_stacks(an->runtimes))
		return 0;
	ok = find_pieces(&d);
	if (ok && d.pieces.n && d.nr_states <= MAX_CODE) {
		ZydisDecoderInit(&d.decoder, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
		d.states = calloc(d.nr_states, sizeof(*d.states));
		for (size_t i = 0; d.states && i < d.pieces.n; i++)
			arrive(&d, d.pieces.v[i].start, &entry);
		while (d.states && d.work.n && !d.work.failed)
			go_on(&d, d.work.v[--d.work.n]);
		ok = d.states && !d.work.failed && add_fdes(&d);
	}
	pb_vec_free(&d.pieces);
	pb_vec_free(&d.work);
	free(d.states);
	return ok ? 0 : -ENOMEM;
}
