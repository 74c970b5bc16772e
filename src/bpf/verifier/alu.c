/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Checks the operands of arithmetic instructions, and computes the results of moves. The results of
 * other operations are computed in scalar.c (numbers) and pointer.c (pointers). */
#include "bpf/verifier/access.h"
#include "bpf/verifier/alu.h"
#include "bpf/verifier/env.h"
#include "bpf/verifier/live.h"
#include "bpf/verifier/log.h"
#include "bpf/verifier/pointer.h"
#include "bpf/verifier/precise.h"
#include "bpf/verifier/scalar.h"
#include "bpf/verifier/state.h"

static int check_unary(struct env *env, const struct bpf_insn *insn, const struct pb_bpf_opinfo *o)
{
	struct reg *dst = &cur_regs(env)[insn->dst_reg];
	int err = pbv_reg_use(env, insn->dst_reg, READ);

	if (err)
		return err;
	if (pbv_leaks(env, insn->dst_reg))
		return refuse(env, EACCES, "R%d pointer arithmetic prohibited\n", insn->dst_reg);
	if (o->form != PB_BPF_NEG || dst->type != SCALAR)
		return pbv_reg_use(env, insn->dst_reg, WRITE);
	err = pbv_reg_use(env, insn->dst_reg, WRITE_KEEP);
	if (err)
		return err;
	reg_unlink(dst);
	pbv_scalar_negate(dst, BPF_CLASS(insn->code) == BPF_ALU64 ? 64 : 32);
	return 0;
}

static void move64(struct env *env, struct reg *dst, struct reg *src)
{
	if (src->type == SCALAR)
		reg_name(env, src);
	pbv_reg_copy(dst, src);
	dst->live |= LIVE_WRITTEN;
}

static int move32(struct env *env, const struct bpf_insn *insn, struct reg *dst, struct reg *src)
{
	if (pbv_leaks(env, insn->src_reg))
		return refuse(env, EACCES, "R%d partial copy of pointer\n", insn->src_reg);
	if (src->type == SCALAR && src->wide.umax <= UINT32_MAX) {
		move64(env, dst, src);
	} else if (src->type == SCALAR) {
		pbv_reg_copy(dst, src);
		reg_unlink(dst);
		dst->live |= LIVE_WRITTEN;
	} else {
		pbv_reg_make_scalar(dst, !env->capable);
	}
	pbv_reg_zero_extend(dst);
	pbv_reg_sync(dst);
	return 0;
}

/* Sign extension doesn't change a number that is less than the sign bit's value. If src is such a
 * number, dst becomes a linked copy of src. */
static int move_extended(struct env *env, const struct bpf_insn *insn, struct reg *dst,
			 struct reg *src, int bytes)
{
	bool wide = BPF_CLASS(insn->code) == BPF_ALU64,
		same = src->wide.umax < 1ull << (bytes * 8 - 1);

	if (pbv_leaks(env, insn->src_reg))
		return refuse(env, EACCES, "R%d sign-extension part of pointer\n", insn->src_reg);
	if (src->type != SCALAR) {
		pbv_reg_make_scalar(dst, !env->capable);
	} else if (same) {
		move64(env, dst, src);
	} else {
		pbv_reg_copy(dst, src);
		reg_unlink(dst);
		dst->live |= LIVE_WRITTEN;
		pbv_reg_sign_extend(dst, bytes);
	}
	if (!wide) {
		pbv_reg_zero_extend(dst);
		pbv_reg_sync(dst);
	}
	return 0;
}

static int check_move(struct env *env, const struct bpf_insn *insn, const struct pb_bpf_opinfo *o)
{
	struct reg *regs = cur_regs(env), *dst = &regs[insn->dst_reg], *src = &regs[insn->src_reg];
	bool wide = BPF_CLASS(insn->code) == BPF_ALU64;
	int err = o->form == PB_BPF_ALU_K ? 0 : pbv_reg_use(env, insn->src_reg, READ);

	if (!err)
		err = pbv_reg_use(env, insn->dst_reg, WRITE_KEEP);
	if (err)
		return err;
	if (o->form == PB_BPF_MOVSX)
		return move_extended(env, insn, dst, src, o->width);
	if (o->form == PB_BPF_ALU_K) {
		pbv_reg_make_scalar(dst, !env->capable);
		pbv_reg_make_const(dst, wide ? (uint64_t)(int64_t)insn->imm : (uint32_t)insn->imm);
		return 0;
	}
	if (!wide)
		return move32(env, insn, dst, src);
	move64(env, dst, src);
	return 0;
}

static int two_pointers(struct env *env, const struct bpf_insn *insn)
{
	if (BPF_OP(insn->code) != BPF_SUB || !env->ptr_leaks)
		return refuse(env, EACCES, "R%d pointer %s pointer prohibited\n", insn->dst_reg,
			      pb_bpf_ops[env->ops[env->insn]].symbol);
	pbv_reg_make_scalar(&cur_regs(env)[insn->dst_reg], !env->capable);
	return 0;
}

static int with_register(struct env *env, const struct bpf_insn *insn, struct reg *dst,
			 struct reg *src)
{
	struct reg off;
	int err = 0;

	if (src->type != SCALAR && dst->type != SCALAR)
		return two_pointers(env, insn);
	if (src->type != SCALAR) {
		/* number += pointer */
		err = pbv_precise_reg(env, insn->dst_reg);
		if (err)
			return err;
		off = *dst;
		return pbv_pointer_alu(env, insn, src, &off);
	}
	if (dst->type != SCALAR || dst->precise)
		err = pbv_precise_reg(env, insn->src_reg);
	if (err)
		return err;
	return dst->type != SCALAR ? pbv_pointer_alu(env, insn, dst, src) :
	       pbv_scalar_alu(env, insn, dst, src);
}

/*
 * Updates dst's link to its copies, because dst is about to change. Usually dst is no longer a
 * copy, and the link ends. But after a 64-bit `dst += constant`, the difference between dst and its
 * former copies is known: it is the constant, modulo 2^64. So the link stays, with this difference
 * as `delta`. A 32-bit operation truncates the sum, so it ends the link. As in the kernel, only one
 * addition is kept, and only if the constant is in 0 ... INT32_MAX.
 */
static void move_link(struct env *env, const struct bpf_insn *insn, struct reg *dst,
		      const struct reg *src)
{
	if (!env->capable || BPF_OP(insn->code) != BPF_ADD || BPF_CLASS(insn->code) != BPF_ALU64 ||
	    dst->moved || !reg_is_const(src) || src->var.value > INT32_MAX) {
		reg_unlink(dst);
	} else if (dst->id) {
		dst->delta = (int32_t)src->var.value;
		dst->moved = true;
	}
}

static int check_binary(struct env *env, const struct bpf_insn *insn, const struct pb_bpf_opinfo *o)
{
	struct reg *dst = &cur_regs(env)[insn->dst_reg], *src = &cur_regs(env)[insn->src_reg], k;
	unsigned op = BPF_OP(insn->code);
	int err = o->form == PB_BPF_ALU_X ? pbv_reg_use(env, insn->src_reg, READ) : 0;

	if (!err)
		err = pbv_reg_use(env, insn->dst_reg, READ);
	if (err)
		return err;
	if (o->form == PB_BPF_ALU_K && (op == BPF_MOD || op == BPF_DIV) && !insn->imm)
		return refuse(env, EINVAL, "div by zero\n");
	if (o->form == PB_BPF_ALU_K && (op == BPF_LSH || op == BPF_RSH || op == BPF_ARSH) &&
	    (uint32_t)insn->imm >= o->width * 8u)
		return refuse(env, EINVAL, "invalid shift %d\n", insn->imm);
	err = pbv_reg_use(env, insn->dst_reg, WRITE_KEEP);
	if (err)
		return err;
	if (o->form == PB_BPF_ALU_K) {
		memset(&k, 0, sizeof k);
		pbv_reg_make_const(&k, (uint64_t)(int64_t)insn->imm);
		src = &k;
	}
	if (dst->type == SCALAR)
		move_link(env, insn, dst, src);
	if (o->form == PB_BPF_ALU_X)
		return with_register(env, insn, dst, src);
	return dst->type == SCALAR ? pbv_scalar_alu(env, insn, dst, &k) :
	       pbv_pointer_alu(env, insn, dst, &k);
}

int pbv_check_alu(struct env *env, const struct bpf_insn *insn)
{
	const struct pb_bpf_opinfo *o = &pb_bpf_ops[env->ops[env->insn]];

	switch (o->form) {
	case PB_BPF_NEG: case PB_BPF_END:
		return check_unary(env, insn, o);
	default:
		return BPF_OP(insn->code) == BPF_MOV ? check_move(env, insn, o) :
		       check_binary(env, insn, o);
	}
}
