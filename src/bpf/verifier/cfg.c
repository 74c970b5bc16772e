/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The program's control-flow graph. Finds the subprograms. Checks jump targets and the depth of the
 * stack, and that each instruction is reachable. Marks prune points: instructions at which paths
 * may meet. Also marks jump points, which are instructions that a path may reach from an
 * instruction other than the previous one. At a jump point, each path records a step (struct step),
 * because a backward walk (precise.c) must know from which instruction the path came.
 */
#include "bpf/helper/kfunc.h"
#include "bpf/verifier/cfg.h"
#include "bpf/verifier/env.h"
#include "bpf/verifier/fastcall.h"
#include "bpf/verifier/func.h"
#include "bpf/verifier/helper_call.h"
#include "bpf/verifier/iter.h"
#include "bpf/verifier/log.h"

static unsigned form_at(const struct env *env, uint32_t i)
{
	return pb_bpf_ops[env->ops[i]].form;
}

static bool loads_func(const struct env *env, uint32_t i)
{
	return form_at(env, i) == PB_BPF_LD64 && env->insns[i].src_reg == BPF_PSEUDO_FUNC;
}

static int64_t target_of(const struct env *env, uint32_t i)
{
	const struct bpf_insn *insn = &env->insns[i];

	return (int64_t)i + 1 + (form_at(env, i) == PB_BPF_GOTOL ? insn->imm : insn->off);
}

/* ---- subprograms ---------------------------------------------------------------------- */

static int add_subprog(struct env *env, int64_t at)
{
	size_t n;

	if (at < 0 || at >= env->nr)
		return refuse(env, EINVAL, "call to invalid destination\n");
	n = pb_bisect(i, 0, env->nr_subs, env->subs[i].start < at);
	if (n < env->nr_subs && env->subs[n].start == at)
		return 0;
	if (env->nr_subs >= MAX_SUBPROGS)
		return refuse(env, E2BIG, "too many subprograms\n");
	memmove(&env->subs[n + 1], &env->subs[n], (env->nr_subs - n) * sizeof env->subs[0]);
	env->subs[n] = (struct subprog){ .start = (uint32_t)at };
	env->nr_subs++;
	return 0;
}

/* If imm and off are 0, the kfunc is missing. A missing kfunc is an error only if a path reaches
 * the call. */
static int check_kfunc_call(struct env *env, const struct bpf_insn *insn)
{
	if (!insn->imm && !insn->off)
		return 0;
	if (insn->off || !pb_bpf_kfunc_of(insn->imm))
		return refuse(env, EINVAL, "calling kernel function is not allowed\n");
	if (!env->v->gpl)
		return refuse(env, EINVAL,
			      "cannot call kernel function from non-GPL compatible program\n");
	return 0;
}

int pbv_find_subprogs(struct env *env)
{
	int err = add_subprog(env, 0);

	for (uint32_t i = 0; i < env->nr && !err; i++) {
		bool call = form_at(env, i) == PB_BPF_CALL_PC;

		if (!call && !loads_func(env, i) && form_at(env, i) != PB_BPF_CALL_KFUNC)
			continue;
		if (!env->capable)
			return refuse(env, EPERM, "loading/calling other bpf or kernel functions "
						  "are allowed for CAP_BPF and CAP_SYS_ADMIN\n");
		if (form_at(env, i) == PB_BPF_CALL_KFUNC) {
			err = check_kfunc_call(env, &env->insns[i]);
			continue;
		}
		err = add_subprog(env, (int64_t)i + 1 + env->insns[i].imm);
	}
	env->subs[env->nr_subs].start = env->nr;
	if (!err && env->v->log_level & 2)
		for (uint32_t i = 0; i < env->nr_subs; i++)
			log(env, "func#%d @%d\n", (int)i, (int)env->subs[i].start);
	return err;
}

/* Looks only at class and operation, because later checks report invalid instructions. */
static bool jumps(const struct bpf_insn *insn)
{
	unsigned class = BPF_CLASS(insn->code), op = BPF_OP(insn->code);

	return (class == BPF_JMP || class == BPF_JMP32) && op != BPF_EXIT && op != BPF_CALL;
}

static int check_last(struct env *env, uint32_t i)
{
	uint8_t code = env->insns[i].code;

	if (code == (BPF_JMP | BPF_EXIT) || code == (BPF_JMP | BPF_JA) ||
	    code == (BPF_JMP32 | BPF_JA))
		return 0;
	return refuse(env, EINVAL, "last insn is not an exit or jmp\n");
}

static bool moves_packet(const struct bpf_insn *insn)
{
	if (insn->code != (BPF_JMP | BPF_CALL) || insn->src_reg || insn->imm < 0)
		return false;
	/* the target program of a tail call may move the packet */
	return insn->imm == BPF_FUNC_tail_call ||
	       pb_bpf_helper_of((uint32_t)insn->imm)->flags & PB_BPF_HELPER_MOVES_PKT;
}

static bool calls_mover(const struct env *env, uint32_t i)
{
	bool calls = form_at(env, i) == PB_BPF_CALL_PC || loads_func(env, i);
	int sub = calls ? pbv_find_subprog(env, i + 1 + (uint32_t)env->insns[i].imm) : -1;

	return sub >= 0 && env->subs[sub].moves_packet;
}

/* If a subprogram moves the packet, so does each caller of the subprogram, and each subprogram that
 * passes it to a helper as a callback. */
static void spread_moves(struct env *env)
{
	bool more = env->nr_subs > 1;

	while (more) {
		more = false;
		for (uint32_t n = 0; n < env->nr_subs; n++) {
			struct subprog *s = &env->subs[n];

			for (uint32_t i = s->start; i < s[1].start && !s->moves_packet; i++)
				if (calls_mover(env, i))
					s->moves_packet = more = true;
		}
	}
}

int pbv_check_subprogs(struct env *env)
{
	for (uint32_t n = 0; n < env->nr_subs; n++) {
		uint32_t start = env->subs[n].start, end = env->subs[n + 1].start;

		for (uint32_t i = start; i < end; i++) {
			const struct bpf_insn *insn = &env->insns[i];
			int64_t to = target_of(env, i);

			if (insn->code == (BPF_JMP | BPF_CALL) && insn->imm == BPF_FUNC_tail_call &&
			    insn->src_reg != BPF_PSEUDO_CALL)
				env->subs[n].has_tail_call = true;
			env->subs[n].moves_packet |= moves_packet(insn);
			if (BPF_CLASS(insn->code) == BPF_LD &&
			    (BPF_MODE(insn->code) == BPF_ABS || BPF_MODE(insn->code) == BPF_IND))
				env->subs[n].has_ld_abs = true;
			if (jumps(insn) && (to < start || to >= end))
				return refuse(env, EINVAL, "jump out of range from insn %d to %d\n",
					      (int)i, (int)to);
		}
		if (check_last(env, end - 1))
			return -EINVAL;
	}
	spread_moves(env);
	return 0;
}

int pbv_check_funcs(struct env *env)
{
	const struct pb_bpf_verify *v = env->v;

	if (!v->nr_funcs) {
		for (uint32_t i = 1; i < env->nr_subs; i++) {
			if (env->subs[i].has_ld_abs)
				return refuse(env, EINVAL,
					      "LD_ABS is not allowed in subprogs without BTF\n");
			if (env->subs[i].has_tail_call)
				return refuse(env, EINVAL,
					      "tail_call is not allowed in subprogs without BTF\n");
		}
		return 0;
	}
	if (v->nr_funcs != env->nr_subs)
		return refuse(env, EINVAL,
			      "number of funcs in func_info doesn't match number of subprogs\n");
	for (uint32_t i = 0; i < env->nr_subs; i++) {
		if (v->funcs[i].insn != env->subs[i].start)
			return refuse(env, EINVAL,
				      "func_info BTF section doesn't match subprog layout in BPF "
				      "program\n");
		if (env->subs[i].has_ld_abs && i && v->funcs[i].returns_void)
			return refuse(env, EINVAL,
				      "LD_ABS is only allowed in functions that return 'int'.\n");
		if (env->subs[i].has_tail_call && i && v->funcs[i].returns_void)
			return refuse(env, EINVAL, "tail_call is only allowed in functions that "
						   "return 'int'.\n");
		env->funcs[i] = &v->funcs[i];
	}
	return 0;
}

/* ---- all instructions, each once ----------------------------------------------------------- */

/* Marks of a depth-first walk. An instruction is new, on the current path, or done. The mark of an
 * instruction on the path is ON_PATH + the number of its successors that have been followed. */
enum { NEW, ON_PATH = 0x10, DONE = 0x20 };

struct walk {
	uint8_t *mark;
	uint32_t *stack, depth;
};

/* Follows the edge from `from` to `to`. `to` is the nth successor of `from`. Returns 1 if `to` is
 * new: the walk continues at `to`. Returns 0 if there is nothing to follow, or a negative error. If
 * `branch` is set, paths may meet at `to`. */
static int step(struct env *env, struct walk *w, uint32_t from, int64_t to, unsigned nth,
		bool branch)
{
	if (w->mark[from] >= (ON_PATH | nth))
		return 0;
	if (to < 0 || to >= env->nr) {
		pbv_log_line(env, from, "%d: ", (int)from);
		return refuse(env, EINVAL, "jump out of range from insn %d to %d\n", (int)from,
			      (int)to);
	}
	if (branch)
		env->aux[to].prune_point = env->aux[to].jump_point = true;
	if (w->mark[to] == NEW) {
		w->mark[from] = (uint8_t)(ON_PATH | nth);
		w->mark[to] = ON_PATH;
		w->stack[w->depth++] = (uint32_t)to;
		return 1;
	}
	if (w->mark[to] != DONE && !env->capable) {
		pbv_log_line(env, from, "%d: ", (int)from);
		pbv_log_line(env, (uint32_t)to, "%d: ", (int)to);
		return refuse(env, EINVAL, "back-edge from insn %d to %d\n", (int)from, (int)to);
	}
	if (w->mark[to] == DONE)
		w->mark[from] = (uint8_t)(ON_PATH | nth);
	return 0;
}

static int visit_call(struct env *env, struct walk *w, uint32_t i, unsigned length, bool follow)
{
	int r = step(env, w, i, (int64_t)i + length, 1, false);

	if (r)
		return r;
	env->aux[i + length].prune_point = env->aux[i + length].jump_point = true;
	if (!follow)
		return 0;
	env->aux[i].prune_point = true;
	/* recursion isn't an error here: later it exceeds the limit on frames */
	return step(env, w, i, (int64_t)i + 1 + env->insns[i].imm, 2, true);
}

static int visit(struct env *env, struct walk *w, uint32_t i)
{
	const struct bpf_insn *insn = &env->insns[i];
	int64_t to = target_of(env, i);
	int r;

	if (loads_func(env, i))
		return visit_call(env, w, i, 2, true);
	if (BPF_CLASS(insn->code) != BPF_JMP && BPF_CLASS(insn->code) != BPF_JMP32)
		return step(env, w, i, (int64_t)i + (form_at(env, i) == PB_BPF_LD64 ? 2 : 1), 1,
			    false);
	switch (BPF_OP(insn->code)) {
	case BPF_EXIT:
		return 0;
	case BPF_CALL:
		if (!insn->src_reg && pbv_helper_calls_back(insn->imm)) {
			env->aux[i].prune_point = env->aux[i].jump_point = true;
			/* a timer's callback runs later, and returns to no frame */
			env->aux[i].calls_back = env->aux[i].head =
				insn->imm != BPF_FUNC_timer_set_callback;
		}
		if (pbv_kfunc_iterates(insn))
			env->aux[i].prune_point = env->aux[i].head = true;
		return visit_call(env, w, i, 1, insn->src_reg == BPF_PSEUDO_CALL);
	case BPF_JA:
		if (BPF_SRC(insn->code) != BPF_K)
			return -EINVAL;
		r = step(env, w, i, to, 1, false);
		if (!r)
			env->aux[to].prune_point = env->aux[to].jump_point = true;
		return r;
	default:
		env->aux[i].prune_point = true;
		env->aux[i].head = form_at(env, i) == PB_BPF_MAY_GOTO;
		r = step(env, w, i, (int64_t)i + 1, 1, false);
		return r ? r : step(env, w, i, to, 2, true);
	}
}

static int check_reached(struct env *env, const struct walk *w)
{
	for (uint32_t i = 0; i < env->nr; i++) {
		if (w->mark[i] != DONE)
			return refuse(env, EINVAL, "unreachable insn %d\n", (int)i);
		if (form_at(env, i) != PB_BPF_LD64)
			continue;
		if (w->mark[i + 1] != NEW)
			return refuse(env, EINVAL, "jump into the middle of ldimm64 insn %d\n",
				      (int)i);
		i++;
	}
	return 0;
}

int pbv_check_cfg(struct env *env)
{
	struct walk w = { .mark = pbv_pool_zero(&env->pool, env->nr),
			  .stack = pbv_pool_get(&env->pool, (env->nr + 1) * sizeof(uint32_t),
						NULL) };
	int r = w.mark && w.stack ? 0 : -ENOMEM;

	if (!r) {
		w.mark[0] = ON_PATH;
		w.stack[w.depth++] = 0;
	}
	while (r >= 0 && w.depth) {
		uint32_t i = w.stack[w.depth - 1];

		r = visit(env, &w, i);
		if (!r) {
			w.mark[i] = DONE;
			w.depth--;
		}
	}
	if (r >= 0)
		r = check_reached(env, &w);
	pbv_pool_put(&env->pool, w.mark, env->nr);
	pbv_pool_put(&env->pool, w.stack, (env->nr + 1) * sizeof(uint32_t));
	return r;
}

/* ---- the deepest chain of frames ----------------------------------------------------------- */

struct chain {
	uint32_t insn, sub;
};

static uint32_t frame_size(const struct subprog *s)
{
	return pb_align_up(pbv_counted_stack(s), 16u);
}

/* Returns the subprogram that the instruction calls, or whose address it loads for a helper. -1:
 * the instruction does neither, or the subprogram doesn't run on this stack. */
static int callee_at(const struct env *env, uint32_t i)
{
	bool call = form_at(env, i) == PB_BPF_CALL_PC;
	int sub;

	if (!call && !loads_func(env, i))
		return -1;
	sub = pbv_find_subprog(env, i + 1 + (uint32_t)env->insns[i].imm);
	/* an asynchronous callback runs later, with its own stack */
	return sub >= 0 && env->subs[sub].is_async && !call ? -1 : sub;
}

/* Updates the depths of s: a chain from s may continue with the deepest chain from callee. */
static void deepen(struct subprog *s, const struct subprog *callee)
{
	uint32_t own = frame_size(s), tail = callee->has_tail_call ? own : 0;

	if (callee->tail_depth && own + callee->tail_depth > tail)
		tail = own + callee->tail_depth;
	if (s->depth < own + callee->depth)
		s->depth = own + callee->depth;
	if (s->frames < callee->frames + 1)
		s->frames = callee->frames + 1;
	if (s->tail_depth < tail)
		s->tail_depth = tail;
}

/* Returns whether the chains from s have been walked, and fit on a stack that already has `depth`
 * bytes in `frames` frames. If the result is true, the chains need no second walk. */
static bool known_to_fit(const struct subprog *s, uint32_t depth, uint32_t frames)
{
	return s->depth_known && depth + s->depth <= PB_BPF_STACK &&
	       frames + s->frames <= PB_BPF_MAX_FRAMES && !(s->has_tail_call && depth >= 256) &&
	       !(s->tail_depth && depth + s->tail_depth >= 256);
}

static int enter_chain(struct env *env, const struct subprog *s, uint32_t *depth, uint32_t n)
{
	if (n >= PB_BPF_MAX_FRAMES)
		return refuse(env, E2BIG, "the call stack of %d frames is too deep !\n", (int)n);
	/* If a subprogram makes a tail call, its callers' frames stay on the stack. The next
	 * program may do the same, and so on along the chain, so these frames add up. So their
	 * size is limited. */
	if (s->has_tail_call && *depth >= 256)
		return refuse(env, EACCES,
			      "tail_calls are not allowed when call stack of previous frames "
			      "is %d bytes. Too large\n", (int)*depth);
	*depth += frame_size(s);
	if (*depth > PB_BPF_STACK)
		return refuse(env, EACCES, "combined stack size of %d calls is %d. Too large\n",
			      (int)n + 1, (int)*depth);
	return 0;
}

static int depth_from(struct env *env, uint32_t root)
{
	struct chain back[PB_BPF_MAX_FRAMES];
	uint32_t sub = root, i = env->subs[root].start, depth = frame_size(&env->subs[root]), n = 0;

	for (;;) {
		struct subprog *s = &env->subs[sub];
		int callee = -1;

		if (s->depth < frame_size(s))
			s->depth = frame_size(s);
		if (!s->frames)
			s->frames = 1;
		for (; i < env->subs[sub + 1].start && callee < 0; i++) {
			callee = callee_at(env, i);
			if (callee < 0 || !known_to_fit(&env->subs[callee], depth, n + 1))
				continue;
			deepen(s, &env->subs[callee]);
			callee = -1;
		}
		if (callee < 0) {
			s->depth_known = true;
			if (!n)
				break;
			depth -= frame_size(s);
			n--;
			deepen(&env->subs[back[n].sub], s);
			i = back[n].insn;
			sub = back[n].sub;
			continue;
		}
		back[n++] = (struct chain){ i, sub };
		sub = (uint32_t)callee;
		if (enter_chain(env, &env->subs[sub], &depth, n))
			return n >= PB_BPF_MAX_FRAMES ? -E2BIG : -EACCES;
		i = env->subs[sub].start;
	}
	if (env->subs[root].depth > env->v->stats.stack)
		env->v->stats.stack = env->subs[root].depth;
	return 0;
}

/* ---- the deepest chain at run time ---------------------------------------------------------- */

/*
 * The functions above count as the kernel does: they take a callback for a callee of the subprogram
 * that loads the callback's address. This subprogram may pass the address to other subprograms,
 * which pass the callback to a helper. Then more frames are on the stack than the functions above
 * count. The functions below find an upper bound, from the subprograms that pass callbacks to
 * helpers. They change no verdict: a run needs as much room on the thread's stack as they find.
 *
 * A callback may even be recursive. But each path has at most PB_BPF_MAX_FRAMES frames, from the
 * start of the main program or of a global function on. And a chain has fewer than
 * PB_BPF_MAX_FRAMES calls of global functions. depth_from() follows each of these calls: a global
 * function gets no callback from its caller, so everything that it runs is in its own callees, or
 * they load its address. depth_from() also finds recursive global functions.
 *
 * But passed[] doesn't tell for which of the verifications a subprogram passes a callback: in one
 * the callback may call a global function, in whose verification the subprogram passes another
 * callback. So the sets may have cycles through global functions, which no run has. Thus the
 * functions below count calls of global functions, too.
 */
typedef uint64_t sub_set[MAX_SUBPROGS / 64];

struct callees {
	sub_set called, global;		/* called: without the global functions */
};

struct deepest {
	uint32_t bytes, nested;		/* bytes: of the largest chain; 0: there is no chain.
					 * nested: the most callbacks in a chain */
};

/* The chains from a subprogram that have at most a certain number of calls of global functions. */
struct chains {
	/* element k: of these, the chains with at most k frames up to calls of global functions */
	struct deepest in[PB_BPF_MAX_FRAMES + 1];
	struct deepest less;		/* the last element, for one call less of global functions.
					 * There is no chain if there can't be less */
};

static void deepen_by(struct deepest *d, const struct deepest *callee, bool passed)
{
	if (!callee->bytes)
		return;
	if (d->bytes < callee->bytes)
		d->bytes = callee->bytes;
	if (d->nested < callee->nested + passed)
		d->nested = callee->nested + passed;
}

/* Returns the largest chains from s with at most k frames. They are extended by the chains from the
 * callees of s, with at most k - 1 frames. */
static struct deepest extend(const struct env *env, const struct callees *c, const struct chains *d,
			     uint32_t s, uint32_t k)
{
	struct deepest most = { 0, 0 };

	for (uint32_t w = 0; w < MAX_SUBPROGS / 64; w++) {
		uint64_t passed = env->passed[s][w], called = c[s].called[w] | passed;

		for (; called; called &= called - 1) {
			uint32_t bit = (uint32_t)__builtin_ctzll(called);

			deepen_by(&most, &d[w * 64 + bit].in[k - 1], passed >> bit & 1);
		}
		for (uint64_t left = c[s].global[w]; left; left &= left - 1)
			deepen_by(&most, &d[w * 64 + (uint32_t)__builtin_ctzll(left)].less, false);
	}
	most.bytes += pb_align_up(env->subs[s].stack + PB_BPF_COUNTER, 16u) + PB_BPF_FRAME_REGS;
	return most;
}

/* Returns whether a global function is called. */
static bool find_callees(const struct env *env, struct callees *c)
{
	bool any = false;

	for (uint32_t s = 0; s < env->nr_subs; s++) {
		for (uint32_t i = env->subs[s].start; i < env->subs[s + 1].start; i++) {
			int to = form_at(env, i) == PB_BPF_CALL_PC ? callee_at(env, i) : -1;
			bool global = to >= 0 && env->funcs[to] && env->funcs[to]->global;

			if (to >= 0)
				(global ? c[s].global : c[s].called)[to / 64] |= 1ull << to % 64;
			any |= global;
		}
	}
	return any;
}

static int find_deepest(struct env *env)
{
	size_t sets = env->nr_subs * sizeof(struct callees),
		chains = env->nr_subs * sizeof(struct chains);
	struct callees *c = pbv_pool_zero(&env->pool, sets);
	struct chains *d = pbv_pool_zero(&env->pool, chains);
	uint32_t most;

	if (!c || !d)
		return -ENOMEM;
	most = find_callees(env, c) ? PB_BPF_MAX_FRAMES - 1 : 0;
	for (uint32_t calls = 0; calls <= most; calls++) {
		for (uint32_t s = 0; s < env->nr_subs; s++)
			d[s].less = d[s].in[PB_BPF_MAX_FRAMES];
		for (uint32_t k = 1; k <= PB_BPF_MAX_FRAMES; k++)
			for (uint32_t s = 0; s < env->nr_subs; s++)
				d[s].in[k] = extend(env, c, d, s, k);
	}
	env->deepest = d[0].in[PB_BPF_MAX_FRAMES].bytes;
	env->nested = d[0].in[PB_BPF_MAX_FRAMES].nested;
	pbv_pool_put(&env->pool, c, sets);
	pbv_pool_put(&env->pool, d, chains);
	return 0;
}

int pbv_check_stack_depth(struct env *env)
{
	int err = depth_from(env, 0);

	for (uint32_t i = 1; i < env->nr_subs && !err; i++)
		if (env->subs[i].is_async)
			err = depth_from(env, i);
	return err || !env->passes ? err : find_deepest(env);
}
