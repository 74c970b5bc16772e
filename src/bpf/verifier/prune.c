/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Pruning. At a prune point, where paths meet, the verifier compares the current state with kept
 * states. If a kept state covers the current state, and all paths from the kept state were found
 * safe, the current path is not followed.
 *
 * A kept state records the needs of the paths from it: which registers and slots they read
 * (live.c), and which scalars must have their exact value (precise.c). Only these values are
 * compared (alike.c). If the kept state covers the current state, the current path takes over the
 * needs, as if it had been followed. The needs are then marked in the kept states of the current
 * path, since later states are compared with these kept states.
 *
 * A kept state's life:
 *
 *   branches > 0    paths from it are still followed, so its needs are not complete. If one of
 *                   these paths comes back to the kept state's instruction, there is a loop. If
 *                   the path's state equals the kept state, the loop may never end. If the loop
 *                   has a budget (its number of iterations is bounded at run time; see
 *                   iterations.c), and the kept state covers the path's whole state, the new
 *                   iteration need not be followed
 *   branches == 0   all paths from it have ended. Unless `whole` is set, its needs are complete,
 *                   and only the needed values are compared
 *   awaited         paths were pruned because of this state before its needs were complete
 *                   (pending.c)
 *   whole           all values are compared, because the state's needs are not complete. For
 *                   example, a path from this state was pruned because of a state whose needs
 *                   were not complete
 *   until           only if `whole` is set: this state's needs are complete when those of state
 *                   number `until` are. If `until` is 0, they never become complete, and all
 *                   values are compared for good
 *   unlisted        in no list and never compared again, but needed as a parent: usually only
 *                   its marks stay, and its steps: the records of instructions that backward
 *                   walks need
 *
 * The choice of kept states decides how many instructions the verifier processes. It changes the
 * verdict only if a limit is reached, for example PB_BPF_COMPLEXITY. So a state may be dropped if
 * no other state waits for it. A state is dropped if it was compared too often without pruning a
 * path (patience()). If memory runs short, the oldest states are dropped. The verifier keeps no
 * state at a prune point soon after the last kept state, and none in most iterations of a loop
 * without a budget.
 *
 * Three rules keep backward walks short. If a path has more than LONG_PATH instructions since its
 * last kept state, a state is kept at the next instruction, unless this is a prune point. Such a
 * state is unlisted: no path is compared with it. At a prune point, a state is kept if the path has
 * recorded more than MAX_STEPS steps; the path's length alone doesn't matter there. A state is also
 * kept where an iteration of a loop with a budget begins. If memory is too short for a state, and
 * the path since the last kept state is longer than LONG_PATH, all scalars in all kept states of
 * the path are marked as precise. Backward walks then end at this point of the path.
 */
#include "bpf/verifier/alike.h"
#include "bpf/verifier/env.h"
#include "bpf/verifier/kept.h"
#include "bpf/verifier/live.h"
#include "bpf/verifier/log.h"
#include "bpf/verifier/pending.h"
#include "bpf/verifier/precise.h"
#include "bpf/verifier/prune.h"
#include "bpf/verifier/state.h"
#include "bpf/verifier/iterations.h"

/* ---- the current path takes over the needs of the kept state that covers it ---------------- */

/* Returns the number of the frame's first register whose marks matter. While the frame waits for a
 * callee, this is r6, since the call overwrites r0 to r5. Otherwise this is r0, even if the frame
 * waits for a helper's callback. */
static uint32_t first_kept(const struct state *st, uint32_t frame)
{
	return frame < st->cur && !st->frames[frame + 1]->in_callback ? 6 : 0;
}

static void take_over_reads(struct env *env, const struct state *old, struct state *cur)
{
	for (uint32_t n = 0; n <= old->cur; n++) {
		const struct marks *m = &old->marks[n];
		const struct frame *to = cur->frames[n];

		for (uint32_t i = first_kept(old, n); i < FP; i++)
			if (m->read >> i & 1)
				pbv_live_take_over(env, to, i);
		for (uint32_t i = 0; i < m->nr_slots && i < to->nr_slots; i++)
			if (m->read_slots >> i & 1)
				pbv_live_take_over(env, to, 11 + i);
	}
}

static void log_propagated(struct env *env, uint32_t frame, const struct wanted *w)
{
	const char *before = "";

	if (!(env->v->log_level & 2) || !(w->regs[frame] || w->slots[frame]))
		return;
	log(env, "frame %d: propagating ", (int)frame);
	for (uint32_t left = w->regs[frame]; left; left &= left - 1, before = ",")
		log(env, "%sr%d", before, __builtin_ctz(left));
	for (uint64_t left = w->slots[frame]; left; left &= left - 1, before = ",")
		log(env, "%sfp%d", before, -(__builtin_ctzll(left) + 1) * SLOT);
	log(env, "\n");
}

/* Returns a bit for each slot of the frame in which a register is spilled. */
static uint64_t slots_spilled(const struct frame *f)
{
	uint64_t bits = 0;

	for (uint32_t i = 0; i < f->nr_slots; i++)
		bits |= (uint64_t)slot_spilled(&f->slots[i]) << i;
	return bits;
}

/* Takes over the marks of precise values. In the current state, a slot can have such a mark only if
 * a register is spilled in it. */
static int take_over_precision(struct env *env, const struct state *old)
{
	struct wanted w = { 0 };

	for (int n = (int)old->cur; n >= 0; n--) {
		const struct marks *m = &old->marks[n];

		w.regs[n] = m->read & m->precise & m->scalar;
		w.slots[n] = m->read_slots & m->precise_slots & m->scalar_slots &
			     slots_spilled(env->cur->frames[n]);
		log_propagated(env, (uint32_t)n, &w);
	}
	return pbv_precise_wanted(env, &w);
}

int pbv_prune_take_over(struct env *env, const struct state *old)
{
	take_over_reads(env, old, env->cur);
	return take_over_precision(env, old);
}

/* ---- the states that are kept --------------------------------------------------------------- */

static bool same_calls(const struct state *a, const struct state *b)
{
	if (a->cur != b->cur || !a->frames[0])
		return false;
	for (uint32_t i = 0; i <= a->cur; i++)
		if (a->frames[i]->callsite != b->frames[i]->callsite)
			return false;
	return true;
}

static struct explored **kept_at(struct env *env)
{
	return &env->explored[(env->insn ^ (uint32_t)cur_frame(env)->callsite) % env->nr_lists];
}

/* Frees a state that was taken out of its list. If paths or other states still need the state, sets
 * `unlisted` and frees at most its values. */
static void drop(struct env *env, struct explored *e)
{
	if (e->st.branches || (e->st.whole && e->st.until)) {
		/* Paths from the state may still mark it, so its marks stay. Three kinds of state
		 * also keep their values: a loop's head, to widen later iterations; a function's
		 * first state (last < 0), where a backward walk looks up the function; and a state
		 * whose `whole` is set. */
		e->unlisted = true;
		if (!e->st.head && e->st.last >= 0 && !e->st.whole)
			pbv_state_only_marks(env, &e->st);
		return;
	}
	/* As in the kernel, peak_states no longer counts a freed state, with three exceptions: a
	 * state that was unlisted, a state whose `whole` is set, and a state whose call chain
	 * differs from that of the current state. */
	if (!e->unlisted && !e->st.whole && same_calls(&e->st, env->cur))
		env->v->stats.peak_states--;
	pbv_state_forget(env, &e->st);
	pbv_pool_put(&env->pool, e, sizeof *e);
}

/* The pool can reuse a block of a freed state for a piece of a list of values (struct
 * values_piece), and the reverse, because the blocks of both have 160 bytes. */
_Static_assert(sizeof(struct explored) <= 160,
	       "lists of values have blocks of 160 bytes, too");

/* Whether other states wait for this state's needs, or this state's own needs are not complete. */
static bool pending(const struct state *st)
{
	return st->awaited || (st->whole && st->until);
}

/* Drops states whose number is at most `before`. Pending states and the first states of functions
 * always stay. If `all` is false, loop heads and states that have pruned a path stay, too. */
static void give_up(struct env *env, uint32_t before, bool all)
{
	for (uint32_t i = 0; i < env->nr_lists; i++)
		for (struct explored **link = &env->explored[i], *e; (e = *link);) {
			bool waited_for;

			if (e->st.number > before || e->st.last < 0 || pending(&e->st) ||
			    (!all && (e->hits || e->st.head))) {
				link = &e->next;
				continue;
			}
			*link = e->next;
			waited_for = e->st.branches;
			drop(env, e);
			if (waited_for)
				pbv_state_only_marks(env, &e->st);
		}
}

/*
 * Kept states only save work, so they may be dropped. The oldest states are dropped first. The
 * verifier works depth first, so the paths that the oldest states could prune are those that it
 * follows last. If paths from a dropped state are still followed, the state keeps its marks.
 */
bool pbv_prune_make_room(struct env *env)
{
	/* each round drops old states, with numbers up to `part` sixteenths of the newest number */
	static const struct { uint8_t part; bool all; } rounds[] = {
		{ 4, false }, { 8, false }, { 15, false }, { 8, true }, { 15, true },
	};
	uint32_t newest = env->v->stats.total_states;

	/* the last attempt freed too little, and since then not much more memory was taken */
	if (env->pool.used < env->short_at + (1u << 20))
		return false;
	pbv_pending_give_up(env);
	for (size_t i = 0; i < pb_array_size(rounds) && env->pool.used > POOL_SHORT / 8 * 7; i++)
		give_up(env, newest / 16 * rounds[i].part, rounds[i].all);
	env->short_at = env->pool.used > POOL_SHORT / 8 * 7 ? env->pool.used : 0;
	return !pool_is_short(&env->pool);
}

void pbv_prune_done(struct env *env, struct state *st)
{
	struct explored *e = (struct explored *)st;
	int err = 0;

	if (st->whole && st->until)
		err = pbv_pending_done(env, st);
	else if (e->unlisted)
		drop(env, e);
	else
		pbv_state_trim(env, st);
	if (err)
		env->error = err;
}

/* Called when a kept state has become the parent of the current state. The parent of each register
 * and slot is now the same register or slot of the kept state. Registers that a call overwrites
 * (first_kept()) have no parent. */
static void link_state(struct state *cur)
{
	for (uint32_t n = 0; n <= cur->cur; n++) {
		struct frame *f = cur->frames[n];
		uint32_t first = first_kept(cur, n);

		for (uint32_t i = 0; i < FP; i++) {
			f->regs[i].parent = i < first ? PLACE_NONE : PLACE_SAME;
			f->regs[i].live = 0;
		}
		for (uint32_t i = 0; i < f->nr_slots; i++) {
			f->slots[i].reg.live = 0;
			f->slots[i].reg.parent = PLACE_SAME;
		}
	}
}

/* Copies the current state into a new kept state. Returns NULL if memory is short, or was short
 * less than KEEP_AGAIN instructions ago. The verifier can go on without the kept state. */
static struct explored *take_state(struct env *env)
{
	struct explored *e;

	if (env->processed < env->keep_again)
		return NULL;
	if (pool_is_short(&env->pool) && !pbv_prune_make_room(env)) {
		env->keep_again = env->processed + KEEP_AGAIN;
		return NULL;
	}
	env->pool.optional = true;
	e = pbv_pool_zero(&env->pool, sizeof *e);
	if (e && pbv_state_rest(env, &e->st, env->cur, true)) {
		pbv_pool_put(&env->pool, e, sizeof *e);
		e = NULL;
	}
	env->pool.optional = false;
	if (!e) {
		pbv_prune_make_room(env);
		env->keep_again = env->processed + KEEP_AGAIN;
	}
	return e;
}

/*
 * Called when memory is too short to keep the current state. If the path since the last kept state
 * is long, backward walks over it would become slow. So all scalars in all kept states of the path
 * are marked as precise. Then later walks may end at this instruction, because they have nothing
 * left to mark before it.
 */
static int go_on_without(struct env *env)
{
	struct state *cur = env->cur;

	if (cur->path_len <= LONG_PATH && !(cur->parent && cur->parent->all_precise))
		return pbv_step_jump(env);
	env->marks_made += pbv_precise_all(cur);
	cur->first = env->insn;
	cur->nr_steps = cur->path_len = 0;
	return pbv_step_jump(env);
}

/* Keeps the current state. If `compare` is set, later paths may be compared with the kept state. */
static int keep(struct env *env, bool compare)
{
	struct explored *e, **list = kept_at(env);
	struct state *cur = env->cur;

	/* begin again without marks of precise values, because later uses of the values will mark
	 * them if necessary */
	if (env->capable)
		pbv_precise_forget(cur);
	e = take_state(env);
	if (!e)
		return go_on_without(env);
	env->v->stats.total_states++;
	env->v->stats.peak_states++;
	env->prev_jumps = env->jumps_processed;
	env->prev_processed = env->processed;
	e->st.insn = env->insn;
	e->st.number = env->v->stats.total_states;
	e->st.budgets = env->budgets;
	e->st.head = env->aux[env->insn].head;
	e->st.whole = env->v->whole;
	e->st.outer_head = cur->parent && !cur->parent->head ? cur->parent->outer_head :
			   cur->parent;
	cur->parent = &e->st;
	cur->first = env->insn;
	cur->nr_steps = cur->path_len = 0;
	if (compare) {
		e->next = *list;
		*list = e;
	} else {
		e->unlisted = true;
		pbv_state_only_marks(env, &e->st);
	}
	link_state(cur);
	return pbv_step_jump(env);
}

/* ---- iterations of loops ------------------------------------------------------------------- */

static void widen(struct env *env, const struct reg *old, bool precise, struct reg *cur)
{
	if (old->type != SCALAR || cur->type != SCALAR || precise || cur->precise ||
	    !memcmp(&old->var, &cur->var, REG_ALL - offsetof(struct reg, var)))
		return;
	pbv_reg_make_scalar(cur, !env->capable);
}

void pbv_prune_widen(struct env *env, const struct state *past, struct state *st)
{
	while (past && !(past->head && past->insn == env->insn && same_calls(past, st)))
		past = past->outer_head;
	for (uint32_t n = 0; past && n <= st->cur; n++) {
		struct frame *f = st->frames[n], *old = past->frames[n];
		const struct marks *m = &past->marks[n];

		for (uint32_t i = 0; i < FP; i++)
			widen(env, rest_reg(old, i), m->precise >> i & 1, &f->regs[i]);
		for (uint32_t i = 0; i < f->nr_slots && i < old->nr_slots; i++)
			if (slot_spilled(&f->slots[i]) && slot_spilled(rest_slot(old, i)))
				widen(env, &rest_slot(old, i)->reg, m->precise_slots >> i & 1,
				      &f->slots[i].reg);
	}
}

/* ---- a prune point ------------------------------------------------------------------------- */

/* The result of a comparison with a kept state. OTHER: the state was kept at another instruction.
 * ALIKE: the state is finished and covers the current state. AGAIN: the state isn't finished, but
 * covers a new iteration of a loop with a budget. MISS: the state doesn't cover the current state.
 * LOOP: the states are equal, so the loop may never end. */
enum verdict { OTHER, ALIKE, AGAIN, MISS, LOOP };

/* Whether the current state must be kept, because backward walks would become slow without it. This
 * is so if an iteration of a loop with a budget begins here, or if the path has recorded many steps
 * since its last kept state. */
static bool must_keep(const struct env *env)
{
	return env->aux[env->insn].head || env->cur->nr_steps > MAX_STEPS;
}

static enum verdict compare(struct env *env, struct explored *e, bool *add)
{
	const struct frame *f = e->st.frames[e->st.cur], *c = cur_frame(env);

	if (e->st.insn != env->insn)
		return OTHER;
	if (!e->st.branches) {
		if (!pbv_state_safe(env, &e->st, env->cur, e->st.whole))
			return MISS;
		return !e->st.whole || iterations_no_fewer(env, &e->st) ? ALIKE : MISS;
	}
	/* if the kept state covers the whole current state, the new iteration need not be
	 * followed */
	if (e->st.head && same_calls(&e->st, env->cur) && iteration_taken(env, &e->st))
		return pbv_state_safe(env, &e->st, env->cur, true) ? AGAIN : MISS;
	/* The current path came through the kept state. If the current state equals the kept state,
	 * the loop never ends, unless an asynchronous callback was entered again. */
	if (!(f->in_async && f->async_entries != c->async_entries) &&
	    e->st.iterations == env->cur->iterations && pbv_maybe_looping(&e->st, env->cur) &&
	    pbv_state_same(env, &e->st, env->cur))
		return LOOP;
	/* don't keep a state in each iteration of a loop: such states would rarely prune another
	 * path */
	if (!must_keep(env) && env->jumps_processed - env->prev_jumps < 20 &&
	    env->processed - env->prev_processed < 100)
		*add = false;
	return MISS;
}

static int found(struct env *env, struct explored *e)
{
	int err = pbv_step_jump(env);

	e->hits += e->hits < UINT16_MAX;
	if (!err)
		err = pbv_prune_take_over(env, &e->st);
	/* The path has taken over those needs of e that are known so far. It must take over e's
	 * other needs when e is done. */
	if (!err && (e->st.branches || e->st.whole))
		err = pbv_pending_jump(env, &e->st);
	return err ? err : 1;
}

/* Returns how many misses per hit a state may have before it is dropped. The head of an unfinished
 * loop may have more misses: the loop is followed until a new iteration matches such a state. */
static uint32_t patience(const struct explored *e)
{
	return e->st.head && e->st.branches ? 64 : 3;
}

static int refuse_loop(struct env *env, const struct explored *e)
{
	struct state old = { 0 };

	pbv_log_line(env, env->insn, "; ");
	log(env, "infinite loop detected at insn %d\n", (int)env->insn);
	if (!log_on(env))
		return -EINVAL;
	log(env, "cur state:");
	pbv_log_state(env, cur_frame(env), true);
	log(env, "old state:");
	if (!pbv_state_wake(env, &old, &e->st))
		pbv_log_state(env, old.frames[old.cur], true);
	pbv_state_clear(env, &old);
	return -EINVAL;
}

int pbv_prune_visit(struct env *env)
{
	bool add = env->state_freq || must_keep(env);
	uint32_t states = 0;
	struct explored **link;

	env->cur->last = env->prev_insn;
	env->cur->path_len += env->cur->path_len < UINT16_MAX;
	if (env->aux[env->insn].calls_back && !env->returned)
		cur_frame(env)->series = ++env->budgets;
	env->returned = false;
	if (!env->aux[env->insn].prune_point)
		return env->cur->path_len > LONG_PATH ? keep(env, false) : pbv_step_jump(env);
	/* if a state were kept at every prune point, comparisons would take more time than they
	 * save */
	if (env->jumps_processed - env->prev_jumps >= 2 &&
	    env->processed - env->prev_processed >= 8)
		add = true;
	for (link = kept_at(env); *link; ) {
		struct explored *e = *link;

		states++;
		switch (compare(env, e, &add)) {
		case OTHER:
			break;
		case ALIKE: case AGAIN:
			return found(env, e);
		case LOOP:
			return refuse_loop(env, e);
		case MISS:
			e->misses += add && e->misses < UINT16_MAX;
			if (e->misses > (e->hits + 1u) * patience(e)) {
				*link = e->next;
				drop(env, e);
				continue;
			}
		}
		link = &e->next;
	}
	if (env->v->stats.max_states_per_insn < states)
		env->v->stats.max_states_per_insn = states;
	if (!add || (!env->capable && states > MAX_STATES))
		return pbv_step_jump(env);
	return keep(env, true);
}

void pbv_prune_free(struct env *env)
{
	for (uint32_t i = 0; i < env->nr_lists; i++)
		for (struct explored *e = env->explored[i], *next; e; e = next) {
			next = e->next;
			pbv_state_forget(env, &e->st);
			pbv_pool_put(&env->pool, e, sizeof *e);
			env->explored[i] = next;
		}
}
