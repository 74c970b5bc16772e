/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The unwind table of a module's stubs (.eh_frame). It follows what displaced
 * instructions do to the stack, as far as their first bytes tell: push and pop; sub,
 * add and lea of a constant to rsp; rsp realigned when rbp is the frame's base. Behind
 * anything else that changes rsp the frame is taken to be where it was. Code dug away
 * for a hole has no entry.
 *
 * In the stub of an exit it is told backwards, from the exit, where CFA = rsp + 8
 * and all registers are the caller's: a pop before it finds the register on the
 * stack, `leave` and its kin find the frame by rbp.
 */
#include "module/stub_rows.h"
#include "arch/x86_64/stub.h"

#define DW_RBX		3
#define DW_RBP		6
#define DW_RSP		7

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

static void put_uleb(struct pb_rows *t, uint32_t v)
{
	for (; v >= 0x80; v >>= 7)
		put_byte(t, (v & 0x7f) | 0x80);
	put_byte(t, v);
}

/* The record that began at `start` ends: its length, padded. */
static void close_record(struct pb_rows *t, size_t start)
{
	uint32_t len;

	while ((t->out.n - start) % 4)
		put_byte(t, 0);	/* DW_CFA_nop */
	len = (uint32_t)(t->out.n - start) - 4;
	if (!t->out.failed)
		memcpy(t->out.v + start, &len, 4);
}

void pb_rows_begin(struct pb_rows *t)
{
	static const uint8_t cie[] = {
		0, 0, 0, 0, 0, 0, 0, 0, 1, 'z', 'R', 0,
		1, 0x78, 16,	/* factors 1 and -8, return address is column 16 */
		1, 0x1b,	/* addresses: 4 bytes, relative to where they stand */
		0x0c, DW_RSP, 8, 0x90, 1,	/* CFA = rsp + 8, r16 at CFA - 8 */
	};

	put(t, cie, sizeof(cie));
	close_record(t, 0);
}

/* Where it begins is put in when it is known where the table is. */
static size_t open_fde(struct pb_rows *t, uint32_t start, uint32_t size)
{
	size_t fde = t->out.n;

	pb_vec_push(&t->fdes, (struct pb_rows_fde){ start, (uint32_t)fde });
	put_u32(t, 0);
	put_u32(t, fde + 4);	/* back to the CIE */
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

static void new_row(struct pb_rows *t, struct rows *r, uint32_t at)
{
	put_byte(t, 0x02);	/* DW_CFA_advance_loc1 */
	put_byte(t, at - r->at);
	r->at = at;
}

static void put_row(struct pb_rows *t, struct rows *r, const struct effect *e, uint32_t at)
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
static void put_calls(struct pb_rows *t, struct rows *rows, const struct pb_recipe *r)
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

/* What conditional exits lead to, where the frame is gone. */
static void put_exits(struct pb_rows *t, struct rows *rows, uint32_t at)
{
	static const struct effect none = { .saved = -1 };

	if (at <= rows->at || at - rows->at > 255)
		return;
	rows->cfa = 8;
	put_row(t, rows, &none, at);
}

void pb_rows_stub(struct pb_rows *t, uint32_t stub, const struct pb_place *place)
{
	const struct pb_recipe *r = place->recipe;
	const struct pb_pair *p = pb_recipe_pairs(r);
	struct rows rows = { 0, 8, 0 };
	size_t fde;

	if (is_plain(r) && !place->second) {
		t->plain = t->plain ? t->plain : stub;
		return;
	}
	end_run(t, stub);
	fde = open_fde(t, stub, PB_STUB_COPY + pb_body_second(place));
	for (unsigned i = 0; i + 1 < r->nr_pairs; i++) {
		struct effect e = effect_of(pb_recipe_orig(r) + p[i].orig);

		rows.cfa += (uint32_t)e.bytes;
		if (e.to_rbp)
			rows.rbp_cfa = rows.cfa;
		if (has_effect(&e))
			put_row(t, &rows, &e, PB_STUB_COPY + p[i + 1].copy);
	}
	put_calls(t, &rows, r);
	if (place->nr_exits && rows.cfa != 8)
		put_exits(t, &rows, PB_STUB_COPY + pb_body_exits(place));
	close_record(t, fde);
}

/* ---- stubs of exits ------------------------------------------------------ */

/* CFA = reg + off; of each register how many words below it lies, 0: it is as in the
 * caller. */
struct frame {
	uint8_t reg;
	int32_t off;
	uint8_t saved[16];
};

static const struct frame gone = { .reg = DW_RSP, .off = 8 };

/* The register that is popped (DWARF), or -1. */
static int popped(const uint8_t *p)
{
	static const int8_t dwarf[8] = { 0, 2, 1, 3, 7, 6, 4, 5 };
	unsigned rex = *p >= 0x40 && *p < 0x50 ? *p++ : 0;

	return (*p & 0xf8) != 0x58 ? -1 : rex & 1 ? 8 + (*p & 7) : dwarf[*p & 7];
}

/* Is rsp := rbp + *by? */
static bool from_rbp(const uint8_t *p, int32_t *by)
{
	*by = 0;
	if (p[0] != 0x48)
		return false;
	if (p[1] == 0x8d && (p[2] == 0x65 || p[2] == 0xa5))
		*by = imm(p + 3, p[2] == 0xa5);
	else if (!(p[1] == 0x89 && p[2] == 0xec) && !(p[1] == 0x8b && p[2] == 0xe5))
		return false;
	return true;
}

/* From the frame behind an instruction to that before it. */
static void step_back(struct frame *f, const uint8_t *insn)
{
	struct effect e = effect_of(insn);
	int reg = popped(insn);
	bool leave = *insn == 0xc9;
	int32_t by;

	if (f->reg != DW_RSP)
		return;
	if (from_rbp(insn, &by) || leave) {
		f->reg = DW_RBP;
		f->off += leave ? 8 : by;
		if (leave)
			f->saved[DW_RBP] = (uint8_t)(f->off / 8);
		return;
	}
	f->off -= e.bytes;
	if (reg >= 0 && is_kept(reg))
		f->saved[reg] = (uint8_t)(f->off / 8);
}

/* The frame before each instruction of the window. Their number. */
static unsigned frames_of(const struct pb_place *p, struct frame *at)
{
	const struct pb_recipe *r = p->recipe;
	const struct pb_pair *pair = pb_recipe_pairs(r);
	unsigned first = 0;

	while (pair[first].orig != p->exits[0].off)
		first++;
	at[first] = gone;
	for (unsigned i = first; i--;) {
		at[i] = at[i + 1];
		step_back(&at[i], pb_recipe_orig(r) + pair[i].orig);
	}
	for (unsigned i = first + 1, k = 1; i < r->nr_pairs; i++) {
		at[i] = at[i - 1];
		at[i].off += effect_of(pb_recipe_orig(r) + pair[i - 1].orig).bytes;
		if (k < p->nr_exits && p->exits[k].off == pair[i].orig) {
			at[i] = gone;
			k++;
		}
	}
	return r->nr_pairs;
}

static void put_frame(struct pb_rows *t, const struct frame *was, const struct frame *is)
{
	if (was->reg != is->reg || was->off != is->off) {
		put_byte(t, 0x0c);	/* DW_CFA_def_cfa */
		put_byte(t, is->reg);
		put_uleb(t, (uint32_t)is->off);
	}
	for (unsigned reg = 0; reg < 16; reg++) {
		if (was->saved[reg] == is->saved[reg])
			continue;
		put_byte(t, (is->saved[reg] ? 0x80u : 0xc0u) | reg);	/* DW_CFA_offset, DW_CFA_restore */
		if (is->saved[reg])
			put_uleb(t, is->saved[reg]);
	}
}

static bool same_frame(const struct frame *a, const struct frame *b)
{
	return !memcmp(a, b, sizeof(*a));
}

static bool same_frames(const struct frame *at, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		if (!same_frame(&at[i], &gone))
			return false;
	return true;
}

void pb_rows_exit(struct pb_rows *t, uint32_t stub, const struct pb_place *p)
{
	const struct pb_pair *pair = pb_recipe_pairs(p->recipe);
	struct frame at[PB_WINDOW_MAX + 2];
	unsigned n = frames_of(p, at), from = 0;
	struct frame now = gone;
	size_t fde;

	if (!p->second && same_frames(at, n)) {
		t->plain = t->plain ? t->plain : stub;
		return;
	}
	end_run(t, stub);
	fde = open_fde(t, stub, pb_body_second(p));
	for (unsigned i = 0; i <= n; i++) {
		const struct frame *is = i < n ? &at[i] : &gone;
		unsigned to;

		if (same_frame(&now, is))
			continue;
		to = i < n ? pair[i].copy : pb_body_exits(p);
		if (to < from)
			continue;
		if (to > from) {
			put_byte(t, 0x03);	/* DW_CFA_advance_loc2 */
			put_byte(t, (to - from) & 0xff);
			put_byte(t, (to - from) >> 8);
		}
		put_frame(t, &now, is);
		now = *is;
		from = to;
	}
	close_record(t, fde);
}

/* The table of all FDEs for .eh_frame_hdr's search, in the order of their addresses. */
static void put_search(struct pb_rows *t, uint8_t *hdr, uint32_t hdr_at, uint32_t frame_at)
{
	static const uint8_t head[] = { 1, 0x1b, 0x03, 0x3b };
	uint32_t nr = (uint32_t)t->fdes.n, frame = frame_at - (hdr_at + 4);

	memcpy(hdr, head, 4);
	memcpy(hdr + 4, &frame, 4);
	memcpy(hdr + 8, &nr, 4);
	for (uint32_t i = 0; i < nr; i++) {
		uint32_t pair[2] = { t->fdes.v[i].start - hdr_at, frame_at + t->fdes.v[i].fde - hdr_at };

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
