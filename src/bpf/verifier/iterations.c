/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Loops whose number of iterations is bounded at run time. The verifier doesn't follow a new
 * iteration of such a loop if the state in which an earlier iteration began covers the current
 * state (alike.c). The bound is a budget: each iteration consumes a part of a budget, and a budget
 * is never refilled. Three things have a budget:
 *
 *   a frame                          for all iterations of its may_gotos together
 *   a call of bpf_loop or another
 *   helper with a callback           for the calls of the callback
 *   an iterator                      for its elements
 *
 * Budgets are numbered: each budget has a larger number than all older budgets (env->budgets is the
 * newest number). A frame that is entered again has a new budget. An iterator that is made again in
 * the same place has a new budget, too. A state records how much of each budget its path has
 * consumed.
 *
 * Claim: a program terminates if each path ends, or jumps back to a kept state for which
 * iteration_taken() is true. Proof: the kept states are a tree. Assume a run without end. This run
 * jumps back to some kept states infinitely often. Let S be the kept state among these that is
 * nearest to the tree's root. Between two jumps to S, the run goes down the tree, from S to the
 * state that jumps. On this path the oldest budget that changed was consumed, not replaced, because
 * iteration_taken() is true for the jump. Take the remainders of S's budgets as a list, oldest
 * budget first. Between two jumps to S the list decreases in lexicographic order. On its way the
 * run may jump back to descendants of S. Such jumps don't increase the list: each iteration
 * replaces only budgets that are younger than the budget that it consumes. The list can't decrease
 * forever, so there is no run without end.
 *
 * Pruning adds a case. If the current state C is pruned in favour of a finished state D (prune.c),
 * a run in C continues like a run in D. Later, the run may jump back to S, an ancestor of C and D.
 * When this jump was checked, the path led from S through D to the jump. But the run leads from S
 * to C, and continues there like a run after D. So iterations_no_fewer() requires that one of two
 * conditions holds:
 *
 *   - in lexicographic order, C's list of the remainders of S's budgets is no greater than D's list
 *   - on the path from S to C, the oldest budget that changed was consumed, not replaced. And this
 *     budget is no younger than any budget that was consumed between S and D
 */
#include "bpf/verifier/env.h"
#include "bpf/verifier/kept.h"
#include "bpf/verifier/prune.h"
#include "bpf/verifier/state.h"
#include "bpf/verifier/iterations.h"

#define NONE_YET UINT32_MAX

static uint32_t older(uint32_t a, uint32_t b)
{
	return a < b ? a : b;
}

/* The difference between two states. used: the oldest budget of which the second state has consumed
 * more. lost: the oldest budget that the second state has replaced, or has consumed less of. */
struct spent {
	uint32_t used, lost;
	uint32_t newest;	/* budgets younger than this one are ignored */
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

/* Returns the iterator in slot i of a state's frame. NULL: the slot has no iterator. */
static const struct reg *iterator(const struct env *env, const struct state *st,
				  const struct frame *f, uint32_t i)
{
	const struct slot *s = i >= f->nr_slots ? NULL : st->marks ? rest_slot(f, i) : &f->slots[i];

	return s && slot_iterates(s) ? &s->reg : NULL;
}

static struct spent spent_between(const struct env *env, const struct state *old,
				  const struct state *cur, uint32_t newest)
{
	struct spent s = { .used = NONE_YET, .lost = NONE_YET, .newest = newest };
	static const struct frame none;

	for (uint32_t n = 0; n <= old->cur; n++) {
		const struct frame *f = old->frames[n], *c = n <= cur->cur ? cur->frames[n] : &none;

		spend(&s, f->budget, f->passed, c->budget, c->passed);
		spend(&s, f->series, f->iterations, c->series, c->iterations);
		for (uint32_t i = 0; i < f->nr_slots; i++) {
			const struct reg *was = iterator(env, old, f, i),
				*is = was ? iterator(env, cur, c, i) : NULL;

			if (was)
				spend(&s, was->iter, was->depth, is ? is->iter : 0, is ? is->depth :
				      0);
		}
	}
	return s;
}

bool iteration_taken(const struct env *env, const struct state *old)
{
	struct spent s = spent_between(env, old, env->cur, NONE_YET);

	return s.used < s.lost;
}

/*
 * Compares the budgets up to `newest`. Returns whether, in lexicographic order, the remainders in
 * the current state are no greater than in `old`. If the result is true, it is true for any smaller
 * `newest`, too. The reason: if the result is true and a budget is lost, the oldest used budget has
 * a smaller number than the oldest lost budget. So a smaller `newest` that includes the lost budget
 * also includes the used budget.
 */
static bool used_no_less(const struct env *env, const struct state *old, uint32_t newest)
{
	struct spent s = spent_between(env, old, env->cur, newest);

	return s.lost == NONE_YET || s.used < s.lost;
}

/* Checks the second condition of the comment at the beginning of this file. S is `top`, D is `old`,
 * and C is the current state. */
static bool is_iteration_too(const struct env *env, const struct state *old,
			     const struct state *top)
{
	struct spent o = spent_between(env, top, old, NONE_YET),
		c = spent_between(env, top, env->cur, NONE_YET);

	return c.used < c.lost && c.used <= o.used;
}

bool iterations_no_fewer(const struct env *env, const struct state *old)
{
	const struct state *top = env->cur->parent;

	if (used_no_less(env, old, old->budgets))
		return true;
	/* states of the current path that are older than `old` are ancestors of `old` and of the
	 * current state */
	while (top && top->number > old->number)
		top = top->outer_head;
	for (; top; top = top->outer_head) {
		if (!top->head)
			continue;
		/* if used_no_less() is true for top's budgets, it is true for the budgets of all
		 * ancestors of top, because an ancestor's budgets are the oldest of top's
		 * budgets */
		if (used_no_less(env, old, top->budgets))
			return true;
		if (!top->frames[0] || !is_iteration_too(env, old, top))
			return false;
	}
	return true;
}

/* The path forks. The current path jumps, since the budget may be used up. The pushed path falls
 * through, which consumes an iteration. */
int pbv_check_may_goto(struct env *env, const struct bpf_insn *insn)
{
	struct state *st = pbv_branch_push(env, env->insn + 1, env->insn, false);
	struct state *kept = env->cur->parent;

	if (!st)
		return -ENOMEM;
	st->frames[st->cur]->passed++;
	st->iterations++;
	/* if `kept` was kept at this instruction, the current iteration began in `kept`. So the
	 * previous iteration began in an ancestor of `kept` */
	if (kept && kept->insn == env->insn)
		pbv_prune_widen(env, kept->parent, st);
	env->insn += (uint32_t)(int32_t)insn->off;
	return 0;
}

bool pbv_has_may_goto(const struct env *env, uint32_t sub)
{
	for (uint32_t i = env->subs[sub].start; i < env->subs[sub + 1].start; i++)
		if (env->ops[i] == PB_BPF_OP_MAY_GOTO && env->aux[i].fact.seen)
			return true;
	return false;
}
