/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Checks whether a kept state (an earlier state at this instruction) covers the current state. If
 * it does, everything that is safe after the kept state is safe after the current state. The paths
 * from the kept state read some of its registers and slots. For each of these registers and slots,
 * the current state must have a value that the kept state allows. If a number's value matters, the
 * number must lie within the kept number's bounds. A pointer must point into the same object.
 * Values that an id links in the kept state must be linked in the current state, too.
 */
#include "bpf/verifier/alike.h"
#include "bpf/verifier/env.h"
#include "bpf/verifier/kept.h"
#include "bpf/verifier/state.h"

#define ALONE (1u << 31)

/* ---- ids ------------------------------------------------------------------------------- */

/* Returns whether the ids correspond. Registers with the same id hold the same value. So registers
 * that share an id in the kept state must share an id in the current state. Some ids belong to one
 * value in all states (env->value_ids). A later LD_IMM64 gives the same id in both states, so such
 * an id corresponds only to itself. */
static bool same_id(struct env *env, uint32_t old, uint32_t cur)
{
	struct ref_pair *p = env->idmap.pair;

	if (old <= env->value_ids_end || cur <= env->value_ids_end)
		return old == cur;	/* also if an id is 0 */
	for (uint32_t i = 0; i < env->idmap.nr; i++) {
		if (p[i].old == old)
			return p[i].cur == cur;
		if (p[i].cur == cur)
			return false;
	}
	if (env->idmap.nr == pb_array_size(env->idmap.pair))
		return false;
	p[env->idmap.nr++] = (struct ref_pair){ old, cur };
	return true;
}

/*
 * o is a scalar of the kept state, and c is the scalar in the same place of the current state.
 * Returns whether c has all links of o: if another scalar of the kept state is linked to o, the
 * scalar in the same place of the current state must be linked to c. Linked scalars have the same
 * id. Each of them is one common number plus a constant (delta), which may differ between them. If
 * a branch narrows the bounds of one of them, the verifier computes the bounds of the others with
 * the constants. So o and c must have the same constant. A link that only the current state has
 * makes this state more precise. It is allowed if one of its two scalars has no id in the kept
 * state. (If both have an id there, the result is false, which is safe.)
 */
static bool same_copies(struct env *env, const struct reg *o, const struct reg *c)
{
	struct ref_pair *p = env->idmap.pair;
	uint32_t old = o->id, cur = c->id;

	if (!old)
		return true;
	if (o->delta != c->delta)
		return false;
	if (!cur)
		cur = ALONE + env->idmap.nr;	/* an id that no other scalar has */
	for (uint32_t i = 0; i < env->idmap.nr; i++)
		if (p[i].old == old || p[i].cur == cur)
			return p[i].old == old && p[i].cur == cur;
	if (env->idmap.nr == pb_array_size(env->idmap.pair))
		return false;
	p[env->idmap.nr++] = (struct ref_pair){ old, cur };
	return true;
}

/* Returns whether old's bounds contain cur's bounds. If env->exact is set, returns whether the
 * bounds are equal. */
static bool value_in(const struct env *env, const struct reg *old, const struct reg *cur)
{
	if (env->exact)
		return !memcmp(&old->var, &cur->var, REG_ALL - offsetof(struct reg, var));
	return range_in(&old->wide, &cur->wide) && range_in(&old->low, &cur->low) &&
	       tnum_in(old->var, cur->var);
}

static bool packet_safe(struct env *env, const struct reg *old, const struct reg *cur)
{
	if (cur->type != old->type || cur->flags != old->flags)
		return false;
	if (old->range < 0 || cur->range < 0 ? old->range != cur->range : old->range > cur->range)
		return false;
	if (old->off != cur->off || !same_id(env, old->id, cur->id))
		return false;
	return value_in(env, old, cur);
}

/* Compares pointers into memory of a fixed size. Each address that cur may have must be possible
 * for old, too. */
static bool memory_safe(struct env *env, const struct reg *old, const struct reg *cur)
{
	if (memcmp(old, cur, REG_KIND))
		return false;
	return same_id(env, old->id, cur->id) && same_id(env, old->ref, cur->ref) &&
	       value_in(env, old, cur);
}

/* Returns whether the registers are equal. Their ids needn't have the same number, but same_id()
 * must pair them. */
static bool reg_same(struct env *env, const struct reg *old, const struct reg *cur)
{
	return !memcmp(old, cur, REG_KIND) &&
	       !memcmp(&old->var, &cur->var, REG_ALL - offsetof(struct reg, var)) &&
	       same_id(env, old->id, cur->id) && same_id(env, old->ref, cur->ref);
}

/* Returns whether cur is safe wherever `old` was safe. Called if a path from the kept state reads
 * `old`, or if whole states are compared. */
static bool reg_safe(struct env *env, const struct reg *old, bool precise, const struct reg *cur)
{
	if (env->exact)
		return reg_same(env, old, cur) &&
		(old->type != TO_STACK || old->frame == cur->frame);
	if (old->type == NOT_INIT)
		return true;
	if (cur->type == NOT_INIT)
		return false;
	switch (old->type) {
	case SCALAR:
		/* a pointer in place of a number could leak */
		if (cur->type != SCALAR || env->alu_limits)
			return cur->type == SCALAR && reg_same(env, old, cur);
		return (!precise && !env->whole) ||
		       (value_in(env, old, cur) && same_copies(env, old, cur));
	case TO_MAP_KEY: case TO_MAP_VALUE: case TO_MEM: case TO_BUF:
		return memory_safe(env, old, cur);
	case TO_PACKET: case TO_PACKET_META:
		return packet_safe(env, old, cur);
	default:
		return reg_same(env, old, cur) &&
		       (old->type != TO_STACK || old->frame == cur->frame);
	}
}

/* Compares two slots of the same type. Each slot holds an iterator, or one half of a dynptr. */
static bool same_object(struct env *env, const struct slot *old, const struct slot *cur)
{
	const struct reg *o = &old->reg, *c = &cur->reg;

	/* the two iterators may have given different numbers of elements: see iterations.c */
	if (slot_iterates(old))
		return o->drained == c->drained && same_id(env, o->ref, c->ref);
	return o->dynptr == c->dynptr && o->first_slot == c->first_slot &&
	       same_id(env, o->id, c->id) && same_id(env, o->dynptr_id, c->dynptr_id);
}

/*
 * Returns the number that a load of the whole slot gives. If all 8 bytes of a number were spilled,
 * it is the spilled number. If all bytes are S_MISC, it is an unknown number. Uninitialised bytes
 * count as S_MISC if the program may read them. In all other cases returns NULL.
 */
static const struct reg *number_in(const struct env *env, const struct slot *s, struct reg *any)
{
	if (s->type[0] == S_SPILL && slot_spilled(s) && s->reg.type == SCALAR)
		return &s->reg;
	for (int b = 0; b < SLOT; b++)
		if (s->type[b] != S_MISC && !(s->type[b] == S_INVALID && env->uninit_stack))
			return NULL;
	memset(any, 0, sizeof *any);
	pbv_reg_make_scalar(any, false);
	return any;
}

static bool bytes_safe(const struct env *env, const struct slot *old, const struct slot *cur)
{
	/* A program must not read a part of a pointer or of an object, but may read S_MISC bytes.
	 * If S_MISC of the kept state covered a part of a pointer in the current state, the verdict
	 * on a program that reads this part would depend on the order of the two paths. */
	bool pointer = (slot_spilled(cur) && cur->reg.type != SCALAR) || slot_has_object(cur);

	for (int b = 0; b < SLOT; b++) {
		uint8_t was = old->type[b], is = cur->type[b];

		if (env->exact && was != is)
			return false;
		if (was == S_INVALID || (was == S_MISC && env->uninit_stack && !pointer))
			continue;
		if (was != is && !(was == S_MISC && is == S_ZERO))
			return false;
	}
	return true;
}

static bool slot_safe(struct env *env, const struct slot *old, bool precise, const struct slot *cur)
{
	static const struct slot unknown;
	struct reg any[2];
	const struct reg *was, *is;

	if (!cur)
		cur = &unknown;
	was = number_in(env, old, &any[0]);
	is = number_in(env, cur, &any[1]);
	if (was && is)
		return reg_safe(env, was, precise && was == &old->reg, is);
	if (!bytes_safe(env, old, cur))
		return false;
	if (slot_has_object(old))
		return same_object(env, old, cur);
	return !slot_spilled(old) || reg_safe(env, &old->reg, precise, &cur->reg);
}

static bool frame_safe(struct env *env, const struct frame *old, const struct marks *m,
		       const struct frame *cur)
{
	uint64_t slots = env->whole ? ~0ull : m->read_slots;
	uint32_t regs = env->whole ? ~0u : m->read;

	/* cur must not have more iterations left than old. This needs its own check: the limit
	 * (most_iterations) came from r1 of the frame that called bpf_loop, and no register of the
	 * callback depends on it. */
	if ((int64_t)old->most_iterations - old->iterations < (int64_t)cur->most_iterations -
	    cur->iterations)
		return false;
	for (uint32_t i = 0; i < 11; i++)
		if (regs >> i & 1 &&
		    !reg_safe(env, rest_reg(old, i), m->precise >> i & 1, &cur->regs[i]))
			return false;
	for (uint32_t i = 0; i < old->nr_slots; i++)
		if (slots >> i & 1 && !slot_safe(env, rest_slot(old, i), m->precise_slots >> i & 1,
						 i < cur->nr_slots ? &cur->slots[i] : NULL))
			return false;
	if (old->nr_refs != cur->nr_refs)
		return false;
	for (uint32_t i = 0; i < old->nr_refs; i++)
		if (old->refs[i].callback != cur->refs[i].callback ||
		    !same_id(env, old->refs[i].id, cur->refs[i].id))
			return false;
	return true;
}

static bool compare_states(struct env *env, const struct state *old, const struct state *cur)
{
	/* a state that only a mispredicted path reaches can't cover a state that a real path
	 * reaches */
	if (old->cur != cur->cur || (old->speculative && !cur->speculative))
		return false;
	env->idmap.nr = 0;
	if (!same_id(env, old->lock, cur->lock))
		return false;
	for (uint32_t i = 0; i <= old->cur; i++)
		if (old->frames[i]->callsite != cur->frames[i]->callsite ||
		    !frame_safe(env, old->frames[i], &old->marks[i], cur->frames[i]))
			return false;
	return true;
}

bool pbv_state_safe(struct env *env, const struct state *old, const struct state *cur, bool whole)
{
	env->whole = whole;
	env->exact = false;
	return compare_states(env, old, cur);
}

bool pbv_state_same(struct env *env, const struct state *old, const struct state *cur)
{
	env->whole = env->exact = true;
	return compare_states(env, old, cur);
}

bool pbv_maybe_looping(const struct state *old, const struct state *cur)
{
	if (old->cur != cur->cur)
		return false;
	for (uint32_t i = 0; i < 11; i++)
		if (memcmp(rest_reg(old->frames[old->cur], i), &cur->frames[cur->cur]->regs[i],
			   REG_ALL))
			return false;
	return true;
}
