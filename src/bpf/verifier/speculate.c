/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Speculative execution (Spectre v1). A program without CAP_PERFMON shares the address space with
 * code that it must not spy on. So pointers must stay within bounds even after a mispredicted
 * branch. For this, a number that is added to a pointer, or subtracted from it, is masked: a number
 * beyond the limit becomes 0. This file finds each mask's kind and limit. pb_bpf_resolve() emits
 * the masks. The processor may also mispredict a branch whose outcome is certain. So the verifier
 * follows the other side, too, as a speculative path.
 */
#include "bpf/verifier/env.h"
#include "bpf/verifier/log.h"
#include "bpf/verifier/speculate.h"
#include "bpf/verifier/state.h"

enum reason { BOUNDS = 1, TYPE, PATHS, LIMIT, NO_ROOM };

static int explain(struct env *env, const struct bpf_insn *insn, enum reason why, bool off_in_dst)
{
	static const char with_it[] = "pointer arithmetic with it prohibited for !root";
	const char *op = BPF_OP(insn->code) == BPF_ADD ? "add" : "sub";
	int dst = insn->dst_reg, src = insn->src_reg;

	switch (why) {
	case BOUNDS:
		return refuse(env, EACCES, "R%d has unknown scalar with mixed signed bounds, %s\n",
			      off_in_dst ? dst : src, with_it);
	case TYPE:
		return refuse(env, EACCES, "R%d has pointer with unsupported alu operation, %s\n",
			      off_in_dst ? src : dst, with_it);
	case PATHS:
		return refuse(env, EACCES,
			      "R%d tried to %s from different maps, paths or scalars, %s\n", dst,
			      op, with_it);
	case LIMIT:
		return refuse(env, EACCES, "R%d tried to %s beyond pointer bounds, %s\n", dst, op,
			      with_it);
	default:
		return refuse(env, EACCES,
			      "R%d could not be pushed for speculative verification, %s\n", dst,
			      with_it);
	}
}

static bool no_mask(const struct env *env, const struct bpf_insn *insn)
{
	return env->trust_v1 || BPF_SRC(insn->code) == BPF_K;
}

/* Records the instruction's mask. Returns false if another path needs a different mask. */
static bool note(struct aux *aux, unsigned state, uint32_t limit)
{
	if (aux->alu_state && (aux->alu_state != state || aux->fact.limit != limit))
		return false;
	aux->alu_state = (uint8_t)state;
	aux->fact.limit = limit;
	return true;
}

int pbv_mask_scalar(struct env *env, const struct bpf_insn *insn)
{
	if (no_mask(env, insn) || note(&env->aux[env->insn], ALU_SCALARS, 0))
		return 0;
	return explain(env, insn, PATHS, true);
}

/* Sets *limit to the pointer's distance from the top of the stack frame, or from the start of the
 * map's value. If the distance isn't known, takes the least possible distance for a move to lower
 * addresses (left), and the greatest possible distance for a move to higher addresses. */
static enum reason limit_of(const struct reg *ptr, bool left, uint32_t *limit)
{
	uint32_t most, l;

	if (reg_is(ptr, TO_STACK)) {
		most = PB_BPF_STACK + (left ? 1 : 0);
		l = (uint32_t)-((int64_t)ptr->var.value + ptr->off);
	} else if (reg_is(ptr, TO_MAP_VALUE)) {
		most = ptr->map->attr.value_size;
		l = (uint32_t)((left ? (uint64_t)ptr->wide.smin : ptr->wide.umax) +
			       (uint64_t)(int64_t)ptr->off);
	} else {
		return TYPE;
	}
	*limit = l;
	return l >= most ? LIMIT : 0;
}

bool pbv_speculate(struct env *env, const struct bpf_insn *insn, uint32_t to)
{
	struct state *st = pbv_branch_push(env, to, env->insn, true);
	struct reg *regs;

	if (!st || !insn)
		return st;
	regs = st->frames[st->cur]->regs;
	pbv_reg_make_scalar(&regs[insn->dst_reg], !env->capable);
	if (BPF_SRC(insn->code) == BPF_X)
		pbv_reg_make_scalar(&regs[insn->src_reg], !env->capable);
	return true;
}

/* Pushes the speculative path on which the mask has made the number 0. */
static bool guess_masked(struct env *env, const struct reg *ptr, struct reg *dst)
{
	struct reg keep;
	bool ok;

	if (ptr == dst)
		return pbv_speculate(env, NULL, env->insn + 1);
	keep = *dst;
	pbv_reg_copy(dst, ptr);
	ok = pbv_speculate(env, NULL, env->insn + 1);
	if (ok)
		*dst = keep;
	return ok;
}

static enum reason plan(struct env *env, const struct bpf_insn *insn, const struct reg *ptr,
			const struct reg *off, struct reg *dst, struct mask_window *w)
{
	bool negative = off->wide.smin < 0, known = tnum_is_const(off->var);
	enum reason why;

	if (!known && negative != (off->wide.smax < 0))
		return BOUNDS;
	w->left = (BPF_OP(insn->code) == BPF_ADD) == negative;
	why = limit_of(ptr, w->left, &w->limit);
	if (why)
		return why;
	w->state = (uint8_t)((negative ? ALU_NEGATIVE : 0) | (known ? ALU_IMMEDIATE : 0) |
			     (ptr == dst ? ALU_MASK_SRC : ALU_MASK_DST));
	if (!known)
		env->alu_limits = true;
	return 0;
}

/* Called after the operation; ptr is the result. Sets the final limit, which is the greatest
 * distance by which the operation may move the pointer. */
static enum reason commit_plan(struct env *env, const struct reg *ptr, const struct mask_window *w)
{
	uint32_t limit;
	enum reason why = limit_of(ptr, w->left, &limit);
	int32_t window;

	if (why)
		return why;
	window = (int32_t)(w->limit - limit);
	return note(&env->aux[env->insn], w->state, (uint32_t)(window < 0 ? -window : window)) ? 0 :
	       PATHS;
}

int pbv_mask_pointer(struct env *env, const struct bpf_insn *insn, const struct reg *ptr,
		     const struct reg *off, struct reg *dst, struct mask_window *w, bool commit)
{
	enum reason why = 0;

	if (no_mask(env, insn))
		return 0;
	if (!commit)
		w->off_in_dst = ptr != dst;
	if (!env->cur->speculative)
		why = commit ? commit_plan(env, ptr, w) : plan(env, insn, ptr, off, dst, w);
	if (!why && !commit && !tnum_is_const(off->var) && !guess_masked(env, ptr, dst))
		why = NO_ROOM;
	return why ? explain(env, insn, why, w->off_in_dst) : 0;
}
