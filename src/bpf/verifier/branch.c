/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Conditional jumps. Decides which branch is taken, if that is known. Otherwise records what each
 * branch implies for the operands, their copies, pointers that may be NULL, and packets. compare.c
 * handles numbers.
 */
#include "bpf/verifier/access.h"
#include "bpf/verifier/branch.h"
#include "bpf/verifier/compare.h"
#include "bpf/verifier/constant.h"
#include "bpf/verifier/env.h"
#include "bpf/verifier/live.h"
#include "bpf/verifier/log.h"
#include "bpf/verifier/precise.h"
#include "bpf/verifier/scalar.h"
#include "bpf/verifier/speculate.h"
#include "bpf/verifier/state.h"

#define UNKNOWN COMPARE_UNKNOWN

/* ---- which branch -------------------------------------------------------------------------- */

/* Returns true only if the pointer can't be 0: its base isn't NULL, and its offset is too small for
 * a wraparound. Returns false for some types whose pointers can't be 0, for example TO_STACK. */
static bool never_null(const struct reg *r)
{
	if (r->flags & MAYBE_NULL || r->wide.smin <= -MAX_VAR_OFF || r->wide.smax >= MAX_VAR_OFF)
		return false;
	switch (r->type) {
	case TO_SOCKET: case TO_TCP_SOCK: case TO_XDP_SOCK: case TO_SOCK_COMMON: case TO_MAP_VALUE:
	case TO_MAP_KEY:
	case TO_MEM: case TO_BUF: case MAP_PTR:
		return true;
	default:
		return false;
	}
}

/* Decides a comparison of a pointer with a number. */
static int decide_null(const struct reg *r, const struct reg *number, unsigned op, int bits)
{
	/* a 32-bit jump compares only the low half of an address, which may be 0 */
	if (bits != 64 || !tnum_is(number->var, 0) || !never_null(r))
		return UNKNOWN;
	return op == BPF_JEQ ? 0 : op == BPF_JNE ? 1 : UNKNOWN;
}

/* Decides a comparison of a packet pointer with the packet's end. The outcome is known only if an
 * earlier comparison has found the pointer at or after the end (AT_END, AFTER_END). */
static int decide_packet(const struct reg *dst, const struct reg *src, unsigned op)
{
	const struct reg *p = dst;

	if (src->type != TO_PACKET_END) {
		if (dst->type != TO_PACKET_END)
			return UNKNOWN;
		p = src;
		op = pbv_compare_flip(op);
	}
	if (p->range >= 0)
		return UNKNOWN;
	if ((op == BPF_JLE || op == BPF_JGT) && p->range == AFTER_END)
		return op == BPF_JGT;
	if (op == BPF_JLT || op == BPF_JGE)
		return op == BPF_JGE;
	return UNKNOWN;
}

static int decide_insn(const struct reg *dst, const struct reg *src, unsigned op, int bits)
{
	if (dst->type == SCALAR && src->type == SCALAR)
		return pbv_compare_decide(dst, src, op, bits);
	if (src->type == SCALAR)
		return decide_null(dst, src, op, bits);
	if (dst->type == SCALAR)
		return decide_null(src, dst, op, bits);
	if (bits == 64 && reg_is_packet_or_end(dst) && reg_is_packet_or_end(src))
		return decide_packet(dst, src, op);
	return UNKNOWN;
}

/* ---- what a branch implies ----------------------------------------------------------------- */

/* Sets r to the value of `known` plus the difference between the deltas of r and `known`. */
static void propagate_to_copy(struct reg *r, const struct reg *known)
{
	int64_t delta = (int64_t)r->delta - known->delta;
	const struct reg link = *r;
	struct reg add;

	pbv_reg_copy(r, known);
	r->delta = link.delta;
	r->moved = link.moved;
	if (!delta)
		return;
	memset(&add, 0, sizeof add);
	pbv_reg_make_const(&add, (uint64_t)delta);
	pbv_scalar_add(r, &add);
	pbv_reg_sync(r);
}

/* Updates the copies of a scalar with everything that is known of the scalar. */
static void propagate_to_copies(struct state *st, const struct reg *known)
{
	if (!known->id)
		return;
	for_each_reg(st, f, r)
		if (r != known && r->type == SCALAR && r->id == known->id)
			propagate_to_copy(r, known);
}

/* Stores in `step` the registers and slots that have this id. Backward walks need them (precise.c).
 * The copies in the innermost frame come first. If the step has no room for a copy, unlinks the
 * copy. */
static void link_copies(struct state *st, uint32_t id, struct step *step)
{
	for (int n = (int)st->cur; n >= 0 && id; n--) {
		struct frame *f = st->frames[n];

		for_each_reg_of(f, r) {
			if (r->type != SCALAR || r->id != id)
				continue;
			if (step->nr_linked == MAX_LINKED)
				reg_unlink(r);
			else
				step->linked[step->nr_linked++] =
					(uint16_t)(f->number << 8 |
						   (r_n < 11 ? r_n : 0x80 | (r_n - 11)));
		}
	}
}

static int note_copies(struct env *env, const struct reg *dst, const struct reg *src)
{
	uint32_t id = dst->type == SCALAR ? dst->id : 0, other = src &&
		      src->type == SCALAR ? src->id : 0;
	struct step step = { 0 }, *last;

	if (!id && !other)
		return 0;
	link_copies(env->cur, id, &step);
	if (other != id)
		link_copies(env->cur, other, &step);
	if (step.nr_linked < 2)
		return 0;
	if (pbv_step_push(env))
		return -ENOMEM;
	last = &env->cur->steps[env->cur->nr_steps - 1];
	last->nr_linked = step.nr_linked;
	memcpy(last->linked, step.linked, sizeof step.linked);
	return 0;
}

/*
 * Narrows the two scalars of a comparison: dst and src on the path that falls through, dst2 and
 * src2 on the path that takes the jump. The path that takes the jump is the newest waiting branch.
 * When this branch begins, the log may be cut back to the branch's log_at. The messages about dst2
 * and src2 must stay, because they may explain why this path is refused. So log_at is set after
 * these messages.
 */
static int learn_scalars(struct env *env, struct reg *dst, struct reg *src, struct reg *dst2,
			 struct reg *src2, unsigned op, int bits)
{
	int err;

	pbv_compare_learn(dst, src, op, false, bits);
	pbv_compare_learn(dst2, src2, op, true, bits);
	err = pbv_check_consistent(env, dst2, "true_reg1");
	if (!err)
		err = pbv_check_consistent(env, src2, "true_reg2");
	if (err)
		return err;
	env->waiting->log_at = env->v->log ? pb_bpf_text_at(env->v->log) : 0;
	err = pbv_check_consistent(env, dst, "false_reg1");
	return err ? err : pbv_check_consistent(env, src, "false_reg2");
}

/* ---- NULL or not --------------------------------------------------------------------------- */

static void known_null(struct reg *r)
{
	r->type = SCALAR;
	r->flags = 0;
	r->id = r->ref = 0;
	r->raw[0] = r->raw[1] = 0;	/* these words are 0 in a scalar without id */
}

void pbv_known_pointer(struct env *env, struct reg *r)
{
	const struct pb_bpf_map *m = r->map;

	r->flags &= (uint8_t)~MAYBE_NULL;
	if (r->type == TO_MAP_VALUE) {
		switch (m->attr.type) {
		case BPF_MAP_TYPE_ARRAY_OF_MAPS: case BPF_MAP_TYPE_HASH_OF_MAPS:
			r->type = MAP_PTR;
			r->map = pbv_inner_map(env, m);
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
	/* only pointers to values with a lock keep their id: it distinguishes the values */
	if (!(reg_is(r, TO_MAP_VALUE) && r->map->types.spin_lock_off >= 0))
		r->id = 0;
}

static void learn_null(struct env *env, struct state *st, unsigned n, bool null)
{
	const struct reg *of = &st->frames[st->cur]->regs[n];
	uint32_t id = of->id, ref = of->ref;

	if (null && ref && ref == id)
		(void)pbv_ref_release_id(st->frames[st->cur], id);
	for_each_reg(st, f, r) {
		if (!(r->flags & MAYBE_NULL) || r->id != id || !id || r->off || !tnum_is(r->var, 0))
			continue;
		if (null)
			known_null(r);
		else
			pbv_known_pointer(env, r);
	}
}

/* The two pointers are equal. If one pointer can't be NULL, the other can't be NULL, either. */
static void learn_equal_pointers(struct env *env, struct reg *a, struct reg *b)
{
	struct reg *unsure = a->flags & MAYBE_NULL ? a : b, *sure = unsure == a ? b : a;

	if (unsure->flags & MAYBE_NULL && !(sure->flags & MAYBE_NULL) && sure->type != SCALAR &&
	    !sure->off && tnum_is(sure->var, 0) && sure->type != TO_BTF && unsure->type != TO_BTF)
		pbv_known_pointer(env, unsure);
}

/* ---- packets ------------------------------------------------------------------------------- */

/* The bytes before p are in the packet. If one_more is set, p is less than the end, so the byte at
 * p is in the packet, too. */
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

static void found_end(struct state *st, unsigned n, bool after)
{
	struct reg *r = &st->frames[st->cur]->regs[n];

	if (r->type == TO_PACKET)
		r->range = after ? AFTER_END : AT_END;
}

static bool at_start(const struct reg *r)
{
	return r->type == TO_PACKET && !r->id && !r->off && tnum_is(r->var, 0);
}

/* Returns whether `end` is the limit of p. The limit of metadata is the packet's start. The limit
 * of packet data is the packet's end. */
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
		op = pbv_compare_flip(op);
	}
	/* `there` is the path that takes the jump, `here` is the path that falls through. A jump
	 * that tests p > end or p >= end isn't taken if p is inside the packet */
	inside_here = op == BPF_JGT || op == BPF_JGE;
	/* p > end: `there` has p > end, `here` has p <= end. p >= end: `there` has p >= end, `here`
	 * has p < end. For p < end and p <= end, the two paths change places */
	found_bytes(inside_here ? here : there, p, op == BPF_JGE || op == BPF_JLT);
	found_end(inside_here ? there : here, n, op == BPF_JGT || op == BPF_JLE);
	return true;
}

/* ---- the instruction ----------------------------------------------------------------------- */

static int check_operands(struct env *env, const struct bpf_insn *insn)
{
	const struct reg *dst = &cur_regs(env)[insn->dst_reg], *src = &cur_regs(env)[insn->src_reg];
	int err = pbv_reg_use(env, insn->dst_reg, READ);

	if (err || BPF_SRC(insn->code) == BPF_K)
		return err;
	err = pbv_reg_use(env, insn->src_reg, READ);
	if (!err && pbv_leaks(env, insn->src_reg) &&
	    !(reg_is_packet_or_end(dst) && reg_is_packet_or_end(src)))
		err = refuse(env, EACCES, "R%d pointer comparison prohibited\n", insn->src_reg);
	return err;
}

/* Records that an operand of the comparison is a pointer to the stack. A backward walk doesn't
 * follow this operand. */
static int note_stack(struct env *env, const struct reg *dst, const struct reg *src)
{
	struct step *last;

	if (!src || (dst->type != TO_STACK && src->type != TO_STACK))
		return 0;
	if (pbv_step_push(env))
		return -ENOMEM;
	last = &env->cur->steps[env->cur->nr_steps - 1];
	last->dst_stack = dst->type == TO_STACK;
	last->src_stack = src->type == TO_STACK;
	return 0;
}

static int follow_one_branch(struct env *env, const struct bpf_insn *insn, bool taken,
			     const struct reg *dst, const struct reg *src)
{
	uint32_t target = env->insn + 1 + (uint32_t)(int32_t)insn->off;
	int err = dst->type == SCALAR ? pbv_precise_reg(env, insn->dst_reg) : 0;

	if (!err && src && src->type == SCALAR)
		err = pbv_precise_reg(env, insn->src_reg);
	if (err)
		return err;
	/* a processor may follow the other branch by speculation */
	if (!env->trust_v1 && !pbv_speculate(env, insn, taken ? env->insn + 1 : target))
		return -EFAULT;
	pbv_log_insn_state(env);
	if (taken)
		env->insn = target - 1;
	return 0;
}

int pbv_check_branch(struct env *env, const struct bpf_insn *insn)
{
	struct reg *regs = cur_regs(env), *dst = &regs[insn->dst_reg], *regs2, known[2];
	struct reg *src = BPF_SRC(insn->code) == BPF_X ? &regs[insn->src_reg] : NULL;
	int bits = BPF_CLASS(insn->code) == BPF_JMP32 ? 32 : 64, outcome,
		err = check_operands(env, insn);
	unsigned op = BPF_OP(insn->code);
	struct state *there;

	if (!err)
		err = note_stack(env, dst, src);
	if (err)
		return err;
	memset(known, 0, sizeof known);
	pbv_reg_make_const(&known[0], (uint64_t)(int64_t)insn->imm);
	pbv_reg_make_const(&known[1], (uint64_t)(int64_t)insn->imm);
	outcome = decide_insn(dst, src ? src : known, op, bits);
	if (outcome != UNKNOWN)
		return follow_one_branch(env, insn, outcome, dst, src);
	err = note_copies(env, dst, src);
	if (err)
		return err;
	there = pbv_branch_push(env, env->insn + 1 + (uint32_t)(int32_t)insn->off, env->insn,
				false);
	if (!there)
		return -EFAULT;
	regs2 = there->frames[there->cur]->regs;
	if (dst->type == SCALAR && (!src || src->type == SCALAR)) {
		err = learn_scalars(env, dst, src ? src : &known[0], &regs2[insn->dst_reg],
				    src ? &regs2[insn->src_reg] : &known[1], op, bits);
		if (err)
			return err;
		if (src) {
			propagate_to_copies(env->cur, src);
			propagate_to_copies(there, &regs2[insn->src_reg]);
		}
		propagate_to_copies(env->cur, dst);
		propagate_to_copies(there, &regs2[insn->dst_reg]);
	}
	if (!src && bits == 64 && !insn->imm && (op == BPF_JEQ || op == BPF_JNE) &&
	    dst->flags & MAYBE_NULL) {
		learn_null(env, env->cur, insn->dst_reg, op == BPF_JNE);
		learn_null(env, there, insn->dst_reg, op == BPF_JEQ);
	} else if (src && bits == 64 && dst->type != SCALAR && src->type != SCALAR &&
		   (op == BPF_JEQ || op == BPF_JNE) && !pbv_leaks(env, insn->dst_reg)) {
		learn_equal_pointers(env, op == BPF_JEQ ? &regs2[insn->dst_reg] : dst,
				     op == BPF_JEQ ? &regs2[insn->src_reg] : src);
	} else if (!learn_packet(insn, dst, &regs[insn->src_reg], env->cur, there) &&
		   pbv_leaks(env, insn->dst_reg)) {
		return refuse(env, EACCES, "R%d pointer comparison prohibited\n", insn->dst_reg);
	}
	pbv_log_insn_state(env);
	return 0;
}
