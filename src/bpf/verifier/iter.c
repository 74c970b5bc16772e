/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Checks calls of kfuncs (kfunc.h): `new`, `next` and `destroy` of an iterator over numbers. Each
 * iterator is in one slot of stack. From `new` to `destroy` the slot has type S_ITER and holds a
 * reference, so that a missing `destroy` is an error. A store to the slot turns the slot into plain
 * bytes, which `destroy` refuses. `next` returns an element or NULL, so the path forks.
 * iterations.c describes how iterations are pruned.
 */
#include "bpf/helper/kfunc.h"
#include "bpf/verifier/access.h"
#include "bpf/verifier/env.h"
#include "bpf/verifier/iter.h"
#include "bpf/verifier/live.h"
#include "bpf/verifier/log.h"
#include "bpf/verifier/prune.h"
#include "bpf/verifier/state.h"

bool pbv_kfunc_iterates(const struct bpf_insn *insn)
{
	return insn->code == (BPF_JMP | BPF_CALL) && insn->src_reg == BPF_PSEUDO_KFUNC_CALL &&
	       !insn->off && insn->imm == PB_BPF_KFUNC_ITER_NUM_NEXT;
}

bool pbv_kfunc_fits_lock(const struct bpf_insn *insn)
{
	return insn->src_reg == BPF_PSEUDO_KFUNC_CALL && !insn->off && pb_bpf_kfunc_of(insn->imm);
}

/* ---- the argument: r1, a slot of stack ----------------------------------------------------- */

static int slot_of_iter(struct env *env, int *off)
{
	const struct reg *r = &cur_regs(env)[1];

	if (!reg_is(r, TO_STACK))
		return refuse(env, EINVAL, "arg#0 expected pointer to an iterator on stack\n");
	if (!tnum_is_const(r->var))
		return refuse(env, EINVAL, "iter has to be at a constant offset\n");
	*off = r->off + (int)r->var.value;
	if (*off % SLOT || *off >= 0)
		return refuse(env, EINVAL, "cannot pass in iter at an offset=%d\n", *off);
	return 0;
}

/* Returns the iterator's slot. NULL: there is no iterator, and the log has the reason. */
static struct slot *initialized(struct env *env)
{
	struct frame *f;
	int off, n;

	if (slot_of_iter(env, &off))
		return NULL;
	f = frame_of(env, &cur_regs(env)[1]);
	n = (-off - 1) / SLOT;
	for (int i = 0; n < (int)f->nr_slots && i < SLOT; i++)
		if (f->slots[n].type[i] != S_ITER)
			n = INT32_MAX;
	if (n >= (int)f->nr_slots) {
		log(env, "expected an initialized iter_num as arg #0\n");
		return NULL;
	}
	pbv_live_read_slot(env, f, &f->slots[n]);
	touch_slot(env, n);
	return &f->slots[n];
}

static int check_number(struct env *env, unsigned n)
{
	int err = pbv_reg_use(env, n, READ);

	if (!err && cur_regs(env)[n].type != SCALAR)
		err = refuse(env, EINVAL, "R%d is not a scalar\n", n);
	return err;
}

/* ---- what the functions do ------------------------------------------------------------------- */

static int make(struct env *env)
{
	struct frame *f;
	struct slot *s;
	int off, err = slot_of_iter(env, &off), id;

	if (err)
		return err;
	f = frame_of(env, &cur_regs(env)[1]);
	for (int i = 0; (-off - 1) / SLOT < (int)f->nr_slots && i < SLOT; i++)
		if (f->slots[(-off - 1) / SLOT].type[i] == S_ITER)
			return refuse(env, EINVAL, "expected uninitialized iter_num as arg #0\n");
	err = pbv_check_mem(env, 1, 0, SLOT, true, -1, false);
	if (!err)
		err = check_number(env, 2);
	if (!err)
		err = check_number(env, 3);
	if (err)
		return err;
	id = pbv_ref_acquire(env);
	if (id < 0)
		return id;
	s = &f->slots[(-off - 1) / SLOT];
	memset(s->type, S_ITER, SLOT);
	pbv_reg_make_none(&s->reg, !env->capable);
	s->reg.live |= LIVE_WRITTEN;
	s->reg.ref = (uint32_t)id;
	s->reg.iter = ++env->budgets;
	s->reg.depth = 0;
	s->reg.drained = false;
	return 0;
}

static int destroy(struct env *env, struct slot *s)
{
	uint32_t ref = s->reg.ref;

	memset(s->type, S_INVALID, SLOT);
	pbv_reg_make_none(&s->reg, !env->capable);
	s->reg.live |= LIVE_WRITTEN;
	if (!pbv_ref_release(env, ref))
		return 0;
	return refuse(env, EINVAL, "a callback cannot destroy an iterator of its caller\n");
}

static void give_element(struct reg *r0, const struct slot *s)
{
	pbv_reg_make(r0, TO_MEM, RDONLY);
	r0->mem_size = 4;
	r0->ref = s->reg.ref;
}

/* If the iterator isn't drained yet, the path forks: on the pushed path `next` returns an element.
 * On the current path `next` returns NULL, and the iterator becomes drained. */
static int next(struct env *env, struct slot *s)
{
	const struct state *kept = env->cur->parent;
	uint32_t frame = cur_regs(env)[1].frame;
	struct reg *r0 = &cur_regs(env)[0];
	size_t n = (size_t)(s - env->cur->frames[frame]->slots);
	struct state *st;

	pbv_regs_clobber(env, cur_regs(env));
	pbv_reg_make_const(r0, 0);
	if (s->reg.drained)
		return 0;
	st = pbv_branch_push(env, env->insn + 1, env->insn, false);
	if (!st)
		return -ENOMEM;
	st->frames[frame]->slots[n].reg.depth++;
	st->iterations++;
	give_element(&st->frames[st->cur]->regs[0], s);
	/* if `kept` was kept at this call, the current iteration began in `kept`. So the previous
	 * iteration began in an ancestor of `kept` */
	if (kept && kept->insn == env->insn)
		pbv_prune_widen(env, kept->parent, st);
	s->reg.drained = true;
	return 0;
}

static int check_iter(struct env *env, int32_t id)
{
	struct slot *s = NULL;
	int err = pbv_reg_use(env, 1, READ);

	if (err)
		return err;
	if (id == PB_BPF_KFUNC_ITER_NUM_NEW) {
		err = make(env);
	} else {
		s = initialized(env);
		if (!s)
			return -EINVAL;
	}
	if (!err && id == PB_BPF_KFUNC_ITER_NUM_NEXT)
		return next(env, s);
	if (!err && id == PB_BPF_KFUNC_ITER_NUM_DESTROY)
		err = destroy(env, s);
	if (err)
		return err;
	pbv_regs_clobber(env, cur_regs(env));
	if (id == PB_BPF_KFUNC_ITER_NUM_NEW)
		pbv_reg_make_scalar(&cur_regs(env)[0], !env->capable);
	return 0;
}

int pbv_check_kfunc(struct env *env, const struct bpf_insn *insn)
{
	/* the loader sets imm and off to 0 if the kfunc is missing; no path may reach such a
	 * call */
	if (!insn->imm && !insn->off)
		return refuse(env, EINVAL,
			      "invalid kernel function call not eliminated in verifier pass\n");
	return check_iter(env, insn->imm);
}
