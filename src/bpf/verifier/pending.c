/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The needs of loops. A state's needs are the registers and slots that the paths from it read, and
 * the exact values of some of them. If a path jumps back to a kept state, the kept states of the
 * path have the target's needs, too. But the target's needs are known only when all paths from it
 * are done, and the path that jumps back is one of these paths. Until all these paths are done, the
 * states from the target to the jump are pending (`whole`): later states are compared with all
 * values of a pending state.
 *
 * So each jump back is recorded, with a copy of the state at the jump. When all paths from a target
 * are done, and the target depends on no older state, the verifier goes over all jumps that these
 * paths made. It marks the needs of each jump's target in the ancestors of the state at the jump.
 * This is repeated, in rounds, until a round makes no new mark. Then the states are no longer
 * pending: only the needed values are compared.
 *
 * A pending state may depend on several kept states, since the paths from it may jump to different
 * states. `until` is the number of the oldest of these kept states. The pending state stays pending
 * until the needs of state `until` are known.
 *
 * The rounds would end by themselves, since marks are only added. But the verifier gives up after
 * MAX_ROUNDS rounds, at more than MAX_JUMPS jumps, or if memory is short. Then all registers and
 * slots of the pending states count as needed, for good (`until` 0).
 */
#include "bpf/verifier/env.h"
#include "bpf/verifier/kept.h"
#include "bpf/verifier/pending.h"
#include "bpf/verifier/prune.h"
#include "bpf/verifier/state.h"

#define MAX_ROUNDS	64
#define MAX_JUMPS	4096

struct jump {
	struct jump *next;
	struct state from;	/* the state at the jump; at rest */
	struct state *to;
	uint32_t number;	/* count of states that were kept before the jump */
};

static void free_jump(struct env *env, struct jump **link)
{
	struct jump *j = *link;

	*link = j->next;
	env->nr_jumps--;
	pbv_state_forget(env, &j->from);
	pbv_pool_put(&env->pool, j, sizeof *j);
}

/* ---- giving up -------------------------------------------------------------------------- */

static void need_all(struct state *st)
{
	for (uint32_t n = 0; n <= st->cur; n++) {
		struct marks *m = &st->marks[n];

		m->read = UINT16_MAX;
		m->read_slots = UINT64_MAX;
		m->precise |= m->scalar;
		m->precise_slots |= m->scalar_slots;
	}
	st->whole = true;
	st->until = 0;
}

/* Marks all registers and slots of each state on the path to `st` as needed, for good. */
static void give_up(struct state *st)
{
	for (; st && !(st->whole && !st->until); st = st->parent)
		need_all(st);
}

void pbv_pending_give_up(struct env *env)
{
	while (env->jumps)
		free_jump(env, &env->jumps);
	for (uint32_t i = 0; i < env->nr_pending; i++) {
		env->pending[i]->awaited = false;
		give_up(env->pending[i]);
	}
	env->nr_pending = 0;
}

/* ---- recording -------------------------------------------------------------------------- */

static bool add_pending(struct env *env, struct state *st)
{
	if (env->nr_pending == env->room_pending) {
		uint32_t room = env->room_pending * 2 + 30;
		struct state **p = pbv_pool_get(&env->pool, room * sizeof(*p), NULL);

		if (!p)
			return false;
		if (env->nr_pending)
			memcpy(p, env->pending, env->nr_pending * sizeof(*p));
		pbv_pool_put(&env->pool, env->pending, env->room_pending * sizeof(*p));
		env->pending = p;
		env->room_pending = room;
	}
	env->pending[env->nr_pending++] = st;
	return true;
}

/* Makes each state of the current path whose number is at least `until` wait for state `until`. */
static int wait_for(struct env *env, uint32_t until)
{
	for (struct state *st = env->cur->parent; st && st->number >= until; st = st->parent) {
		/* if st already waits for state `until` or an older state, so do all states of the
		 * path between state `until` and st */
		if (st->whole && st->until <= until)
			return 0;
		if (!st->whole && !add_pending(env, st))
			return -ENOMEM;
		st->whole = true;
		st->until = until;
	}
	return 0;
}

int pbv_pending_jump(struct env *env, struct state *to)
{
	uint32_t until = to->whole && to->until < to->number ? to->until : to->number;
	struct jump *j;
	int err;

	if (env->nr_jumps >= MAX_JUMPS)
		pbv_pending_give_up(env);
	/* If the target was given up, its needs never become known. So the states of the current
	 * path are given up too. Each pending state waits for a state of the current path, so all
	 * pending states are given up. */
	if (!until || (to->whole && !to->until)) {
		pbv_pending_give_up(env);
		give_up(env->cur->parent);
		return 0;
	}
	j = pbv_pool_zero(&env->pool, sizeof *j);
	if (!j)
		return -ENOMEM;
	j->to = to;
	j->number = env->v->stats.total_states;
	j->next = env->jumps;
	env->jumps = j;
	env->nr_jumps++;
	to->awaited = true;
	err = wait_for(env, until);
	return err ? err : pbv_state_rest(env, &j->from, env->cur, true);
}

/* ---- the end of the wait ---------------------------------------------------------------- */

/* One round: for each recorded jump that a path from `top` made, marks the needs of the jump's
 * target in the ancestors of the state at the jump. */
static int take_over_once(struct env *env, const struct state *top, struct state *scratch)
{
	int err = 0;

	for (struct jump *j = env->jumps; j && j->number >= top->number && !err; j = j->next) {
		pbv_state_clear(env, scratch);
		err = pbv_state_wake(env, scratch, &j->from);
		env->cur = scratch;
		env->insn = j->to->insn;
		if (!err)
			err = pbv_prune_take_over(env, j->to);
	}
	return err;
}

static int take_over_all(struct env *env, const struct state *top)
{
	struct state *cur = env->cur, scratch = { 0 };
	uint32_t insn = env->insn, before, rounds = 0;
	int err;

	do {
		before = env->marks_made;
		err = take_over_once(env, top, &scratch);
	} while (!err && before != env->marks_made && ++rounds < MAX_ROUNDS);
	pbv_state_clear(env, &scratch);
	env->cur = cur;
	env->insn = insn;
	if (rounds == MAX_ROUNDS)
		pbv_pending_give_up(env);
	return err;
}

/* Whether the state's needs are complete only after those of a state older than state `number`. */
static bool waits_longer(const struct state *st, uint32_t number)
{
	return st->number < number || (st->whole && st->until < number);
}

/*
 * Called when the needs of `top` are complete, and so are those of all states that wait for `top`
 * or a newer state. Removes these states from the list of pending states, and frees the jumps to
 * them. A state that is newer than `top` may still wait for a state that is older than `top`: it
 * belongs to an asynchronous callback, whose states are no descendants of `top`.
 */
static void settle(struct env *env, const struct state *top)
{
	uint32_t number = top->number;

	for (struct jump **link = &env->jumps; *link && (*link)->number >= number;)
		if (waits_longer((*link)->to, number))
			link = &(*link)->next;
		else
			free_jump(env, link);
	for (uint32_t i = 0; i < env->nr_pending;) {
		struct state *st = env->pending[i];

		if (waits_longer(st, number)) {
			i++;
			continue;
		}
		env->pending[i] = env->pending[--env->nr_pending];
		st->whole = st->awaited = false;
		pbv_prune_done(env, st);
	}
}

int pbv_pending_done(struct env *env, struct state *st)
{
	int err;

	if (st->until < st->number) {
		/* st itself waits for an older state, number st->until. So states that waited for
		 * st now wait for that older state */
		for (uint32_t i = 0; st->awaited && i < env->nr_pending; i++)
			if (env->pending[i]->number > st->number &&
			    env->pending[i]->until > st->until)
				env->pending[i]->until = st->until;
		return 0;
	}
	err = take_over_all(env, st);
	if (!err && st->until)
		settle(env, st);
	return err;
}
