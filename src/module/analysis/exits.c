/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Finds the instructions that leave a function, and decides whether these are all of the function's
 * exits. The sweep, which decodes all code once (stages.h), has noted every instruction through
 * which control may leave a unit (the code of one FDE). Each of these instructions is of one of
 * seven kinds:
 *
 *   dead        no control flow reaches the instruction: it is data, or code that never runs
 *   an exit     a return, or a tail jump, with the return address on top of the stack
 *   an edge     control goes to another unit with the frame unchanged, by a jump or by falling
 *               through. The other unit is a part of the same function (foo.cold), or code that
 *               functions share
 *   inside      a jump through a table whose targets lie in the unit (a target in a part of the
 *               same function makes an edge)
 *   a dead end  a jump to a unit that control never leaves
 *   impossible  a jump to the end of its own function, where code with another frame follows
 *   a reason    an instruction that shows why the unit's exits cannot be found (enum pb_inexit)
 *
 * A reason spreads against the edges: if it holds for a unit, it also holds for every unit with an
 * edge to that unit. doc/design/returns.md has the rules and the proof.
 */
#include <errno.h>
#include <string.h>
#include "base/base.h"
#include "module/analysis/exits_priv.h"

struct search {
	struct pb_an *an;
	pb_edge_vec back;	/* edges, sorted by `to` */
	pb_edge_vec framed;	/* jumps to a unit with another frame than the jump */
	uint32_t *work;		/* a stack of units, with room for all units */
	bool *wanted;		/* for each unit: its exits are to be hooked */
};

static void flag(struct search *s, uint32_t unit, enum pb_inexit why)
{
	s->an->units[unit] |= 1u << why;
}

static bool is_live(struct search *s, const struct pb_fn_exit *e)
{
	const struct pb_range *r = pb_range_find(s->an, e->addr);

	if (e->live)
		return true;
	if (pb_exit_work(s->an, (e->addr - e->run) / 64)) {
		flag(s, e->unit, PB_INEXIT_LIMIT);
		return false;
	}
	return pb_bits_any(r->reached, e->run - r->addr, e->addr - r->addr);
}

/* True if a call leads to the address, or if code or data contains the address. So a function may
 * begin there, even if it has no symbol and no FDE (assembly in a stripped file). The address may
 * also be a label inside a function: see pb_unit_has_labels(). */
static bool is_called(const struct pb_range *r, uint64_t addr)
{
	return pb_bit_test(r->called, addr - r->addr);
}

/* True if f is not a function, but a part of the unit that the compiler has moved away from the
 * rest. Such a part has no name, no call leads to it, and all jumps to it come from the unit. */
static bool is_part(struct pb_an *an, const struct pb_fn *f, uint32_t unit)
{
	const struct pb_range *r = pb_range_find(an, f->addr);

	if (!(f->flags & PB_FUNC_UNNAMED) || is_called(r, f->addr))
		return false;
	for (size_t i = pb_cross_jump_lower(an, f->addr);
	     i < an->cross_jumps.n && an->cross_jumps.v[i].to == f->addr; i++)
		if (pb_exit_work(an, 8) ||
		    pb_cfi_find(&an->cfi, an->cross_jumps.v[i].from) != (long)unit)
			return false;
	return true;
}

/* True if the jump's target has the same frame as the jump, according to the CFI of the unit
 * `to`. If expressions give both CFAs (gcc writes them if it realigns the stack), they are taken
 * for equal. */
static bool same_frame(struct pb_an *an, const struct pb_fn_exit *e, const struct pb_fde *to)
{
	struct pb_cfi_cursor cur;

	if (pb_exit_work(an, (uint64_t)(to->insns_end - to->insns)))
		return false;

	pb_cfi_start(&cur, &an->cfi, to);
	pb_cfi_advance(&cur, e->target);
	return cur.row.cfa_reg == e->cfa_reg && !cur.row.ra_moved &&
	       (cur.row.cfa_off == e->cfa_off || e->cfa_reg == PB_REG_NONE);
}

/* Returns the end of the nops at addr that belong to no unit. Code that falls through the end of
 * its unit executes such nops, and reaches the code after them. */
static uint64_t past_padding(struct pb_an *an, uint64_t addr)
{
	const struct pb_range *r = pb_range_find(an, addr);
	ZydisDecoder decoder;
	struct pb_insn i;

	ZydisDecoderInit(&decoder, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
	while (r && addr - r->addr < r->size && !pb_exit_work(an, 8) &&
	       pb_cfi_find(&an->cfi, addr) < 0 &&
	       pb_insn_decode(&decoder, r->bytes + (addr - r->addr), r->size - (addr - r->addr),
			      &i) &&
	       i.what == PB_INSN_NOP)
		addr += i.length;
	return addr;
}

/* Notes that code of the unit `from` continues in the unit `to`, at `target`, without passing an
 * exit. */
static void add_edge(struct search *s, uint32_t from, uint32_t to, uint64_t target)
{
	long i = pb_fn_lower(s->an, target);

	if (i >= 0 && target - s->an->fns.v[i].addr <= PB_ENTRY_REACH)
		s->an->goes_on[from] = true;
	pb_vec_push(&s->back, (struct pb_exit_edge){ from, to });
}

/* Handles a jump whose target has another frame. */
static void note_framed(struct search *s, const struct pb_fn_exit *e, long to)
{
	if (to < 0)
		flag(s, e->unit, PB_INEXIT_FRAME);
	else
		pb_vec_push(&s->framed, (struct pb_exit_edge){ e->unit, (uint32_t)to });
}

/* True if control never leaves the unit, except by calls that don't return. Must be called when
 * all exits are classified. */
static bool is_dead_end(const struct pb_an *an, uint32_t unit)
{
	for (size_t k = pb_exits_lower(an, unit); k < an->exits.n && an->exits.v[k].unit == unit;
	     k++)
		if (an->exits.v[k].live)
			return false;
	return !an->units[unit];
}

/* A jump to code with another frame is allowed if the jump leads to a dead end: no exit follows it,
 * whatever the frame is. gcc emits such jumps for cases that can't happen. Their target is a cold
 * part that is empty, so another function's cold part begins at the same address. */
static void judge_framed(struct search *s)
{
	for (size_t i = 0; i < s->framed.n; i++)
		if (pb_exit_work(s->an, 8) || !is_dead_end(s->an, s->framed.v[i].to))
			flag(s, s->framed.v[i].from, PB_INEXIT_FRAME);
}

/*
 * True if the jump can't happen: it leads to the end of its own function, where another function
 * begins, perhaps after padding, and the frame isn't the one with which that function begins. Such
 * a jump comes from code after __builtin_unreachable(): gcc places the label for it at the
 * function's end. PostgreSQL's palloc() reports an error in its cold part, then comes such a jump.
 */
static bool is_impossible(struct pb_an *an, const struct pb_fn_exit *e)
{
	long hot = pb_cfi_find(&an->cfi, e->target - 1), next;
	const struct pb_fde *unit = &an->cfi.fdes.v[e->unit];
	bool own = hot == (long)e->unit;
	uint64_t start;

	if (e->kind == PB_EXIT_FALL || hot < 0 || an->cfi.fdes.v[hot].end != e->target)
		return false;
	start = past_padding(an, e->target);
	next = pb_cfi_find(&an->cfi, start);
	if (next < 0 || an->cfi.fdes.v[next].start != start || !pb_fn_at(an, start) ||
	    same_frame(an, e, &an->cfi.fdes.v[next]))
		return false;
	/* its own function: the unit, or the one from which a jump leads into the unit */
	for (size_t i = pb_cross_jump_lower(an, unit->start);
	     !own && i < an->cross_jumps.n && an->cross_jumps.v[i].to < unit->end; i++)
		own = !pb_exit_work(an, 8) &&
		      pb_cfi_find(&an->cfi, an->cross_jumps.v[i].from) == hot;
	return own;
}

static void classify_jump(struct search *s, struct pb_fn_exit *e)
{
	struct pb_an *an = s->an;

	if (is_impossible(an, e)) {
		e->live = false;
		return;
	}
	if (e->kind == PB_EXIT_FALL)
		e->target = past_padding(an, e->target);
	const struct pb_range *r = pb_range_find(an, e->target);
	const struct pb_fn *f = pb_fn_at(an, e->target);
	long to = pb_cfi_find(&an->cfi, e->target);

	if (!r)
		flag(s, e->unit, PB_INEXIT_LOST);
	else if (r->stubs && e->kind == PB_EXIT_FALL)
		flag(s, e->unit, PB_INEXIT_FALLS);
	else if (r->stubs || (f && e->kind != PB_EXIT_FALL && !is_part(an, f, e->unit)))
		e->gone ? (void)(e->exit = true) : note_framed(s, e, r->stubs ? -1 : to);
	else if (to < 0 && e->kind != PB_EXIT_FALL && e->gone && is_called(r, e->target))
		e->exit = true;
	else if (to < 0)
		flag(s, e->unit, e->kind == PB_EXIT_FALL ? PB_INEXIT_FALLS : PB_INEXIT_LOST);
	else if (!same_frame(an, e, &an->cfi.fdes.v[to]))
		note_framed(s, e, to);
	else
		add_edge(s, e->unit, (uint32_t)to, e->target);
}

/* Reads the targets of a jump from an array at a known address, and notes the edges to parts of the
 * unit's function. The array ends where another known array begins, or before an element that can't
 * belong to it. If the array really ends earlier, words after its end are read as elements. Returns
 * the kind of the last element that was read. */
static enum pb_pointer read_targets(struct search *s, const struct pb_fn_exit *e,
				    const struct pb_computed *c, struct pb_targets *has)
{
	bool offsets = c->how == PB_COMPUTED_OFFSETS;
	const pb_addr_vec *v = offsets ? &s->an->tables : &s->an->arrays;
	size_t next = pb_addr_lower(v, c->table + 1);
	uint64_t at = c->table, end = next < v->n ? v->v[next] : UINT64_MAX;
	enum pb_pointer is = PB_POINTER_NONE;
	struct pb_fn_exit target = *e;

	for (; at < end; at += offsets ? 4 : 8) {
		is = pb_target_is(s->an, e, c, at, &target.target);
		if (is < PB_POINTER_FUNCTION || (is == PB_POINTER_FUNCTION && has->inside))
			return is;
		has->functions |= is == PB_POINTER_FUNCTION;
		has->inside |= is == PB_POINTER_INSIDE;
		has->parts |= is == PB_POINTER_PART;
		if (is != PB_POINTER_PART)
			continue;
		uint32_t part = (uint32_t)pb_cfi_find(&s->an->cfi, target.target);

		if (same_frame(s->an, &target, &s->an->cfi.fdes.v[part]))
			add_edge(s, e->unit, part, target.target);
		else
			note_framed(s, &target, part);
	}
	return is;
}

/*
 * Classifies a jump that reads its target from an array of pointers. The array of a switch or of a
 * computed goto has addresses of code in the unit, and perhaps in parts of the unit. The array of a
 * tail jump has addresses of functions. If addresses in the unit follow, they may lie after the
 * array's end, so nothing is certain. Parts alone are uncertain, too: they may be functions.
 */
static void classify_array(struct search *s, struct pb_fn_exit *e, const struct pb_computed *c)
{
	struct pb_targets has = { 0 };
	enum pb_pointer is = read_targets(s, e, c, &has);

	if (is == PB_POINTER_LIMIT)
		flag(s, e->unit, PB_INEXIT_LIMIT);
	else if (has.inside ? has.functions :
		 has.parts || (!has.functions && is == PB_POINTER_OTHER) ||
		 !e->gone || pb_unit_uses_red_zone(s->an, e->unit))
		flag(s, e->unit, PB_INEXIT_COMPUTED);
	else
		e->exit = !has.inside;
}

/* Classifies the jump of a switch whose table has offsets from the table's address. */
static void classify_switch(struct search *s, struct pb_fn_exit *e, const struct pb_computed *c)
{
	struct pb_targets has = { 0 };

	if (!pb_unit_has_table(s->an, e->unit))
		flag(s, e->unit, PB_INEXIT_COMPUTED);
	else if (c->table && read_targets(s, e, c, &has) == PB_POINTER_LIMIT)
		flag(s, e->unit, PB_INEXIT_LIMIT);
}

/* Classifies a jump to a pointer that is in an unknown array, or in no array. */
static void classify_pointer(struct search *s, struct pb_fn_exit *e, const struct pb_computed *c)
{
	bool goes_on = pb_unit_has_labels(s->an, e->unit);

	/* where the red zone is in use, the stub of an exit would overwrite the program's data, if
	 * the jump stays in its function after all */
	if (!goes_on && e->gone && !c->on_stack && !pb_unit_uses_red_zone(s->an, e->unit))
		e->exit = true;
	/* it is uncertain whether the jump leaves the function */
	else if (!goes_on || (e->gone && (c->on_stack || c->how == PB_COMPUTED_POINTER)))
		flag(s, e->unit, PB_INEXIT_COMPUTED);
}

static void classify_computed(struct search *s, struct pb_fn_exit *e)
{
	struct pb_computed c;

	if (pb_exit_work(s->an, 8)) {
		flag(s, e->unit, PB_INEXIT_LIMIT);
		return;
	}
	pb_computed_jump(s->an, e, &c);
	switch (c.how) {
	case PB_COMPUTED_OFFSETS:
		classify_switch(s, e, &c);
		return;
	case PB_COMPUTED_LABELS:
		if (!pb_label_table_fits(s->an, e->unit, c.label, c.table))
			flag(s, e->unit, PB_INEXIT_COMPUTED);
		return;
	case PB_COMPUTED_SLOT:
		e->exit = e->gone;
		if (!e->gone)
			flag(s, e->unit, PB_INEXIT_FRAME);
		return;
	case PB_COMPUTED_POINTERS: case PB_COMPUTED_POINTER:
		if (c.table)
			classify_array(s, e, &c);
		else
			classify_pointer(s, e, &c);
		return;
	default:
		flag(s, e->unit, PB_INEXIT_COMPUTED);
	}
}

/*
 * True if control may come back from the call at the end of a unit. Compilers end a unit with a
 * call only if the call never returns. Then the code after the unit is another function, or another
 * function's cold part. So it has a symbol, or a branch, a call or an address from elsewhere leads
 * to it. If only this unit leads there, and the frame is the same, the CFI was written by hand: the
 * code to which the call returns has an FDE of its own.
 */
static bool returns_at_end(struct pb_an *an, struct pb_fn_exit *e)
{
	uint64_t next = e->target = past_padding(an, e->target);
	const struct pb_range *r = pb_range_find(an, next);
	long to = pb_cfi_find(&an->cfi, next);

	if (!r || to < 0 || pb_has_symbol(an, next) || is_called(r, next) ||
	    pb_bit_test(r->otherwise, next - r->addr))
		return false;
	for (size_t i = pb_cross_jump_lower(an, next);
	     i < an->cross_jumps.n && an->cross_jumps.v[i].to == next; i++)
		if (pb_exit_work(an, 8) ||
		    pb_cfi_find(&an->cfi, an->cross_jumps.v[i].from) != (long)e->unit)
			return false;
	return same_frame(an, e, &an->cfi.fdes.v[to]);
}

static void classify(struct search *s, struct pb_fn_exit *e)
{
	/* If the unit can't be decoded, its bytes may not even be in the file. So is_live() must
	 * not look for them. */
	if (s->an->units[e->unit] & 1u << PB_INEXIT_DECODE || !is_live(s, e))
		return;
	e->live = !e->after_call || returns_at_end(s->an, e);
	if (!e->live)
		return;
	switch (e->kind) {
	case PB_EXIT_RET:
		e->exit = e->gone;
		if (!e->gone)
			flag(s, e->unit, PB_INEXIT_UNPROVEN);
		break;
	case PB_EXIT_INDIRECT:
		classify_computed(s, e);
		break;
	case PB_EXIT_UNDECODED:
		flag(s, e->unit, PB_INEXIT_DECODE);
		break;
	default:
		classify_jump(s, e);
	}
}

static int by_to(const void *a, const void *b)
{
	const struct pb_exit_edge *x = a, *y = b;

	if (x->to != y->to)
		return x->to < y->to ? -1 : 1;
	return x->from < y->from ? -1 : x->from > y->from;
}

static int by_from(const void *a, const void *b)
{
	const struct pb_exit_edge *x = a, *y = b;

	if (x->from != y->from)
		return x->from < y->from ? -1 : 1;
	return x->to < y->to ? -1 : x->to > y->to;
}

/* If `to` is true, the edges are sorted by `to`: returns the index of the first edge to the unit.
 * If `to` is false, the edges are sorted by `from`: returns the index of the first edge from the
 * unit. */
static size_t edge_lower(const pb_edge_vec *v, uint32_t unit, bool to)
{
	return pb_bisect(i, 0, v->n, (to ? v->v[i].to : v->v[i].from) < unit);
}

static void sort_edges(struct search *s)
{
	pb_edge_vec *v = &s->back;
	size_t n = 0;

	pb_vec_sort(v, by_to);
	for (size_t i = 0; i < v->n; i++)
		if (!n || v->v[n - 1].from != v->v[i].from || v->v[n - 1].to != v->v[i].to)
			v->v[n++] = v->v[i];
	v->n = n;
	pb_vec_append(&s->an->edges, v->v, v->n);
	pb_vec_sort(&s->an->edges, by_from);
}

/* Spreads reasons against the direction of the edges. A unit that has a reason already keeps that
 * reason. */
static void spread(struct search *s)
{
	struct pb_an *an = s->an;
	size_t n = 0;

	for (uint32_t u = 0; u < an->cfi.fdes.n; u++)
		if (an->units[u])
			s->work[n++] = u;
	while (n) {
		uint32_t to = s->work[--n];

		for (size_t i = edge_lower(&s->back, to, true);
		     i < s->back.n && s->back.v[i].to == to; i++) {
			uint32_t from = s->back.v[i].from;

			if (an->units[from])
				continue;
			an->units[from] = an->units[to];
			s->work[n++] = from;
		}
	}
}

long pb_exits_unit(const struct pb_an *an, const struct pb_fn *f)
{
	return f->fde >= 0 ? f->fde : pb_cfi_find(&an->cfi, f->addr);
}

/* Chooses the units whose exits are to be hooked. If a function's own unit has no reason, that unit
 * is chosen. All units that can be reached from that unit by edges are chosen, too. They have no
 * reason either: a reason would have spread to the function's own unit. */
static void want(struct search *s)
{
	struct pb_an *an = s->an;
	size_t n = 0;

	for (size_t i = 0; i < an->fns.n; i++) {
		const struct pb_fn *f = &an->fns.v[i];
		long u = f->refused ? -1 : pb_exits_unit(an, f);

		if (u < 0 || an->units[u] || s->wanted[u])
			continue;
		s->wanted[u] = true;
		s->work[n++] = (uint32_t)u;
	}
	while (n) {
		uint32_t from = s->work[--n];

		for (size_t i = edge_lower(&an->edges, from, false);
		     i < an->edges.n && an->edges.v[i].from == from; i++) {
			uint32_t to = an->edges.v[i].to;

			if (s->wanted[to])
				continue;
			s->wanted[to] = true;
			s->work[n++] = to;
		}
	}
}

const struct pb_exit_edge *pb_exits_edges(const struct pb_an *an, uint32_t unit, size_t *nr)
{
	size_t from = edge_lower(&an->edges, unit, false), to = from;

	while (to < an->edges.n && an->edges.v[to].from == unit)
		to++;
	*nr = to - from;
	return an->edges.v + from;
}

size_t pb_exits_units(const struct pb_an *an, const struct pb_fn *f, uint32_t *units, size_t max)
{
	long u = pb_exits_unit(an, f);
	size_t n = 0;

	if (u < 0)
		return 0;
	units[n++] = (uint32_t)u;
	for (size_t k = 0; k < n; k++)
		for (size_t i = edge_lower(&an->edges, units[k], false);
		     i < an->edges.n && an->edges.v[i].from == units[k]; i++) {
			bool known = false;

			for (size_t m = 0; m < n; m++)
				known |= units[m] == an->edges.v[i].to;
			if (known)
				continue;
			if (n == max)
				return max + 1;
			units[n++] = an->edges.v[i].to;
		}
	return n;
}

static uint8_t verdict(const struct pb_an *an, const struct pb_fn *f)
{
	long u = pb_exits_unit(an, f);

	if (f->refused)
		return PB_INEXIT_REFUSED;
	if (u < 0)
		return PB_INEXIT_UNWIND;
	return an->units[u] ? (uint8_t)__builtin_ctz(an->units[u]) : PB_INEXIT_NOT;
}

static bool find_reasons(struct search *s)
{
	struct pb_an *an = s->an;

	if (!pb_doubts_find(an))
		return false;
	for (size_t i = 0; i < an->ra_reads.n; i++) {
		long u = pb_cfi_find(&an->cfi, an->ra_reads.v[i]);

		if (u >= 0 && pb_writes_slot(an, an->ra_reads.v[i]))
			flag(s, (uint32_t)u, PB_INEXIT_WRITES);
	}
	for (size_t i = 0; i < an->exits.n; i++)
		classify(s, &an->exits.v[i]);
	judge_framed(s);
	/* If a unit holds several functions, the sweep has not noted the jumps between these
	 * functions. So this loop assumes that there are jumps to their entries. */
	for (size_t i = 0; i < an->fns.n; i++) {
		long u = an->fns.v[i].fde < 0 ? pb_exits_unit(an, &an->fns.v[i]) : -1;

		if (u >= 0)
			an->goes_on[u] = true;
	}
	sort_edges(s);
	spread(s);
	return true;
}

static void find_windows(struct search *s, int *err)
{
	struct pb_an *an = s->an;

	want(s);
	*err = pb_exit_windows_make(an, s->wanted);
	for (size_t i = 0; i < an->exits.n; i++) {
		const struct pb_fn_exit *e = &an->exits.v[i];

		if (e->exit && s->wanted[e->unit] && !e->how)
			flag(s, e->unit, e->why);
	}
	spread(s);
}

int pb_exits_make(struct pb_an *an, const char **why)
{
	struct search s = { .an = an };
	int err = -ENOMEM;

	*why = "no memory";
	if (!(an->flags & PB_MODULE_RETURNS))
		return 0;
	s.work = calloc(an->cfi.fdes.n + 1, sizeof(*s.work));
	s.wanted = calloc(an->cfi.fdes.n + 1, sizeof(*s.wanted));
	if (s.work && s.wanted && find_reasons(&s)) {
		err = 0;
		find_windows(&s, &err);
		if (s.back.failed || s.framed.failed || an->edges.failed)
			err = -ENOMEM;
	}
	for (size_t i = 0; !err && i < an->fns.n; i++)
		an->fns.v[i].inexit = verdict(an, &an->fns.v[i]);
	if (!err && an->recipes.n > UINT32_MAX) {
		*why = "too many functions";
		err = -EFBIG;
	}
	pb_vec_free(&s.back);
	pb_vec_free(&s.framed);
	free(s.work);
	free(s.wanted);
	return err;
}
