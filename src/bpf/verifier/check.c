/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Walks over all paths. Checks single instructions, memory accesses, and the end of the program. */
#include "bpf/verifier/access.h"
#include "bpf/verifier/alu.h"
#include "bpf/verifier/branch.h"
#include "bpf/verifier/check.h"
#include "bpf/verifier/constant.h"
#include "bpf/verifier/env.h"
#include "bpf/verifier/func.h"
#include "bpf/verifier/helper_call.h"
#include "bpf/verifier/iter.h"
#include "bpf/verifier/live.h"
#include "bpf/verifier/log.h"
#include "bpf/verifier/precise.h"
#include "bpf/verifier/prune.h"
#include "bpf/verifier/state.h"
#include "bpf/verifier/iterations.h"

/* ---- invalid instructions ------------------------------------------------------------------ */

/* Refuses an instruction that is invalid, or whose unused fields aren't zero. */
static int refuse_fields(struct env *env, const struct bpf_insn *insn)
{
	unsigned class = BPF_CLASS(insn->code), op = BPF_OP(insn->code);
	const char *what = "BPF_JMP/JMP32";

	switch (class) {
	case BPF_ALU: case BPF_ALU64:
		if (op > BPF_END)
			return refuse(env, EINVAL, "invalid BPF_ALU opcode %x\n", op);
		what = op == BPF_END ? "BPF_END" : op == BPF_NEG ? "BPF_NEG" :
		       op == BPF_MOV ? "BPF_MOV" : "BPF_ALU";
		break;
	case BPF_STX:
		if (BPF_MODE(insn->code) == BPF_ATOMIC && !env->ops[env->insn])
			return refuse(env, EINVAL, "BPF_ATOMIC uses invalid atomic opcode %02x\n",
				      (unsigned)insn->imm);
		what = "BPF_STX";
		break;
	case BPF_ST:
		what = "BPF_ST";
		break;
	case BPF_LD:
		if (BPF_MODE(insn->code) != BPF_ABS && BPF_MODE(insn->code) != BPF_IND)
			return refuse(env, EINVAL, "invalid BPF_LD mode\n");
		what = "BPF_LD_[ABS|IND]";
		break;
	case BPF_LDX:
		what = "BPF_LDX";
		break;
	default:
		if (op == BPF_JCOND)
			return refuse(env, EINVAL, "invalid may_goto imm %d\n", (int)insn->imm);
		what = op == BPF_CALL ? "BPF_CALL" : op == BPF_EXIT ? "BPF_EXIT" :
		       op == BPF_JA ? "BPF_JA" : what;
	}
	return refuse(env, EINVAL, "%s uses reserved fields\n", what);
}

/* ---- memory -------------------------------------------------------------------------------- */

/* Returns whether the kernel rewrites accesses through pointers of this type. If so, the pointer of
 * an access must have the same type on all paths. */
static bool rewritten(unsigned type)
{
	return type == TO_CTX || (type >= TO_SOCKET && type <= TO_XDP_SOCK) || type == TO_BTF;
}

static int note_access(struct env *env, unsigned type, unsigned flags)
{
	struct aux *aux = &env->aux[env->insn];

	if (!aux->ptr_known) {
		aux->ptr_known = true;
		aux->ptr_type = (uint8_t)type;
		aux->ptr_flags = (uint8_t)flags;
	} else if ((aux->ptr_type != type || aux->ptr_flags != flags) &&
		   (rewritten(type) || rewritten(aux->ptr_type))) {
		return refuse(env, EINVAL, "same insn cannot be used with different pointers\n");
	}
	return 0;
}

/* Sign-extends the value of a narrow load. */
static void sign_loaded(struct reg *r, int bytes)
{
	if (r->type != SCALAR || r->wide.umax < 1ull << (bytes * 8 - 1))
		return;
	/* the register is no longer a copy of the spilled number */
	reg_unlink(r);
	pbv_reg_sign_extend(r, bytes);
}

static int check_load(struct env *env, const struct bpf_insn *insn, const struct pb_bpf_opinfo *o)
{
	struct reg *regs = cur_regs(env);
	unsigned type, flags;
	int err = pbv_reg_use(env, insn->src_reg, READ);

	if (!err)
		err = pbv_reg_use(env, insn->dst_reg, WRITE_KEEP);
	if (err)
		return err;
	type = regs[insn->src_reg].type;
	flags = regs[insn->src_reg].flags;
	err = pbv_check_mem(env, insn->src_reg, insn->off, o->width, false, insn->dst_reg, false);
	if (err)
		return err;
	/* a pointer has 4 bytes in the kernel's layout of the context, and isn't sign-extended */
	if (o->form == PB_BPF_LDSX && regs[insn->dst_reg].type != SCALAR)
		return refuse(env, EACCES, "invalid bpf_context access off=%d size=%d\n", insn->off,
			      o->width);
	if (o->form == PB_BPF_LDSX)
		sign_loaded(&regs[insn->dst_reg], o->width);
	return note_access(env, type, flags);
}

static int check_store(struct env *env, const struct bpf_insn *insn, const struct pb_bpf_opinfo *o)
{
	struct reg *regs = cur_regs(env);
	int err = o->form == PB_BPF_STX ? pbv_reg_use(env, insn->src_reg, READ) : 0;
	unsigned type, flags;

	if (!err)
		err = pbv_reg_use(env, insn->dst_reg, READ);
	if (err)
		return err;
	type = regs[insn->dst_reg].type;
	flags = regs[insn->dst_reg].flags;
	err = pbv_check_mem(env, insn->dst_reg, insn->off, o->width, true,
			    o->form == PB_BPF_STX ? insn->src_reg : -1, false);
	return err ? err : note_access(env, type, flags);
}

static int refuse_atomic(struct env *env, unsigned n)
{
	const struct reg *r = &cur_regs(env)[n];

	if (!reg_is(r, TO_CTX) && !(reg_is_packet(r) && !r->flags) && !reg_is(r, TO_FLOW_KEYS) &&
	    !reg_is_sock(r))
		return 0;
	return refuse(env, EACCES, "BPF_ATOMIC stores into R%d %s is not allowed\n", n,
		      type_name(r));
}

int pbv_check_atomic(struct env *env, const struct bpf_insn *insn)
{
	const struct pb_bpf_opinfo *o = &pb_bpf_ops[env->ops[env->insn]];
	int loaded = o->form == PB_BPF_COMPARE ? 0 : o->form == PB_BPF_ATOMIC ? -1 : insn->src_reg;
	unsigned dst = insn->dst_reg, src = insn->src_reg;
	int err = pbv_reg_use(env, src, READ);

	if (!err)
		err = pbv_reg_use(env, dst, READ);
	if (!err && o->form == PB_BPF_COMPARE)
		err = pbv_reg_use(env, 0, READ);
	if (!err && o->form == PB_BPF_COMPARE && pbv_leaks(env, 0))
		err = refuse(env, EACCES, "R0 leaks addr into mem\n");
	if (!err && pbv_leaks(env, src))
		err = refuse(env, EACCES, "R%d leaks addr into mem\n", src);
	if (!err)
		err = refuse_atomic(env, dst);
	if (!err && loaded >= 0)
		err = pbv_reg_use(env, (unsigned)loaded, WRITE);
	if (!err)
		err = pbv_check_mem(env, dst, insn->off, o->width, false, -1, true);
	if (!err && loaded >= 0)
		err = pbv_check_mem(env, dst, insn->off, o->width, false, loaded, true);
	return err ? err : pbv_check_mem(env, dst, insn->off, o->width, true, -1, true);
}

/* LD_ABS and LD_IND act as calls of a helper. */
int pbv_check_packet_load(struct env *env, const struct bpf_insn *insn)
{
	const struct pb_bpf_opinfo *o = &pb_bpf_ops[env->ops[env->insn]];
	struct reg *regs = cur_regs(env);
	int err;

	if (!env->v->type->ld_abs)
		return refuse(env, EINVAL,
			      "BPF_LD_[ABS|IND] instructions not allowed for this program type\n");
	err = pbv_reg_use(env, 6, READ);
	if (err)
		return err;
	/* a load from outside of the packet ends the program, so the program may hold no
	 * reference */
	err = pbv_ref_check_leak(env);
	if (err) {
		log(env, "BPF_LD_[ABS|IND] cannot be mixed with socket references\n");
		return err;
	}
	if (env->cur->lock)
		return refuse(env, EINVAL,
			      "BPF_LD_[ABS|IND] cannot be used inside bpf_spin_lock-ed region\n");
	if (!reg_is(&regs[6], TO_CTX))
		return refuse(env, EINVAL, "at the time of BPF_LD_ABS|IND R6 != pointer to skb\n");
	if (o->form == PB_BPF_LD_IND)
		err = pbv_reg_use(env, insn->src_reg, READ);
	if (!err)
		err = pbv_check_unmodified(env, &regs[6], 6, false);
	if (err)
		return err;
	pbv_regs_clobber(env, regs);
	pbv_reg_make_scalar(&regs[0], !env->capable);
	if (!env->cur->cur)
		return 0;
	/* in a subprogram a load outside of the packet ends only the subprogram, which returns 0 */
	if (!pbv_branch_push(env, env->insn + 1, env->insn, false))
		return -EFAULT;
	pbv_reg_make_const(&regs[0], 0);
	err = pbv_leave_frame(env);
	env->insn--;
	return err;
}

/* ---- the end ------------------------------------------------------------------------------- */

/* Returns the largest value that the program may return. Negative: the program may return any
 * value. */
static int most_returned(const struct pb_bpf_verify *v)
{
	if (v->type->type != BPF_PROG_TYPE_CGROUP_SKB)
		return -1;
	return v->attach_type == BPF_CGROUP_INET_EGRESS ? 3 : 1;
}

int pbv_check_return(struct env *env)
{
	const struct frame *f = env->cur->frames[0];
	const struct reg *r0 = &cur_regs(env)[0];
	const char *where = f->in_async ? "At async callback return" : "At program exit";
	int err = pbv_reg_use(env, 0, READ), most = f->in_async ? 0 : most_returned(env->v);

	if (err)
		return err;
	if (pbv_leaks(env, 0))
		return refuse(env, EACCES, "R0 leaks addr as return value\n");
	if (f->subprog && !f->in_async)
		return r0->type == SCALAR ? 0 :
		       refuse(env, EINVAL,
			      "At subprogram exit the register R0 is not a scalar value (%s)\n",
			      type_name(r0));
	if (most < 0)
		return 0;
	if (r0->type != SCALAR)
		return refuse(env, EINVAL, "%s the register R0 is not a known value (%s)\n", where,
			      type_name(r0));
	/* r0 must be precise. Otherwise a state whose r0 is in range could cover a state whose r0
	 * is out of range, and the path with the invalid return value would not be checked */
	err = pbv_precise_reg(env, 0);
	if (err || (r0->wide.smin >= 0 && r0->wide.smax <= most))
		return err;
	pbv_log_scalar(env, r0, 0, most, where);
	return -EINVAL;
}

/* ---- one instruction ----------------------------------------------------------------------- */

static int check_call(struct env *env, const struct bpf_insn *insn, const struct pb_bpf_opinfo *o)
{
	if (env->cur->lock && (o->form == PB_BPF_CALL_KFUNC ? !pbv_kfunc_fits_lock(insn) :
			       o->form != PB_BPF_CALL_PC && insn->imm != BPF_FUNC_spin_unlock))
		return refuse(env, EINVAL, "function calls are not allowed while holding a lock\n");
	if (o->form == PB_BPF_CALL_KFUNC)
		return pbv_check_kfunc(env, insn);
	return o->form == PB_BPF_CALL_PC ? pbv_check_subprog_call(env, insn) :
	       pbv_check_helper(env, insn);
}

static int check_exit(struct env *env, bool *end)
{
	int err;

	/* a subprogram may return to its caller with the lock held, but a callback may not */
	if (env->cur->lock && (!env->cur->cur || cur_frame(env)->in_callback))
		return refuse(env, EINVAL, "bpf_spin_unlock is missing\n");
	err = pbv_ref_check_leak(env);
	if (err)
		return err;
	if (!env->cur->cur) {
		*end = true;
		return pbv_check_return(env);
	}
	err = pbv_leave_frame(env);
	env->insn--;	/* the loop in pbv_check_paths() adds 1 */
	return err;
}

/* Sets env->insn to the next instruction - 1, because pbv_check_paths() adds 1. */
static int check_insn(struct env *env, const struct bpf_insn *insn, bool *end, bool *show)
{
	enum pb_bpf_op op = env->ops[env->insn];
	const struct pb_bpf_opinfo *o = &pb_bpf_ops[op];
	unsigned class = BPF_CLASS(insn->code);

	if (class == BPF_JMP || class == BPF_JMP32)
		env->jumps_processed++;
	if (!op || (o->form != PB_BPF_LD64 && !pb_bpf_unused_are_zero(insn, op)))
		return refuse_fields(env, insn);
	switch (o->form) {
	case PB_BPF_ALU_K: case PB_BPF_ALU_X: case PB_BPF_NEG: case PB_BPF_MOVSX: case PB_BPF_END:
		return pbv_check_alu(env, insn);
	case PB_BPF_LDX: case PB_BPF_LDSX:
		return check_load(env, insn, o);
	case PB_BPF_ST: case PB_BPF_STX:
		return check_store(env, insn, o);
	case PB_BPF_ATOMIC: case PB_BPF_FETCH: case PB_BPF_XCHANGE: case PB_BPF_COMPARE:
		return pbv_check_atomic(env, insn);
	case PB_BPF_LD_ABS: case PB_BPF_LD_IND:
		return pbv_check_packet_load(env, insn);
	case PB_BPF_GOTO:
		env->insn += (uint32_t)(int32_t)insn->off;
		return 0;
	case PB_BPF_GOTOL:
		env->insn += (uint32_t)insn->imm;
		return 0;
	case PB_BPF_MAY_GOTO:
		return pbv_check_may_goto(env, insn);
	case PB_BPF_IF_K: case PB_BPF_IF_X:
		return pbv_check_branch(env, insn);
	case PB_BPF_CALL_HELPER: case PB_BPF_CALL_PC: case PB_BPF_CALL_KFUNC:
		return check_call(env, insn, o);
	case PB_BPF_RETURN:
		*show = env->cur->cur;
		return check_exit(env, end);
	default:
		return refuse(env, EINVAL, "unknown insn class %d\n", (int)class);
	}
}

static int check_ld64_insn(struct env *env, const struct bpf_insn *insn)
{
	int err = pbv_check_ld64(env, insn);

	env->insn++;
	if (!env->cur->speculative)
		env->aux[env->insn].fact.seen = true;
	return err;
}

static void log_before(struct env *env, bool *show)
{
	if (env->v->log_level & 2 && *show) {
		log(env, "\nfrom %d to %d%s:", env->prev_insn, (int)env->insn,
		    env->cur->speculative ? " (speculative execution)" : "");
		pbv_log_state(env, cur_frame(env), true);
		*show = false;
	}
	if (!log_on(env))
		return;
	if (env->touched_regs || env->touched_slots)
		pbv_log_insn_state(env);
	pbv_log_line(env, env->insn, "; ");
	pbv_log_insn(env);
}

static void log_safe(struct env *env, bool show)
{
	if (!log_on(env))
		return;
	if (show)
		log(env, "\nfrom %d to %d%s: safe\n", env->prev_insn, (int)env->insn,
		    env->cur->speculative ? " (speculative execution)" : "");
	else
		log(env, "%d: safe\n", (int)env->insn);
}

int pbv_check_paths(struct env *env)
{
	bool show = false;
	int32_t prev = -1;

	for (;;) {
		const struct bpf_insn *insn;
		bool end = false;
		int err;

		env->prev_insn = prev;
		env->step_here = false;
		if (env->insn >= env->nr)
			return refuse(env, EFAULT, "invalid insn idx %d insn_cnt %d\n",
				      (int)env->insn, (int)env->nr);
		insn = &env->insns[env->insn];
		if (++env->processed > PB_BPF_COMPLEXITY)
			return refuse(env, E2BIG, "BPF program is too large. Processed %d insn\n",
				      (int)env->processed);
		err = pbv_prune_visit(env);
		if (err < 0)
			return err;
		if (err) {
			log_safe(env, show);
			end = true;
		} else {
			log_before(env, &show);
			if (!env->cur->speculative) {
				env->aux[env->insn].fact.seen = true;
				err = env->v->visit ? env->v->visit(env->v, env) : 0;
				if (err)
					return err;
			}
			prev = (int32_t)env->insn;
			err = env->ops[env->insn] == PB_BPF_OP_LD_IMM64 ?
			      check_ld64_insn(env, insn) : check_insn(env, insn, &end, &show);
			if (err)
				return err;
		}
		if (!end) {
			env->insn++;
			continue;
		}
		touch_all(env);
		pbv_branches_end(env);
		if (env->error)
			return env->error;
		err = pbv_branch_pop(env, !(env->v->log_level & 2));
		if (err)
			return err == -ENOENT ? 0 : err;
		prev = env->prev_insn;
		show = true;
	}
}
