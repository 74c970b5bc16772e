/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Writes the unwind table (.eh_frame) of a module's stubs, so that any unwinder can walk through
 * stubs. The copy of a displaced instruction gets the original instruction's row from the module's
 * own table, because the stack is the same at both instructions. In the stub's own code, the return
 * address is on top of the stack (CFA = rsp + 8). The copy of a displaced call pushes the return
 * address in several instructions, which get rows of their own.
 *
 * If the module's table has no row for an instruction, or a row with long expressions, the previous
 * row continues.
 */
#include "module/stubs/stub_rows.h"
#include "arch/arch.h"
#include "module/elf/cfi_ops.h"

#define WORD		8
#define MAX_BLOCKS	256	/* limit on the sum of a row's expressions in bytes. Real rows have
				 * a dozen bytes. Each stub gets copies of its rows, so the table of
				 * a hostile file could become large */
#define PUSH_LEN	5	/* length of push $imm32, which pushes the return address' low
				 * half */
#define POP_LEN		4	/* length of pop -16(%rsp). If a displaced call reads its target
				 * from memory, this pop comes before push $imm32 (relocate.c) */

static void put(struct pb_rows *t, const void *bytes, size_t n)
{
	pb_vec_append(&t->out, (const uint8_t *)bytes, n);
}

static void put_byte(struct pb_rows *t, unsigned v)
{
	pb_vec_push(&t->out, (uint8_t)v);
}

static void put_u32(struct pb_rows *t, uint64_t v)
{
	uint32_t v32 = (uint32_t)v;

	put(t, &v32, 4);
}

static void put_uleb(struct pb_rows *t, uint64_t v)
{
	for (; v >= 0x80; v >>= 7)
		put_byte(t, (v & 0x7f) | 0x80);
	put_byte(t, (unsigned)v);
}

static void put_sleb(struct pb_rows *t, int64_t v)
{
	for (; v < -0x40 || v >= 0x40; v >>= 7)
		put_byte(t, (v & 0x7f) | 0x80);
	put_byte(t, v & 0x7f);
}

/* Ends the record that began at `start`: pads it and writes its length. */
static void close_record(struct pb_rows *t, size_t start)
{
	uint32_t len;

	while ((t->out.n - start) % 4)
		put_byte(t, CFA_nop);
	len = (uint32_t)(t->out.n - start) - 4;
	if (!t->out.failed)
		memcpy(t->out.v + start, &len, 4);
}

static void make_gone(struct pb_rules *r)
{
	memset(r, 0, sizeof(*r));
	r->cfa.kind = PB_RULE_REGISTER;
	r->cfa.reg = PB_DWARF_RSP;
	r->cfa.value = WORD;
	r->regs[PB_DWARF_RA].kind = PB_RULE_OFFSET;
	r->regs[PB_DWARF_RA].value = -WORD;
}

void pb_rows_begin(struct pb_rows *t, const struct pb_cfi *cfi)
{
	static const uint8_t cie[] = {
		0, 0, 0, 0, 0, 0, 0, 0, 1, 'z', 'R', 0,
		1, 0x78, PB_DWARF_RA,	/* code_align is 1 and data_align is -8 */
		1, 0x1b,		/* the FDEs' addresses have 4 bytes, and are relative to the
					 * field that holds them */
		CFA_def_cfa, PB_DWARF_RSP, WORD, CFA_offset | PB_DWARF_RA, 1,
	};

	t->program.cfi = cfi;
	make_gone(&t->gone);
	put(t, cie, sizeof(cie));
	close_record(t, 0);
}

/* Begins an FDE. pb_rows_place() writes the FDE's address later, when the table's address is
 * known. */
static size_t open_fde(struct pb_rows *t, uint32_t start, uint32_t size)
{
	size_t fde = t->out.n;

	pb_vec_push(&t->fdes, (struct pb_rows_fde){ start, (uint32_t)fde });
	put_u32(t, 0);
	put_u32(t, fde + 4);	/* the distance back to the CIE */
	put_u32(t, 0);
	put_u32(t, size);
	put_byte(t, 0);
	return fde;
}

static void end_run(struct pb_rows *t, uint32_t end)
{
	if (t->plain)
		close_record(t, open_fde(t, t->plain, end - t->plain));
	t->plain = 0;
}

/* ---- one row --------------------------------------------------------------- */

static void put_cfa(struct pb_rows *t, const struct pb_rule *r)
{
	if (r->kind == PB_RULE_EXPR) {
		put_byte(t, CFA_def_cfa_expression);
		put_uleb(t, (uint64_t)r->value);
		put(t, r->block, (size_t)r->value);
	} else if (r->value >= 0) {
		put_byte(t, CFA_def_cfa);
		put_uleb(t, r->reg);
		put_uleb(t, (uint64_t)r->value);
	} else {
		put_byte(t, CFA_def_cfa_sf);
		put_uleb(t, r->reg);
		put_sleb(t, r->value / -WORD);
	}
}

static void put_reg(struct pb_rows *t, unsigned reg, const struct pb_rule *r)
{
	bool whole = r->value % WORD == 0;

	if (r->kind == PB_RULE_SAME) {
		put_byte(t, CFA_same_value);
		put_uleb(t, reg);
	} else if (r->kind == PB_RULE_OFFSET && whole && r->value <= 0) {
		put_byte(t, CFA_offset | reg);
		put_uleb(t, (uint64_t)(r->value / -WORD));
	} else if ((r->kind == PB_RULE_OFFSET || r->kind == PB_RULE_VAL_OFFSET) && whole) {
		put_byte(t, r->kind == PB_RULE_OFFSET ? CFA_offset_extended_sf : CFA_val_offset_sf);
		put_uleb(t, reg);
		put_sleb(t, r->value / -WORD);
	} else if (r->kind == PB_RULE_REGISTER) {
		put_byte(t, CFA_register);
		put_uleb(t, reg);
		put_uleb(t, (uint64_t)r->value);
	} else if (r->kind == PB_RULE_EXPR || r->kind == PB_RULE_VAL_EXPR) {
		put_byte(t, r->kind == PB_RULE_EXPR ? CFA_expression : CFA_val_expression);
		put_uleb(t, reg);
		put_uleb(t, (uint64_t)r->value);
		put(t, r->block, (size_t)r->value);
	} else {
		put_byte(t, CFA_undefined);
		put_uleb(t, reg);
	}
}

static void advance(struct pb_rows *t, uint32_t by)
{
	if (by < 64) {
		put_byte(t, CFA_advance_loc | by);
		return;
	}
	put_byte(t, CFA_advance_loc2);
	put_byte(t, by & 0xff);
	put_byte(t, by >> 8);
}

/* Makes *r the row that is valid from the address `at` on. Each stub begins with the row of a
 * function's entry (t->gone). While the stub needs no other row, it has no FDE of its own. The
 * first call that sets another row opens an FDE for the whole stub. */
static void row(struct pb_rows *t, uint32_t at, const struct pb_rules *r)
{
	if (!memcmp(r, &t->now, sizeof(*r)))
		return;
	if (!t->is_open) {
		end_run(t, t->start);
		t->fde = open_fde(t, t->start, t->end - t->start);
		t->is_open = true;
		t->at = t->start;
	}
	if (at > t->at)
		advance(t, at - t->at);
	t->at = at;
	if (memcmp(&r->cfa, &t->now.cfa, sizeof(r->cfa)))
		put_cfa(t, &r->cfa);
	for (unsigned i = 0; i < PB_RULE_REGS; i++)
		if (memcmp(&r->regs[i], &t->now.regs[i], sizeof(r->regs[i])))
			put_reg(t, i, &r->regs[i]);
	t->now = *r;
}

/* Repeats the last row, but with the CFA `by` more bytes away from rsp, because a word was pushed
 * or popped. */
static void pushed(struct pb_rows *t, uint32_t at, int by)
{
	struct pb_rules r = t->now;

	if (r.cfa.kind != PB_RULE_REGISTER || r.cfa.reg != PB_DWARF_RSP)
		return;
	r.cfa.value += by;
	row(t, at, &r);
}

/* ---- a stub ---------------------------------------------------------------- */

/* Sets the rows of a displaced call. Its copy begins at `copy`, and its push is at `push`. */
static void call(struct pb_rows *t, uint32_t copy, uint32_t push)
{
	if (copy < push) {
		pushed(t, push - POP_LEN, WORD);
		pushed(t, push, -WORD);
	}
	pushed(t, push + PUSH_LEN, WORD);
}

static bool is_exit(const struct pb_place *p, unsigned off)
{
	for (unsigned i = 0; p && i < p->nr_exits; i++)
		if (p->exits[i].off == off)
			return p->exits[i].kind != PB_EXIT_JCC;
	return false;
}

/* True if the row's expressions are too long for copies. */
static bool is_long(const struct pb_rules *r)
{
	uint64_t sum = r->cfa.kind == PB_RULE_EXPR ? (uint64_t)r->cfa.value : 0;

	for (unsigned i = 0; i < PB_RULE_REGS && sum <= MAX_BLOCKS; i++)
		if (r->regs[i].kind == PB_RULE_EXPR || r->regs[i].kind == PB_RULE_VAL_EXPR)
			sum += (uint64_t)r->regs[i].value;
	return sum > MAX_BLOCKS;
}

/* Sets the rows of a recipe's code (struct pb_recipe), which begins at `body` in the file. `window`
 * is the address of the window in the module. `exits` is the struct pb_place if the recipe may
 * contain exits; otherwise NULL. */
static void recipe(struct pb_rows *t, uint32_t body, const struct pb_recipe *r, uint64_t window,
		   const struct pb_place *exits)
{
	const struct pb_pair *p = pb_recipe_pairs(r);
	const struct pb_rules *rules;

	for (unsigned i = 0; i < r->nr_pairs; i++) {
		if (is_exit(exits, p[i].orig)) {
			row(t, body + p[i].copy, &t->gone);
			return;
		}
		rules = pb_rules_at(&t->program, window + p[i].orig);
		if (rules && !is_long(rules) && (p[i].orig < r->window_len || p[i].copy < r->len))
			row(t, body + p[i].copy, rules);
	}
	for (unsigned i = 0; i < r->nr_fixups; i++) {
		const struct pb_fixup *f = &pb_recipe_fixups(r)[i];

		if (f->kind == PB_FIX_LO32)
			call(t, body + p[r->nr_pairs - 1].copy, body + f->off - 1);
	}
}

static void whole(struct pb_rows *t, uint32_t stub, uint32_t body, const struct pb_place *p)
{
	t->start = stub;
	t->end = body + (uint32_t)pb_body_size(p);
	t->is_open = false;
	t->now = t->gone;
	recipe(t, body, p->recipe, p->window, p);
	if (pb_body_exits(p) < pb_body_second(p))
		row(t, body + pb_body_exits(p), &t->gone);
	if (p->second)
		recipe(t, body + pb_body_second(p), p->second, pb_place_second(p), NULL);
	if (t->is_open)
		close_record(t, t->fde);
	else if (!t->plain)
		t->plain = stub;
}

void pb_rows_stub(struct pb_rows *t, uint32_t stub, const struct pb_place *p)
{
	whole(t, stub, stub + PB_STUB_COPY, p);
}

void pb_rows_exit(struct pb_rows *t, uint32_t stub, const struct pb_place *p)
{
	whole(t, stub, stub, p);
}

/* ---- the sections ---------------------------------------------------------- */

/* Writes .eh_frame_hdr with its search table of all FDEs, in the order of their addresses. */
static void put_search(struct pb_rows *t, uint8_t *hdr, uint32_t hdr_at, uint32_t frame_at)
{
	static const uint8_t head[] = { 1, 0x1b, 0x03, 0x3b };
	uint32_t nr = (uint32_t)t->fdes.n, frame = frame_at - (hdr_at + 4);

	memcpy(hdr, head, 4);
	memcpy(hdr + 4, &frame, 4);
	memcpy(hdr + 8, &nr, 4);
	for (uint32_t i = 0; i < nr; i++) {
		uint32_t pair[2] = { t->fdes.v[i].start - hdr_at,
				     frame_at + t->fdes.v[i].fde - hdr_at };

		memcpy(hdr + 12 + 8 * i, pair, 8);
	}
}

void pb_rows_end(struct pb_rows *t, uint32_t end)
{
	end_run(t, end);
	put_u32(t, 0);
}

void pb_rows_place(struct pb_rows *t, uint8_t *file, uint32_t hdr_at, uint32_t frame_at)
{
	memcpy(file + frame_at, t->out.v, t->out.n);
	for (size_t i = 0; i < t->fdes.n; i++) {
		uint32_t field = frame_at + t->fdes.v[i].fde + 8, rel = t->fdes.v[i].start - field;

		memcpy(file + field, &rel, 4);
	}
	put_search(t, file + hdr_at, hdr_at, frame_at);
}

void pb_rows_free(struct pb_rows *t)
{
	pb_vec_free(&t->out);
	pb_vec_free(&t->fdes);
}
