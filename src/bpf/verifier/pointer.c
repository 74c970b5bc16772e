/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Arithmetic on pointers: a pointer plus or minus a number gives a pointer. A known number is added
 * to `off`. If the number is unknown, or the sum doesn't fit into `off`, the number is added to the
 * variable part.
 */
#include "bpf/verifier/access.h"
#include "bpf/verifier/env.h"
#include "bpf/verifier/log.h"
#include "bpf/verifier/pointer.h"
#include "bpf/verifier/speculate.h"
#include "bpf/verifier/state.h"

static int too_far(struct env *env, const struct reg *r, const struct reg *ptr)
{
	int64_t v = (int64_t)r->var.value, smin = r->wide.smin;

	if (tnum_is_const(r->var) && (v >= MAX_VAR_OFF || v <= -MAX_VAR_OFF))
		return refuse(env, EINVAL, "math between %s pointer and %ld is not allowed\n",
			      type_name(ptr), v);
	if (r->off >= MAX_VAR_OFF || r->off <= -MAX_VAR_OFF)
		return refuse(env, EINVAL, "%s pointer offset %d is not allowed\n", type_name(ptr),
			      r->off);
	if (smin == INT64_MIN)
		return refuse(env, EINVAL,
			      "math between %s pointer and register with unbounded min value "
			      "is not allowed\n", type_name(ptr));
	if (smin >= MAX_VAR_OFF || smin <= -MAX_VAR_OFF)
		return refuse(env, EINVAL, "value %ld makes %s pointer be out of bounds\n", smin,
			      type_name(ptr));
	return 0;
}

static bool may_move(const struct reg *ptr, const struct reg *off, unsigned op)
{
	switch (ptr->type) {
	case TO_FLOW_KEYS:
		if (tnum_is_const(off->var))
			return true;
		return false;
	case MAP_PTR:
		return op == BPF_ADD && tnum_is(off->var, 0);
	case TO_PACKET_END: case TO_SOCKET: case TO_SOCK_COMMON: case TO_TCP_SOCK: case TO_XDP_SOCK:
		return false;
	default:
		return true;
	}
}

static int refuse_move(struct env *env, const struct bpf_insn *insn, const struct reg *ptr,
		       const struct reg *off)
{
	int dst = insn->dst_reg;

	if (BPF_CLASS(insn->code) != BPF_ALU64)
		return refuse(env, EACCES, "R%d 32-bit pointer arithmetic prohibited\n", dst);
	if (ptr->flags & MAYBE_NULL)
		return refuse(env, EACCES,
			      "R%d pointer arithmetic on %s prohibited, null-check it first\n", dst,
			      type_name(ptr));
	if (!may_move(ptr, off, BPF_OP(insn->code)))
		return refuse(env, EACCES, "R%d pointer arithmetic on %s prohibited\n", dst,
			      type_name(ptr));
	return 0;
}

/* Called when a pointer may have moved to a lower address. If it is a packet pointer that was found
 * at or after the packet's end (AT_END, AFTER_END), it may now be before the end. */
static void forget_end(struct reg *dst)
{
	if (reg_is_packet(dst) && dst->range < 0)
		dst->raw[0] = dst->raw[1] = 0;
}

/* Called when an unknown number was added to a pointer, or subtracted from it. A packet pointer
 * gets a new id. If forget_range is set, it also loses its `range`. */
static void new_base(struct env *env, struct reg *dst, bool forget_range)
{
	if (!reg_is_packet(dst))
		return;
	dst->id = ++env->ids;
	if (forget_range)
		dst->raw[0] = dst->raw[1] = 0;
}

static bool off_fits(int64_t v)
{
	return v == (int32_t)v;
}

static void move_up(struct env *env, struct reg *dst, const struct reg *ptr, const struct reg *off)
{
	const struct range *p = &ptr->wide, *o = &off->wide;
	struct range r;

	if (tnum_is_const(off->var) && off_fits(ptr->off + o->smin)) {
		dst->off = (int32_t)(ptr->off + o->smin);
		if (o->smin < 0)
			forget_end(dst);
		return;
	}
	if (__builtin_add_overflow(p->smin, o->smin, &r.smin) ||
	    __builtin_add_overflow(p->smax, o->smax, &r.smax)) {
		r.smin = INT64_MIN;
		r.smax = INT64_MAX;
	}
	if (__builtin_add_overflow(p->umin, o->umin, &r.umin) ||
	    __builtin_add_overflow(p->umax, o->umax, &r.umax)) {
		r.umin = 0;
		r.umax = UINT64_MAX;
	}
	dst->wide = r;
	dst->var = tnum_add(ptr->var, off->var);
	new_base(env, dst, true);
}

static int move_down(struct env *env, const struct bpf_insn *insn, struct reg *dst,
		     const struct reg *ptr, const struct reg *off)
{
	const struct range *p = &ptr->wide, *o = &off->wide;
	struct range r;

	if (dst != ptr)
		return refuse(env, EACCES, "R%d tried to subtract pointer from scalar\n",
			      insn->dst_reg);
	if (ptr->type == TO_STACK)
		return refuse(env, EACCES, "R%d subtraction from stack pointer prohibited\n",
			      insn->dst_reg);
	if (tnum_is_const(off->var) && off_fits(ptr->off - o->smin)) {
		dst->off = (int32_t)(ptr->off - o->smin);
		if (o->smin > 0)
			forget_end(dst);
		return 0;
	}
	if (__builtin_sub_overflow(p->smin, o->smax, &r.smin) ||
	    __builtin_sub_overflow(p->smax, o->smin, &r.smax)) {
		r.smin = INT64_MIN;
		r.smax = INT64_MAX;
	}
	if (p->umin < o->umax) {
		r.umin = 0;
		r.umax = UINT64_MAX;
	} else {
		r.umin = p->umin - o->umax;
		r.umax = p->umax - o->umin;
	}
	dst->var = tnum_sub(ptr->var, off->var);
	dst->wide = r;
	/* If the subtracted number isn't negative, the pointer keeps a positive `range`: bytes that
	 * were in the packet, counted from the old base, are in the packet, counted from the new
	 * base, too. */
	new_base(env, dst, o->smin < 0);
	forget_end(dst);
	return 0;
}

static int move(struct env *env, const struct bpf_insn *insn, struct reg *dst,
		const struct reg *ptr, const struct reg *off)
{
	const char *symbol = pb_bpf_ops[env->ops[env->insn]].symbol;

	switch (BPF_OP(insn->code)) {
	case BPF_ADD:
		move_up(env, dst, ptr, off);
		return 0;
	case BPF_SUB:
		return move_down(env, insn, dst, ptr, off);
	case BPF_AND: case BPF_OR: case BPF_XOR:
		return refuse(env, EACCES, "R%d bitwise operator %s on pointer prohibited\n",
			      insn->dst_reg, symbol);
	default:
		return refuse(env, EACCES, "R%d pointer arithmetic with %s operator prohibited\n",
			      insn->dst_reg, symbol);
	}
}

/* Checks that the result of pointer arithmetic is within bounds. Masks (speculate.c) keep
 * speculative accesses within bounds only if the result has passed this check. */
static int within(struct env *env, unsigned n, const struct reg *r)
{
	int64_t off = r->off + (int64_t)r->var.value;

	if (env->trust_v1)
		return 0;
	if (reg_is(r, TO_STACK)) {
		if (!tnum_is_const(r->var))
			return refuse(env, EACCES,
				      "R%d variable stack access prohibited for !root, var_off=%s "
				      "off=%d\n", n,
				      tnum_text(r->var), (int)off);
		if (off >= 0 || off < -PB_BPF_STACK)
			return refuse(env, EACCES,
				      "R%d stack pointer arithmetic goes out of range, "
				      "prohibited for !root; off=%d\n", n, (int)off);
	} else if (reg_is(r, TO_MAP_VALUE) &&
		   pbv_check_map_access(env, n, r->off, 1, false, true)) {
		return refuse(env, EACCES, "R%d pointer arithmetic of map value goes out of range, "
			      "prohibited for !root\n", n);
	}
	return 0;
}

int pbv_pointer_alu(struct env *env, const struct bpf_insn *insn, const struct reg *ptr,
		    const struct reg *off)
{
	struct reg *dst = &cur_regs(env)[insn->dst_reg], from;
	const struct range *o = &off->wide;
	unsigned op = BPF_OP(insn->code);
	bool masks = op == BPF_ADD || op == BPF_SUB;
	struct mask_window w = { 0 };
	int err;

	if (range_broken(o) ||
	    (tnum_is_const(off->var) && (o->smin != o->smax || o->umin != o->umax))) {
		/* the bounds contradict each other, so this path can't be taken */
		pbv_reg_make_scalar(dst, !env->capable);
		return 0;
	}
	if (BPF_CLASS(insn->code) != BPF_ALU64 && op == BPF_SUB && env->ptr_leaks) {
		pbv_reg_make_scalar(dst, !env->capable);
		return 0;
	}
	err = refuse_move(env, insn, ptr, off);
	if (err)
		return err;
	if (dst != ptr)
		*dst = *ptr;
	err = too_far(env, off, ptr);
	if (!err)
		err = too_far(env, ptr, ptr);
	dst->low = range_all(32);
	if (!err && masks)
		err = pbv_mask_pointer(env, insn, ptr, off, dst, &w, false);
	if (err)
		return err;
	from = *ptr;
	err = move(env, insn, dst, ptr, off);
	if (err)
		return err;
	err = too_far(env, dst, &from);
	if (err)
		return err;
	pbv_reg_sync(dst);
	err = within(env, insn->dst_reg, dst);
	if (!err && masks)
		err = pbv_mask_pointer(env, insn, dst, off, dst, &w, true);
	return err;
}
