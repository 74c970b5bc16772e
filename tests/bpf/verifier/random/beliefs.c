/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Records the verifier's states, and compares a run's registers and stack with the states
 * (beliefs.h). */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include "beliefs.h"
#include "world.h"
#include "bpf/verifier/state.h"

/* ---- while a program is verified ------------------------------------------------------------- */

static bool says_nothing(const struct reg *r)
{
	return r->type == NOT_INIT || (r->type == SCALAR && !r->id && pbv_reg_unbounded(r) &&
				       tnum_is_unknown(r->var));
}

/* Returns whether the bounds contradict each other, so that no number satisfies them all. */
static bool contradicts(const struct range *r, struct tnum t)
{
	return range_broken(r) || t.value > r->umax || tnum_max(t) < r->umin;
}

static struct belief *new_belief(struct beliefs *b, struct belief_state *s, uint32_t frame,
				 uint32_t what)
{
	struct belief *n = &b->regs[b->nr];

	if (b->nr == BELIEFS_MOST) {
		b->full = true;
		return NULL;
	}
	b->nr++;
	s->nr++;
	n->frame = (uint8_t)frame;
	n->what = (uint8_t)what;
	n->bytes = n->zeros = 0;
	return n;
}

static void note_reg(struct beliefs *b, struct belief_state *s, uint32_t frame, uint32_t what,
		     const struct reg *r)
{
	struct belief *n = says_nothing(r) ? NULL : new_belief(b, s, frame, what);

	b->contradiction |= r->type != NOT_INIT &&
			    (contradicts(&r->wide, r->var) ||
			     contradicts(&r->low, tnum_low(r->var)));
	if (n)
		n->reg = *r;
}

static void note_slot(struct beliefs *b, struct belief_state *s, uint32_t frame, uint32_t slot,
		      const struct slot *from)
{
	struct belief *n;
	unsigned zeros = 0;

	for (int i = 0; i < SLOT; i++)
		zeros |= (from->type[i] == S_ZERO ? 1u : 0u) << (SLOT - 1 - i);
	if (slot_spilled(from) ? says_nothing(&from->reg) : !zeros)
		return;
	n = new_belief(b, s, frame, 11 + slot);
	if (!n)
		return;
	n->reg = from->reg;
	n->zeros = (uint8_t)zeros;
	if (slot_spilled(from))
		for (int i = SLOT - 1; i >= 0 && from->type[i] == S_SPILL; i--)
			n->bytes++;
}

static void note_state(struct beliefs *b, struct belief_state *s, const struct state *st)
{
	for (uint32_t n = 0; n <= st->cur && !b->full; n++) {
		const struct frame *f = st->frames[n];

		for (uint32_t i = n == st->cur ? 0 : 6; i < 11; i++)
			note_reg(b, s, n, i, &f->regs[i]);
		for (uint32_t i = 0; i < f->nr_slots; i++)
			note_slot(b, s, n, i, &f->slots[i]);
	}
}

static int base_of(const struct env *env)
{
	switch (BPF_CLASS(env->insns[env->insn].code)) {
	case BPF_LDX:
		return env->insns[env->insn].src_reg;
	case BPF_ST: case BPF_STX:
		return env->insns[env->insn].dst_reg;
	default:
		return -1;
	}
}

static int visit(struct pb_bpf_verify *v, const struct env *env)
{
	struct beliefs *b = v->visitor;
	struct belief_state *s = &b->states[b->nr_states];
	int base = base_of(env);

	if (++b->visits > BELIEFS_VISITS || (b->full && !b->bases_only))
		return -E2BIG;
	if (b->full || (b->bases_only && (base < 0 || base == FP)))
		return 0;
	if (b->nr_states == BELIEFS_STATES || env->insn >= GEN_MOST) {
		b->full = true;
		return 0;
	}
	b->nr_states++;
	*s = (struct belief_state){ .first = b->nr, .cur = env->cur->cur,
				    .next = b->of[env->insn] };
	b->of[env->insn] = s;
	if (b->bases_only)
		note_reg(b, s, env->cur->cur, (uint32_t)base, &cur_regs(env)[base]);
	else
		note_state(b, s, env->cur);
	return 0;
}

void beliefs_listen(struct beliefs *b, struct pb_bpf_verify *v)
{
	b->full = b->contradiction = false;
	b->visits = 0;
	b->nr = b->nr_states = 0;
	b->nr_insns = v->nr;
	memset(b->of, 0, sizeof b->of);
	v->visit = visit;
	v->visitor = b;
}

/* ---- while a program runs -------------------------------------------------------------------- */

static bool wrong(char *why, const struct belief *n, uint64_t value, const char *what)
{
	const struct reg *r = &n->reg;
	int at = 0;

	if (!why)
		return false;
	at += snprintf(why + at, 200, n->what < 11 ? "frame %d r%d" : "frame %d fp%d", n->frame,
		       n->what < 11 ? n->what : -8 * (n->what - 10));
	snprintf(why + at, 200 - (size_t)at,
		 " is %#lx, %s: type %d off %d var %#lx/%#lx s %ld..%ld u %#lx..%#lx "
		 "low %d..%d %#x..%#x", (unsigned long)value, what, r->type, r->off, r->var.value,
		 r->var.mask, r->wide.smin, r->wide.smax, r->wide.umin, r->wide.umax,
		 (int)r->low.smin, (int)r->low.smax, (unsigned)r->low.umin, (unsigned)r->low.umax);
	return false;
}

static bool in_range(const struct range *r, uint64_t v, int bits)
{
	int64_t s = sign_extend(v, bits);
	uint64_t u = cut_to(v, bits);

	return u >= r->umin && u <= r->umax && s >= r->smin && s <= r->smax;
}

static bool in_value(const struct reg *r, uint64_t v)
{
	return !((v ^ r->var.value) & ~r->var.mask) && in_range(&r->wide, v, 64) &&
	       in_range(&r->low, v, 32);
}

/* Returns whether a pointer's variable part is within its bounds. The variable part is the value
 * minus the base and minus the fixed offset. */
static bool based(const struct reg *r, uint64_t v, uint64_t base)
{
	uint64_t part = v - base - (uint64_t)(int64_t)r->off;

	/* the verifier doesn't use bounds of a pointer's low half */
	return !((part ^ r->var.value) & ~r->var.mask) && in_range(&r->wide, part, 64);
}

static bool value_fits(const struct reg *r, uint64_t v)
{
	for (int i = 0; i < GEN_MAPS; i++)
		for (uint32_t n = 0; world_maps[i] == r->map && n < r->map->attr.max_entries; n++)
			if (based(r, v, (uint64_t)world_element(i, n)))
				return true;
	return false;
}

static bool packet_fits(const struct reg *r, uint64_t v)
{
	const struct pb_bpf_pkt *p = world_pkt();
	bool meta = r->type == TO_PACKET_META;
	uint64_t base = (uint64_t)(meta ? p->data_meta : p->data),
		 end = (uint64_t)(meta ? p->data : p->data_end);

	if (!based(r, v, base))
		return false;
	if (r->range < 0)
		return r->range == AT_END ? v >= end : v > end;
	return !r->range || v - (uint64_t)(int64_t)r->off + (uint64_t)r->range <= end;
}

static bool memory_fits(const struct machine *m, const struct reg *r, uint64_t v)
{
	struct area areas[WORLD_MOST_AREAS];
	int nr = world_values(areas);
	uint64_t base = v - (uint64_t)(int64_t)r->off - r->var.value;

	if (!tnum_is_const(r->var) || !r->mem_size)
		return true;
	for (int i = 0; i < nr; i++)
		if (base >= (uint64_t)areas[i].at &&
		    base - (uint64_t)areas[i].at + r->mem_size <= areas[i].size)
			return true;
	/* r may also point to the current number of an iterator; the number is in the iterator,
	 * which is on the stack */
	for (int i = 0; i <= watch_frame(m); i++)
		if (watch_reg(m, i, 10) - base <= PB_BPF_STACK)
			return true;
	return false;
}

static bool pointer_fits(const struct machine *m, const struct reg *r, uint64_t v)
{
	if (r->flags & MAYBE_NULL && !v)
		return true;
	switch (r->type) {
	case TO_CTX:
		return based(r, v, (uint64_t)world_ctx());
	case TO_STACK:
		return based(r, v, watch_reg(m, (int)r->frame, 10));
	case TO_MAP_VALUE:
		return value_fits(r, v);
	case TO_PACKET: case TO_PACKET_META:
		return packet_fits(r, v);
	case TO_PACKET_END:
		return v == (uint64_t)world_pkt()->data_end;
	case TO_MEM:
		return memory_fits(m, r, v);
	default:
		return true;
	}
}

static uint64_t held_by(const struct machine *m, const struct belief *n)
{
	uint64_t v;

	if (n->what < 11)
		return watch_reg(m, n->frame, n->what);
	memcpy(&v, (void *)(watch_reg(m, n->frame, 10) - 8ull * (n->what - 10u)), sizeof v);
	return v;
}

/* Returns whether v fits the belief about a narrow spill. Only the low n->bytes bytes of v are from
 * the spilled number. Compares the known bits of these bytes. For 4 bytes, also compares the bounds
 * of the number's low half. */
static bool narrow_fits(const struct belief *n, uint64_t v)
{
	uint64_t keep = n->bytes < 8 ? (1ull << n->bytes * 8) - 1 : ~0ull;

	if ((v ^ n->reg.var.value) & ~n->reg.var.mask & keep)
		return false;
	return n->bytes != 4 || in_range(&n->reg.low, v, 32);
}

static bool zeros_fit(const struct belief *n, uint64_t v)
{
	for (int i = 0; i < 8; i++)
		if (n->zeros >> i & 1 && v >> i * 8 & 0xff)
			return false;
	return true;
}

static bool fits(const struct machine *m, const struct belief *n, char *why)
{
	uint64_t v = held_by(m, n);

	if (n->zeros && !zeros_fit(n, v))
		return wrong(why, n, v, "not zero");
	if (n->what >= 11 && !n->bytes)
		return true;
	if (n->what >= 11 && n->bytes < 8)
		return narrow_fits(n, v) || wrong(why, n, v, "believed, of a narrow spill");
	if (n->reg.type == SCALAR)
		return in_value(&n->reg, v) || wrong(why, n, v, "believed");
	return pointer_fits(m, &n->reg, v) || wrong(why, n, v, "a pointer believed");
}

/* Returns a number minus the delta of its link. For linked numbers, the differences must be
 * equal. */
static uint64_t link_of(const struct machine *m, const struct belief *n)
{
	return held_by(m, n) - (uint64_t)(int64_t)(int32_t)n->reg.raw[0];
}

static bool copies_fit(const struct machine *m, const struct belief *n, const struct belief *end,
		       char *why)
{
	for (; n < end; n++) {
		if (n->reg.type != SCALAR || !n->reg.id || (n->what >= 11 && n->bytes < 8))
			continue;
		for (const struct belief *o = n + 1; o < end; o++)
			if (o->reg.type == SCALAR && o->reg.id == n->reg.id &&
			    !(o->what >= 11 && o->bytes < 8) && link_of(m, o) != link_of(m, n))
				return wrong(why, o, held_by(m, o), "believed a copy of another");
	}
	return true;
}

static bool state_fits(const struct beliefs *b, const struct belief_state *s,
		       const struct machine *m, char *why)
{
	const struct belief *n = &b->regs[s->first], *end = n + s->nr;

	if ((int)s->cur != watch_frame(m))
		return false;
	for (; n < end; n++)
		if (!fits(m, n, why))
			return false;
	return copies_fit(m, &b->regs[s->first], end, why);
}

bool beliefs_check(const struct beliefs *b, const struct machine *m, uint32_t insn, char *why)
{
	const struct belief_state *s = insn < GEN_MOST ? b->of[insn] : NULL;

	if (b->full || (b->bases_only && !s))
		return true;
	for (; s; s = s->next)
		if (state_fits(b, s, m, NULL))
			return true;
	snprintf(why, 200, "no path was thought to come here");
	for (s = b->of[insn]; s; s = s->next)
		if (!state_fits(b, s, m, why))
			return false;
	return false;
}
