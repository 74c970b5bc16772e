/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* States, their frames, and waiting branches. The interface is in state.h. */
#include "bpf/verifier/env.h"
#include "bpf/verifier/kept.h"
#include "bpf/verifier/live.h"
#include "bpf/verifier/log.h"
#include "bpf/verifier/prune.h"
#include "bpf/verifier/state.h"

struct whole_frame {
	struct frame f;
	struct reg regs[11];
};

struct frame *pbv_frame_blank(struct env *env)
{
	struct whole_frame *w = pbv_pool_zero(&env->pool, sizeof *w);

	if (!w)
		return NULL;
	w->f.regs = w->regs;
	return &w->f;
}

struct frame *pbv_frame_new(struct env *env, int32_t callsite, uint32_t number, uint32_t subprog)
{
	struct frame *f = pbv_frame_blank(env);

	if (!f)
		return NULL;
	f->callsite = callsite;
	f->number = number;
	f->subprog = subprog;
	f->budget = ++env->budgets;
	for (int i = 0; i < 11; i++)
		pbv_reg_make_none(&f->regs[i], !env->capable);
	pbv_reg_make(&f->regs[FP], TO_STACK, 0);
	f->regs[FP].frame = number;
	touch_all(env);
	return f;
}

void pbv_frame_free(struct env *env, struct frame *f)
{
	if (!f)
		return;
	pbv_pool_put(&env->pool, f->refs, f->room_refs * sizeof *f->refs);
	pbv_pool_put(&env->pool, f->slots, f->room_slots * sizeof *f->slots);
	pbv_pool_put(&env->pool, f, sizeof(struct whole_frame));
}

/* Makes room for n elements in an array. The array's contents may be lost. */
static bool renew(struct env *env, void **array, uint32_t *room, uint32_t n, size_t each)
{
	size_t bytes;
	void *p;

	if (n <= *room)
		return true;
	p = pbv_pool_get(&env->pool, n * each, &bytes);
	if (!p)
		return false;
	pbv_pool_put(&env->pool, *array, *room * each);
	*array = p;
	*room = (uint32_t)(bytes / each);
	return true;
}

int pbv_frame_copy_refs(struct env *env, struct frame *dst, const struct frame *src)
{
	void *refs = dst->refs;

	if (!renew(env, &refs, &dst->room_refs, src->nr_refs, sizeof *dst->refs))
		return -ENOMEM;
	dst->refs = refs;
	dst->nr_refs = src->nr_refs;
	if (src->nr_refs)
		memcpy(dst->refs, src->refs, src->nr_refs * sizeof *dst->refs);
	return 0;
}

int pbv_frame_room(struct env *env, struct frame *f, uint32_t n)
{
	void *slots = f->slots;

	if (!renew(env, &slots, &f->room_slots, n, sizeof *f->slots))
		return -ENOMEM;
	f->slots = slots;
	return 0;
}

static int frame_copy(struct env *env, struct frame *dst, const struct frame *src)
{
	if (pbv_frame_room(env, dst, src->nr_slots))
		return -ENOMEM;
	memcpy(dst->regs, src->regs, 11 * sizeof *dst->regs);
	memcpy(&dst->callsite, &src->callsite,
	       offsetof(struct frame, nr_refs) - offsetof(struct frame, callsite));
	dst->nr_slots = src->nr_slots;
	if (src->nr_slots)
		memcpy(dst->slots, src->slots, src->nr_slots * sizeof *dst->slots);
	return pbv_frame_copy_refs(env, dst, src);
}

int pbv_frame_grow(struct env *env, struct frame *f, uint32_t slots)
{
	struct subprog *s = &env->subs[f->subprog];
	struct slot *old = f->slots;
	uint32_t room = f->room_slots;

	if (slots <= f->nr_slots)
		return 0;
	if (slots > room) {
		void *new = NULL;

		f->room_slots = 0;
		if (!renew(env, &new, &f->room_slots, slots, sizeof *f->slots)) {
			f->room_slots = room;
			return -ENOMEM;
		}
		if (f->nr_slots)
			memcpy(new, old, f->nr_slots * sizeof *old);
		pbv_pool_put(&env->pool, old, room * sizeof *old);
		f->slots = new;
	}
	memset(f->slots + f->nr_slots, 0, (slots - f->nr_slots) * sizeof *f->slots);
	f->nr_slots = slots;
	if (s->stack < slots * SLOT)
		s->stack = slots * SLOT;
	return 0;
}

void pbv_state_clear(struct env *env, struct state *st)
{
	for (uint32_t i = 0; i <= st->cur; i++) {
		pbv_frame_free(env, st->frames[i]);
		st->frames[i] = NULL;
	}
	pbv_pool_put(&env->pool, st->steps, st->room_steps * sizeof *st->steps);
	st->steps = NULL;
	st->nr_steps = st->room_steps = 0;
}

void pbv_state_copy_facts(struct state *dst, const struct state *src)
{
	memcpy(&dst->parent, &src->parent,
	       offsetof(struct state, steps) - offsetof(struct state, parent));
}

int pbv_state_copy_steps(struct env *env, struct state *dst, const struct state *src)
{
	void *steps = dst->steps;

	if (!renew(env, &steps, &dst->room_steps, src->nr_steps, sizeof *dst->steps))
		return -ENOMEM;
	dst->steps = steps;
	dst->nr_steps = src->nr_steps;
	if (src->nr_steps)
		memcpy(dst->steps, src->steps, src->nr_steps * sizeof *dst->steps);
	return 0;
}

int pbv_state_copy(struct env *env, struct state *dst, const struct state *src)
{
	if (pbv_state_copy_steps(env, dst, src))
		return -ENOMEM;
	pbv_state_copy_facts(dst, src);
	for (uint32_t i = 0; i <= src->cur; i++) {
		if (!dst->frames[i])
			dst->frames[i] = pbv_frame_blank(env);
		if (!dst->frames[i] || frame_copy(env, dst->frames[i], src->frames[i]))
			return -ENOMEM;
	}
	return 0;
}

/* ---- references ------------------------------------------------------------------- */

int pbv_ref_acquire(struct env *env)
{
	struct frame *f = cur_frame(env);

	if (f->nr_refs == f->room_refs) {
		size_t bytes;

		struct ref *refs = pbv_pool_get(&env->pool, (f->nr_refs + 1) * sizeof *refs,
						&bytes);

		if (!refs)
			return -ENOMEM;
		if (f->nr_refs)
			memcpy(refs, f->refs, f->nr_refs * sizeof *refs);
		pbv_pool_put(&env->pool, f->refs, f->room_refs * sizeof *refs);
		f->refs = refs;
		f->room_refs = (uint32_t)(bytes / sizeof *f->refs);
	}
	f->refs[f->nr_refs++] = (struct ref){ ++env->ids, env->insn, f->callback };
	return (int)env->ids;
}

int pbv_ref_release_id(struct frame *f, uint32_t id)
{
	for (uint32_t i = 0; i < f->nr_refs; i++) {
		if (f->refs[i].id != id)
			continue;
		/* a callback, and the functions that it calls, may only release references that
		 * they have acquired themselves */
		if (f->refs[i].callback != f->callback)
			return -EINVAL;
		f->refs[i] = f->refs[--f->nr_refs];
		return 0;
	}
	return -EINVAL;
}

void pbv_reg_lost(struct env *env, struct reg *r)
{
	if (env->ptr_leaks)
		pbv_reg_make_scalar(r, !env->capable);
	else
		pbv_reg_make_none(r, !env->capable);
}

int pbv_ref_release(struct env *env, uint32_t ref)
{
	int err = pbv_ref_release_id(cur_frame(env), ref);

	if (err)
		return err;
	for_each_reg(env->cur, f, r)
		if (r->ref == ref)
			pbv_reg_lost(env, r);
	return 0;
}

int pbv_ref_check_leak(struct env *env)
{
	struct frame *f = cur_frame(env);
	int err = 0;

	if (f->number && !f->in_callback)
		return 0;
	for (uint32_t i = 0; i < f->nr_refs; i++) {
		if (f->in_callback && f->refs[i].callback != f->number)
			continue;
		err = refuse(env, EINVAL, "Unreleased reference id=%d alloc_insn=%d\n",
			     (int)f->refs[i].id, (int)f->refs[i].insn);
	}
	return err;
}

void pbv_forget_packets(struct env *env)
{
	for_each_reg(env->cur, f, r)
		if (reg_is_packet_or_end(r))
			pbv_reg_lost(env, r);
}

/* ---- the path, and its branches --------------------------------------------------- */

int pbv_step_push(struct env *env)
{
	struct state *st = env->cur;

	if (env->step_here)
		return 0;
	if (st->nr_steps == st->room_steps) {
		size_t bytes;
		struct step *steps = pbv_pool_get(&env->pool,
						  (st->nr_steps * 2 + 8) * sizeof *steps, &bytes);

		if (!steps)
			return -ENOMEM;
		if (st->nr_steps)
			memcpy(steps, st->steps, st->nr_steps * sizeof *steps);
		pbv_pool_put(&env->pool, st->steps, st->room_steps * sizeof *steps);
		st->steps = steps;
		st->room_steps = (uint32_t)(bytes / sizeof *steps);
	}
	st->steps[st->nr_steps++] = (struct step){ .insn = env->insn,
		.from = (uint32_t)env->prev_insn };
	env->step_here = true;
	return 0;
}

int pbv_step_jump(struct env *env)
{
	return env->aux[env->insn].jump_point ? pbv_step_push(env) : 0;
}

int pbv_step_stack(struct env *env, uint32_t frame, uint32_t slot)
{
	struct step *last;
	int err = pbv_step_push(env);

	if (err)
		return err;
	last = &env->cur->steps[env->cur->nr_steps - 1];
	last->stack = true;
	last->frame = (uint8_t)frame;
	last->slot = (uint8_t)slot;
	return 0;
}

/* Packs the state of a waiting branch (kept.c), because the branch is no longer the newest. */
static int branch_rest(struct env *env, struct waiting *w)
{
	struct state rest = { 0 };

	if (!w || w->st.marks)
		return 0;
	if (pbv_state_rest(env, &rest, &w->st, false))
		return -ENOMEM;
	pbv_state_clear(env, &w->st);
	w->st = rest;
	return 0;
}

struct state *pbv_branch_push(struct env *env, uint32_t insn, uint32_t from, bool speculative)
{
	struct waiting *w;

	if (pool_is_short(&env->pool))
		pbv_prune_make_room(env);
	w = pbv_pool_zero(&env->pool, sizeof *w);
	if (!w || branch_rest(env, env->waiting))
		return NULL;
	w->insn = insn;
	w->from = (int32_t)from;
	w->log_at = env->v->log ? pb_bpf_text_at(env->v->log) : 0;
	w->next = env->waiting;
	env->waiting = w;
	env->nr_waiting++;
	if (pbv_state_copy(env, &w->st, env->cur))
		return NULL;
	w->st.speculative |= speculative;
	if (env->nr_waiting > MAX_WAITING) {
		log(env, "The sequence of %d jumps is too complex.\n", (int)env->nr_waiting);
		return NULL;
	}
	if (w->st.parent)
		w->st.parent->branches++;
	return &w->st;
}

int pbv_branch_pop(struct env *env, bool shorten_log)
{
	struct waiting *w = env->waiting;

	if (!w)
		return -ENOENT;
	pbv_state_clear(env, env->cur);
	if (!w->st.marks) {
		*env->cur = w->st;
	} else {
		if (pbv_state_wake(env, env->cur, &w->st))
			return -ENOMEM;
		pbv_state_forget(env, &w->st);
	}
	if (shorten_log && env->v->log)
		pb_bpf_text_back(env->v->log, w->log_at);
	env->insn = w->insn;
	env->prev_insn = w->from;
	env->waiting = w->next;
	env->nr_waiting--;
	pbv_pool_put(&env->pool, w, sizeof *w);
	return 0;
}

void pbv_branches_end(struct env *env)
{
	struct state *parent;

	for (struct state *st = env->cur; st && !--st->branches; st = parent) {
		parent = st->parent;
		if (st != env->cur)
			pbv_prune_done(env, st);
	}
}
