/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Conditional jumps: which way it goes if that is known, and what each way says of
 * the operands. Comparisons are made of two: (unsigned or signed) and (greater, or
 * greater or equal); the others are these with the ways, or the operands, changed.
 */
#include "bpf/verifier/env.h"

#define UNKNOWN (-1)

static unsigned flip(unsigned op)
{
	switch (op) {
	case BPF_JGT: return BPF_JLT;
	case BPF_JLT: return BPF_JGT;
	case BPF_JGE: return BPF_JLE;
	case BPF_JLE: return BPF_JGE;
	case BPF_JSGT: return BPF_JSLT;
	case BPF_JSLT: return BPF_JSGT;
	case BPF_JSGE: return BPF_JSLE;
	case BPF_JSLE: return BPF_JSGE;
	default: return op;
	}
}

static unsigned opposite(unsigned op)
{
	switch (op) {
	case BPF_JEQ: return BPF_JNE;
	case BPF_JNE: return BPF_JEQ;
	case BPF_JGT: return BPF_JLE;
	case BPF_JLE: return BPF_JGT;
	case BPF_JGE: return BPF_JLT;
	case BPF_JLT: return BPF_JGE;
	case BPF_JSGT: return BPF_JSLE;
	case BPF_JSLE: return BPF_JSGT;
	case BPF_JSGE: return BPF_JSLT;
	case BPF_JSLT: return BPF_JSGE;
	default: return 0;
	}
}

/* ---- which way ---------------------------------------------------------------------------- */

static int which(bool yes, bool no)
{
	return yes ? 1 : no ? 0 : UNKNOWN;
}

/* Of all values that it may have, does the comparison hold? */
static int decide(const struct reg *r, uint64_t v, unsigned op, int bits)
{
	const struct range *g = bits == 64 ? &r->wide : &r->low;
	struct tnum t = bits == 64 ? r->var : tnum_low(r->var);
	uint64_t u = cut_to(v, bits);
	int64_t s = sign_extend(v, bits);

	switch (op) {
	case BPF_JEQ:
		return tnum_is_const(t) ? t.value == u : UNKNOWN;
	case BPF_JNE:
		return tnum_is_const(t) ? t.value != u : UNKNOWN;
	case BPF_JSET:
		return which(t.value & u, !(tnum_max(t) & u));
	case BPF_JGT:
		return which(g->umin > u, g->umax <= u);
	case BPF_JGE:
		return which(g->umin >= u, g->umax < u);
	case BPF_JLT:
		return which(g->umax < u, g->umin >= u);
	case BPF_JLE:
		return which(g->umax <= u, g->umin > u);
	case BPF_JSGT:
		return which(g->smin > s, g->smax <= s);
	case BPF_JSGE:
		return which(g->smin >= s, g->smax < s);
	case BPF_JSLT:
		return which(g->smax < s, g->smin >= s);
	default:
		return which(g->smax <= s, g->smin > s);
	}
}

static bool never_null(const struct reg *r)
{
	return !r->flags && (r->type == TO_SOCKET || r->type == TO_TCP_SOCK || r->type == TO_MAP_VALUE ||
			     r->type == TO_MAP_KEY || r->type == TO_SOCK_COMMON);
}

static int decide_any(const struct reg *r, uint64_t v, unsigned op, int bits)
{
	if (r->type == SCALAR)
		return decide(r, v, op, bits);
	if (v || !never_null(r))
		return UNKNOWN;
	return op == BPF_JEQ ? 0 : op == BPF_JNE ? 1 : UNKNOWN;
}

/* A packet pointer that was found at or behind the end stays there. */
static int decide_packet(const struct reg *dst, const struct reg *src, unsigned op)
{
	const struct reg *p = dst;

	if (src->type != TO_PACKET_END) {
		if (dst->type != TO_PACKET_END)
			return UNKNOWN;
		p = src;
		op = flip(op);
	}
	if (p->range >= 0)
		return UNKNOWN;
	if ((op == BPF_JLE || op == BPF_JGT) && p->range == BEHIND_END)
		return op == BPF_JGT;
	if (op == BPF_JLT || op == BPF_JGE)
		return op == BPF_JGE;
	return UNKNOWN;
}

static int decide_insn(const struct bpf_insn *insn, const struct reg *dst, const struct reg *src, int bits)
{
	unsigned op = BPF_OP(insn->code);

	if (!src)
		return decide_any(dst, (uint64_t)(int64_t)insn->imm, op, bits);
	if (src->type == SCALAR && tnum_is_const(bits == 64 ? src->var : tnum_low(src->var)))
		return decide_any(dst, cut_to(src->var.value, bits), op, bits);
	if (bits == 64 && reg_is_packet_or_end(dst) && reg_is_packet_or_end(src))
		return decide_packet(dst, src, op);
	return UNKNOWN;
}

/* ---- what a way says ------------------------------------------------------------------------- */

static uint64_t greater(uint64_t a, uint64_t b) { return a > b ? a : b; }
static uint64_t less(uint64_t a, uint64_t b) { return a < b ? a : b; }
static int64_t sgreater(int64_t a, int64_t b) { return a > b ? a : b; }
static int64_t sless(int64_t a, int64_t b) { return a < b ? a : b; }

/* r OP v holds. Bounds may contradict each other afterwards: then the way can't be gone,
 * and arithmetic wraps around as it does there. */
static void holds(struct reg *r, struct tnum *t, uint64_t v, unsigned op, int bits)
{
	struct range *g = bits == 64 ? &r->wide : &r->low;
	uint64_t u = cut_to(v, bits);
	int64_t s = sign_extend(v, bits);

	switch (op) {
	case BPF_JEQ:
		if (bits == 64)
			reg_known_value(r, v);
		else
			reg_known_low(r, (uint32_t)v);
		*t = bits == 64 ? r->var : tnum_low(r->var);
		break;
	case BPF_JSET:
		if (u && !(u & (u - 1)))
			*t = tnum_or(*t, tnum_of(u));
		break;
	case BPF_JGT:
		g->umin = greater(g->umin, cut_to(u + 1, bits));
		break;
	case BPF_JGE:
		g->umin = greater(g->umin, u);
		break;
	case BPF_JLT:
		g->umax = less(g->umax, cut_to(u - 1, bits));
		break;
	case BPF_JLE:
		g->umax = less(g->umax, u);
		break;
	case BPF_JSGT:
		g->smin = sgreater(g->smin, sign_extend((uint64_t)s + 1, bits));
		break;
	case BPF_JSGE:
		g->smin = sgreater(g->smin, s);
		break;
	case BPF_JSLT:
		g->smax = sless(g->smax, sign_extend((uint64_t)s - 1, bits));
		break;
	case BPF_JSLE:
		g->smax = sless(g->smax, s);
		break;
	}
}

static void finish(struct reg *r, struct tnum t, int bits)
{
	if (bits == 64) {
		r->var = t;
		reg_low_from_whole(r);
	} else {
		r->var = tnum_or(tnum_high(r->var), t);
		reg_whole_from_low(r);
	}
}

static void learn(struct reg *taken, struct reg *not_taken, uint64_t v, unsigned op, int bits)
{
	struct tnum yes = bits == 64 ? taken->var : tnum_low(taken->var);
	struct tnum no = bits == 64 ? not_taken->var : tnum_low(not_taken->var);

	if (not_taken->type != SCALAR)
		return;
	holds(taken, &yes, v, op, bits);
	if (op == BPF_JSET) {
		/* none of the bits; the ranges are found anew, for the way may be impossible */
		reg_any_value(not_taken);
		no = tnum_and(no, tnum_of(~cut_to(v, bits)));
	} else {
		holds(not_taken, &no, v, opposite(op), bits);
	}
	finish(not_taken, no, bits);
	finish(taken, yes, bits);
}

/* Two registers are equal. */
static void learn_equal(struct reg *a, struct reg *b)
{
	a->wide.umin = b->wide.umin = greater(a->wide.umin, b->wide.umin);
	a->wide.umax = b->wide.umax = less(a->wide.umax, b->wide.umax);
	a->wide.smin = b->wide.smin = sgreater(a->wide.smin, b->wide.smin);
	a->wide.smax = b->wide.smax = sless(a->wide.smax, b->wide.smax);
	a->var = b->var = tnum_both(a->var, b->var);
	reg_sync(a);
	reg_sync(b);
}

/* What is known of one is known of its copies. */
static void tell_copies(struct state *st, const struct reg *known)
{
	if (!known->id)
		return;
	for_each_reg(st, f, r)
		if (r != known && r->type == SCALAR && r->id == known->id)
			reg_copy(r, known);
}

/* Copies are noted for the walk back; beyond the room for them they are copies no more. */
static void link_copies(struct state *st, uint32_t id, struct step *step)
{
	if (!id)
		return;
	for_each_reg(st, f, r) {
		if (r->type != SCALAR || r->id != id)
			continue;
		if (step->nr_linked == MAX_LINKED)
			r->id = 0;
		else
			step->linked[step->nr_linked++] =
				(uint16_t)(f->number << 8 | (r_n < 11 ? r_n : 0x80 | (r_n - 11)));
	}
}

static int note_copies(struct env *env, const struct reg *dst, const struct reg *src)
{
	uint32_t id = dst->type == SCALAR ? dst->id : 0, other = src && src->type == SCALAR ? src->id : 0;
	struct step step = { 0 }, *last;

	if (!id && !other)
		return 0;
	link_copies(env->cur, id, &step);
	if (other != id)
		link_copies(env->cur, other, &step);
	if (step.nr_linked < 2)
		return 0;
	if (step_push(env))
		return -ENOMEM;
	last = &env->cur->steps[env->cur->nr_steps - 1];
	last->nr_linked = step.nr_linked;
	memcpy(last->linked, step.linked, sizeof step.linked);
	return 0;
}

static void learn_registers(struct reg *dst, struct reg *src, struct reg *dst2, struct reg *src2, unsigned op, int bits)
{
	bool src_known = tnum_is_const(bits == 64 ? src->var : tnum_low(src->var));
	bool dst_known = tnum_is_const(bits == 64 ? dst->var : tnum_low(dst->var));

	if (src_known || tnum_is_const(src->var))
		learn(dst2, dst, src->var.value, op, bits);
	else if (dst_known || tnum_is_const(dst->var))
		learn(src2, src, dst->var.value, flip(op), bits);
	else if (bits == 64 && op == BPF_JEQ)
		learn_equal(src2, dst2);
	else if (bits == 64 && op == BPF_JNE)
		learn_equal(src, dst);
}

/* ---- NULL or not -------------------------------------------------------------------------------- */

static void known_null(struct reg *r)
{
	r->type = SCALAR;
	r->flags = 0;
	r->id = r->ref = 0;
}

static void known_pointer(struct env *env, struct reg *r)
{
	const struct pb_bpf_map *m = r->map;

	r->flags &= (uint8_t)~MAYBE_NULL;
	if (r->type == TO_MAP_VALUE) {
		switch (m->attr.type) {
		case BPF_MAP_TYPE_ARRAY_OF_MAPS: case BPF_MAP_TYPE_HASH_OF_MAPS:
			r->type = MAP_PTR;
			r->map = inner_map(env, m);
			if (r->map->types.timer_off >= 0)
				r->map_uid = r->id;
			break;
		case BPF_MAP_TYPE_XSKMAP:
			r->type = TO_XDP_SOCK;
			break;
		case BPF_MAP_TYPE_SOCKMAP: case BPF_MAP_TYPE_SOCKHASH:
			r->type = TO_SOCKET;
			break;
		}
	}
	/* values with a lock are told apart */
	if (!(reg_is(r, TO_MAP_VALUE) && r->map->types.spin_lock_off >= 0))
		r->id = 0;
}

static void learn_null(struct env *env, struct state *st, unsigned n, bool null)
{
	const struct reg *of = &st->frames[st->cur]->regs[n];
	uint32_t id = of->id, ref = of->ref;

	if (null && ref && ref == id)
		(void)ref_release_id(st->frames[st->cur], id);
	for_each_reg(st, f, r) {
		if (!(r->flags & MAYBE_NULL) || r->id != id || !id || r->off || !tnum_is(r->var, 0))
			continue;
		if (null)
			known_null(r);
		else
			known_pointer(env, r);
	}
}

/* ---- packets ---------------------------------------------------------------------------------------- */

/* The bytes before p are there; one more if p is less than the end. */
static void found_bytes(struct state *st, const struct reg *p, bool one_more)
{
	const struct reg at = *p;
	int32_t range = at.off + one_more;

	if (at.off < 0 || (!at.off && one_more))
		return;
	if (at.wide.umax > MAX_PACKET_OFF || at.wide.umax + (uint64_t)at.off > MAX_PACKET_OFF)
		return;
	for_each_reg(st, f, r)
		if (r->type == at.type && r->id == at.id && r->range < range)
			r->range = range;
}

static void found_end(struct state *st, unsigned n, bool behind)
{
	struct reg *r = &st->frames[st->cur]->regs[n];

	if (r->type == TO_PACKET)
		r->range = behind ? BEHIND_END : AT_END;
}

static bool at_start(const struct reg *r)
{
	return r->type == TO_PACKET && !r->id && !r->off && tnum_is(r->var, 0);
}

/* p is compared with where it may not go beyond: metadata with the packet, that with its end. */
static bool with_its_end(const struct reg *p, const struct reg *end)
{
	return (p->type == TO_PACKET && end->type == TO_PACKET_END) ||
	       (p->type == TO_PACKET_META && at_start(end));
}

static bool learn_packet(const struct bpf_insn *insn, const struct reg *dst, const struct reg *src,
			 struct state *here, struct state *there)
{
	unsigned op = BPF_OP(insn->code), n = insn->dst_reg;
	const struct reg *p = dst;
	bool inside_here;

	if (BPF_SRC(insn->code) != BPF_X || BPF_CLASS(insn->code) == BPF_JMP32 ||
	    (op != BPF_JGT && op != BPF_JLT && op != BPF_JGE && op != BPF_JLE))
		return false;
	if (!with_its_end(dst, src)) {
		if (!with_its_end(src, dst))
			return false;
		p = src;
		n = insn->src_reg;
		op = flip(op);
	}
	/* p > end and p >= end: what follows (here) is inside */
	inside_here = op == BPF_JGT || op == BPF_JGE;
	/* p > end: elsewhere p is behind it, here p <= end. p >= end: here p < end */
	found_bytes(inside_here ? here : there, p, op == BPF_JGE || op == BPF_JLT);
	found_end(inside_here ? there : here, n, op == BPF_JGT || op == BPF_JLE);
	return true;
}

/* ---- the instruction ----------------------------------------------------------------------------------- */

static int check_operands(struct env *env, const struct bpf_insn *insn)
{
	const struct reg *dst = &cur_regs(env)[insn->dst_reg], *src = &cur_regs(env)[insn->src_reg];
	int err = reg_use(env, insn->dst_reg, READ);

	if (err || BPF_SRC(insn->code) == BPF_K)
		return err;
	err = reg_use(env, insn->src_reg, READ);
	if (!err && leaks(env, insn->src_reg) && !(reg_is_packet_or_end(dst) && reg_is_packet_or_end(src)))
		err = refuse(env, EACCES, "R%d pointer comparison prohibited\n", insn->src_reg);
	return err;
}

static int go_one_way(struct env *env, const struct bpf_insn *insn, bool taken, const struct reg *dst,
		      const struct reg *src)
{
	uint32_t target = env->insn + 1 + (uint32_t)(int32_t)insn->off;
	int err = dst->type == SCALAR ? precise_reg(env, insn->dst_reg) : 0;

	if (!err && src && src->type == SCALAR)
		err = precise_reg(env, insn->src_reg);
	if (err)
		return err;
	/* a processor may go the other one for a while */
	if (!env->trust_v1 && !speculate(env, insn, taken ? env->insn + 1 : target))
		return -EFAULT;
	log_insn_state(env);
	if (taken)
		env->insn = target - 1;
	return 0;
}

int check_branch(struct env *env, const struct bpf_insn *insn)
{
	struct reg *regs = cur_regs(env), *dst = &regs[insn->dst_reg], *regs2;
	struct reg *src = BPF_SRC(insn->code) == BPF_X ? &regs[insn->src_reg] : NULL;
	int bits = BPF_CLASS(insn->code) == BPF_JMP32 ? 32 : 64, way, err = check_operands(env, insn);
	unsigned op = BPF_OP(insn->code);
	struct state *there;

	if (err)
		return err;
	way = decide_insn(insn, dst, src, bits);
	if (way != UNKNOWN)
		return go_one_way(env, insn, way, dst, src);
	err = note_copies(env, dst, src);
	if (err)
		return err;
	there = branch_push(env, env->insn + 1 + (uint32_t)(int32_t)insn->off, env->insn, false);
	if (!there)
		return -EFAULT;
	regs2 = there->frames[there->cur]->regs;
	if (src && dst->type == SCALAR && src->type == SCALAR) {
		learn_registers(dst, src, &regs2[insn->dst_reg], &regs2[insn->src_reg], op, bits);
		tell_copies(env->cur, src);
		tell_copies(there, &regs2[insn->src_reg]);
	} else if (!src && dst->type == SCALAR) {
		learn(&regs2[insn->dst_reg], dst, (uint64_t)(int64_t)insn->imm, op, bits);
	}
	if (dst->type == SCALAR) {
		tell_copies(env->cur, dst);
		tell_copies(there, &regs2[insn->dst_reg]);
	}
	if (!src && bits == 64 && !insn->imm && (op == BPF_JEQ || op == BPF_JNE) && dst->flags & MAYBE_NULL) {
		learn_null(env, env->cur, insn->dst_reg, op == BPF_JNE);
		learn_null(env, there, insn->dst_reg, op == BPF_JEQ);
	} else if (!learn_packet(insn, dst, &regs[insn->src_reg], env->cur, there) && leaks(env, insn->dst_reg)) {
		return refuse(env, EACCES, "R%d pointer comparison prohibited\n", insn->dst_reg);
	}
	log_insn_state(env);
	return 0;
}
