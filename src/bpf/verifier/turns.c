/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Loops whose number of turns is bounded when they run, so that a turn that begins like
 * one before it needs no second look. What bounds them is used up, and never refilled:
 *
 *   a frame		the turns that its may_gotos let pass, together
 *   a call of bpf_loop or another helper with a callback	turns of the callback
 *   an iterator	its elements
 *
 * Each such budget has a number of its own in env->budgets, larger than those of all
 * older ones; a frame that is entered again, or an iterator that is made again in the same
 * place, is another one. A state says how much of each was used on the way to it.
 *
 * Why a program whose paths all end, or come back to a kept state ("jump back") with
 * turn_taken(), ends when it runs: take a run without end, and of the states that it jumps
 * back to again and again the one nearest to the root, S. Between two jumps to S the
 * run goes down every edge of the tree from S to the state that jumps. On that way the oldest
 * budget that changed was used, not replaced; so the remains of S's budgets, the oldest
 * first, become smaller in the order of words in a dictionary. Jumps back to states
 * below S don't enlarge them: what these replace is younger than what they use.
 *
 * A run may also go on in another state D, that was done with, in place of the present one,
 * C (prune.c). From behind D it may jump back to S, above both: that was found to be a turn of
 * the way S ... D ..., but what it goes now is S ... C, D .... turns_no_fewer() asks that it
 * is one of this way, too: C has used up no less than D of all that S has, or the way from S
 * to C is a turn, by a budget that is no younger than any that was used between S and D.
 */
#include "bpf/verifier/env.h"

#define NONE_YET UINT32_MAX

static uint32_t older(uint32_t a, uint32_t b)
{
	return a < b ? a : b;
}

/* The oldest budget that was used between two states, and the oldest that wasn't kept. */
struct spent {
	uint32_t used, lost;
	uint32_t newest;	/* younger ones don't count */
};

static void spend(struct spent *s, uint32_t old, uint32_t old_used, uint32_t cur, uint32_t cur_used)
{
	if (!old || old > s->newest)
		return;
	if (old != cur || old_used > cur_used)
		s->lost = older(s->lost, old);
	else if (old_used < cur_used)
		s->used = older(s->used, old);
}

/* Slot i of a state's frame; NULL: it has none, or it is no iterator. */
static const struct reg *iterator(const struct env *env, const struct state *st, const struct frame *f, uint32_t i)
{
	const struct slot *s = i >= f->nr_slots ? NULL : st->marks ? rest_slot(f, i) : &f->slots[i];

	return s && slot_iterates(s) ? &s->reg : NULL;
}

static struct spent spent_between(const struct env *env, const struct state *old, const struct state *cur,
				  uint32_t newest)
{
	struct spent s = { .used = NONE_YET, .lost = NONE_YET, .newest = newest };
	static const struct frame none;

	for (uint32_t n = 0; n <= old->cur; n++) {
		const struct frame *f = old->frames[n], *c = n <= cur->cur ? cur->frames[n] : &none;

		spend(&s, f->budget, f->passed, c->budget, c->passed);
		spend(&s, f->series, f->turns, c->series, c->turns);
		for (uint32_t i = 0; i < f->nr_slots; i++) {
			const struct reg *was = iterator(env, old, f, i), *is = was ? iterator(env, cur, c, i) : NULL;

			if (was)
				spend(&s, was->iter, was->depth, is ? is->iter : 0, is ? is->depth : 0);
		}
	}
	return s;
}

bool turn_taken(const struct env *env, const struct state *old)
{
	struct spent s = spent_between(env, old, env->cur, NONE_YET);

	return s.used < s.lost;
}

/*
 * Of the budgets up to `newest`, the present state has used up no less than `old`. Then that holds
 * up to a smaller number, too: if the oldest lost one is among those, so is the used one, which
 * is older.
 */
static bool used_no_less(const struct env *env, const struct state *old, uint32_t newest)
{
	struct spent s = spent_between(env, old, env->cur, newest);

	return s.lost == NONE_YET || s.used < s.lost;
}

/* The way from `top` to the present state is a turn, and so by a budget no younger than any used before `old`. */
static bool is_turn_too(const struct env *env, const struct state *old, const struct state *top)
{
	struct spent o = spent_between(env, top, old, NONE_YET), c = spent_between(env, top, env->cur, NONE_YET);

	return c.used < c.lost && c.used <= o.used;
}

bool turns_no_fewer(const struct env *env, const struct state *old)
{
	const struct state *top = env->cur->parent;

	if (used_no_less(env, old, old->budgets))
		return true;
	/* those under way that are older than `old` are what both come from */
	while (top && top->number > old->number)
		top = top->parent;
	for (; top; top = top->parent) {
		if (!top->head)
			continue;
		/* and of each further up, whose budgets are some of these, the oldest */
		if (used_no_less(env, old, top->budgets))
			return true;
		if (!top->frames[0] || !is_turn_too(env, old, top))
			return false;
	}
	return true;
}

/* One path takes the jump at once; the other falls through while turns are left. */
int check_may_goto(struct env *env, const struct bpf_insn *insn)
{
	struct state *st = branch_push(env, env->insn + 1, env->insn, false);
	struct state *kept = env->cur->parent;

	if (!st)
		return -ENOMEM;
	st->frames[st->cur]->passed++;
	st->turns++;
	/* the state before this instruction has just been kept */
	if (kept && kept->insn == env->insn)
		prune_widen(env, kept->parent, st);
	env->insn += (uint32_t)(int32_t)insn->off;
	return 0;
}

bool has_may_goto(const struct env *env, uint32_t sub)
{
	for (uint32_t i = env->subs[sub].start; i < env->subs[sub + 1].start; i++)
		if (env->ops[i] == PB_BPF_OP_MAY_GOTO && env->aux[i].fact.seen)
			return true;
	return false;
}
