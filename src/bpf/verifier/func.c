/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Calls of subprograms, and callbacks from helpers. A static function is verified anew for each
 * call, with the caller's arguments. A global function is verified separately, for all arguments
 * that its prototype allows. Calls of a global function are only checked against the prototype.
 */
#include "bpf/verifier/access.h"
#include "bpf/verifier/branch.h"
#include "bpf/verifier/env.h"
#include "bpf/verifier/func.h"
#include "bpf/verifier/helper_call.h"
#include "bpf/verifier/live.h"
#include "bpf/verifier/log.h"
#include "bpf/verifier/precise.h"
#include "bpf/verifier/prune.h"
#include "bpf/verifier/state.h"

int pbv_find_subprog(const struct env *env, uint32_t insn)
{
	size_t n = pb_bisect(i, 0, env->nr_subs, env->subs[i].start < insn);

	return n < env->nr_subs && env->subs[n].start == insn ? (int)n : -1;
}

/* ---- arguments of a global function --------------------------------------------------------- */

/* Checks memory that is passed to global function `sub`. The function may also write the memory,
 * and isn't checked anew for memory that is a packet. */
static int check_global_memory(struct env *env, unsigned n, uint32_t size, uint32_t sub)
{
	struct reg *r = &cur_regs(env)[n], keep = *r;
	int err;

	if (reg_is_packet(r) && !pbv_may_access_packet(env, NULL, true))
		return refuse(env, EACCES, "cannot write into packet\n");
	if (reg_is_packet(r) && env->subs[sub].moves_packet)
		return refuse(env, EACCES,
			      "R%d points to the packet, which func#%d may move in memory\n", n,
			      (int)sub);
	/* the function must itself check for NULL */
	if (r->flags & MAYBE_NULL)
		pbv_known_pointer(env, r);
	err = pbv_helper_memory(env, n, (int)size, false, true, NULL);
	if (!err)
		err = pbv_helper_memory(env, n, (int)size, true, true, NULL);
	*r = keep;
	return err;
}

static int check_global_arg(struct env *env, unsigned n, uint32_t sub)
{
	const struct pb_bpf_func *f = env->funcs[sub];
	struct reg *r = &cur_regs(env)[n];

	switch (f->args[n - 1].kind) {
	case PB_BPF_FUNC_SCALAR:
		if (r->type == SCALAR)
			return 0;
		return refuse(env, EINVAL, "R%d is not a scalar\n", n);
	case PB_BPF_FUNC_CTX:
		if (!reg_is(r, TO_CTX))
			return refuse(env, EINVAL, "arg#%d expected pointer to ctx, but got %s\n",
				      (int)n - 1, type_name(r));
		return pbv_check_unmodified(env, r, n, false);
	case PB_BPF_FUNC_DYNPTR:
		return pbv_check_dynptr(env, n);
	case PB_BPF_FUNC_OTHER:
		return refuse(env, EINVAL, "Unrecognized arg#%d type\n", (int)n - 1);
	default:
		if (f->args[n - 1].kind == PB_BPF_FUNC_MEM_SURE &&
		    (r->flags & MAYBE_NULL || r->type == SCALAR))
			return refuse(env, EINVAL, "arg#%d expected to be non-NULL\n", (int)n - 1);
		if (reg_is_null(r))
			return pbv_precise_reg(env, n);
		return check_global_memory(env, n, f->args[n - 1].size, sub);
	}
}

static int call_global(struct env *env, uint32_t sub)
{
	const struct pb_bpf_func *f = env->funcs[sub];
	int err = 0;

	if (env->cur->lock)
		return refuse(env, EINVAL,
			      "global function calls are not allowed while holding a lock,\n"
			      "use static function instead\n");
	if (f->nr_args > PB_BPF_FUNC_ARGS) {
		log(env, "Function %s has %d > %d args\n", f->name, (int)f->nr_args,
		    PB_BPF_FUNC_ARGS);
		err = -EINVAL;
	}
	for (unsigned n = 1; n <= f->nr_args && !err; n++) {
		err = pbv_reg_use(env, n, READ);
		if (!err)
			err = check_global_arg(env, n, sub);
	}
	if (err)
		return refuse(env, -err, "Caller passes invalid args into func#%d ('%s')\n",
			      (int)sub, f->name);
	log(env, "Func#%d ('%s') is global and assumed valid.\n", (int)sub, f->name);
	env->subs[sub].called = true;
	pbv_regs_clobber(env, cur_regs(env));
	pbv_reg_make_scalar(&cur_regs(env)[0], !env->capable);
	if (env->subs[sub].moves_packet)
		pbv_forget_packets(env);
	return 0;
}

/* ---- the arguments of a callback ----------------------------------------------------------- */

static void none_from(struct env *env, struct frame *callee, int n)
{
	for (; n <= 5; n++)
		pbv_reg_make_none(&callee->regs[n], !env->capable);
}

static void give_key_and_value(struct env *env, struct frame *callee, int n,
			       const struct pb_bpf_map *map)
{
	pbv_reg_make(&callee->regs[n], TO_MAP_KEY, 0);
	callee->regs[n].map = map;
	callee->regs[n].map_uid = callee->number;
	pbv_reg_make(&callee->regs[n + 1], TO_MAP_VALUE, 0);
	callee->regs[n + 1].map = map;
	/* the id distinguishes the value's lock from the locks of other values */
	if (map->types.spin_lock_off >= 0)
		callee->regs[n + 1].id = ++env->ids;
}

static int give_loop(struct env *env, const struct frame *caller, struct frame *callee)
{
	pbv_reg_make_scalar(&callee->regs[1], !env->capable);
	pbv_reg_hand_over(callee, 2, caller, 3);
	none_from(env, callee, 3);
	return 0;
}

static int give_map_elem(struct env *env, const struct frame *caller, struct frame *callee)
{
	const struct pb_bpf_map *map = caller->regs[1].map;
	uint32_t type = map->attr.type;

	if (env->aux[env->insn].fact.poisoned)
		return refuse(env, EINVAL, "tail_call abusing map_ptr\n");
	if (type != BPF_MAP_TYPE_ARRAY && type != BPF_MAP_TYPE_PERCPU_ARRAY &&
	    type != BPF_MAP_TYPE_HASH && type != BPF_MAP_TYPE_PERCPU_HASH &&
	    type != BPF_MAP_TYPE_LRU_HASH && type != BPF_MAP_TYPE_LRU_PERCPU_HASH)
		return refuse(env, ENOTSUPP, "callback function not allowed for map\n");
	pbv_reg_hand_over(callee, 1, caller, 1);
	give_key_and_value(env, callee, 2, map);
	pbv_reg_hand_over(callee, 4, caller, 3);
	none_from(env, callee, 5);
	return 0;
}

static int give_timer(struct env *env, const struct frame *caller, struct frame *callee)
{
	const struct pb_bpf_map *map = caller->regs[1].map;

	pbv_reg_make(&callee->regs[1], MAP_PTR, 0);
	callee->regs[1].map = map;
	give_key_and_value(env, callee, 2, map);
	none_from(env, callee, 4);
	return 0;
}

static int give_vma(struct env *env, const struct frame *caller, struct frame *callee)
{
	pbv_reg_hand_over(callee, 1, caller, 1);
	pbv_reg_make(&callee->regs[2], TO_BTF, 0);
	callee->regs[2].btf = "vm_area_struct";
	pbv_reg_hand_over(callee, 3, caller, 4);
	none_from(env, callee, 4);
	return 0;
}

static int give_record(struct env *env, const struct frame *caller, struct frame *callee)
{
	pbv_reg_make(&callee->regs[1], TO_DYNPTR, 0);
	pbv_reg_hand_over(callee, 2, caller, 3);
	none_from(env, callee, 3);
	return 0;
}

static int give(struct env *env, int32_t id, const struct frame *caller, struct frame *callee)
{
	switch (id) {
	case BPF_FUNC_loop:
		return give_loop(env, caller, callee);
	case BPF_FUNC_for_each_map_elem:
		return give_map_elem(env, caller, callee);
	case BPF_FUNC_timer_set_callback:
		return give_timer(env, caller, callee);
	case BPF_FUNC_find_vma:
		return give_vma(env, caller, callee);
	default:
		return give_record(env, caller, callee);
	}
}

/* ---- entering and leaving ------------------------------------------------------------------ */

static void log_call(struct env *env, const struct frame *caller, const struct frame *callee)
{
	if (!log_on(env))
		return;
	log(env, "caller:\n");
	pbv_log_state(env, caller, true);
	log(env, "callee:\n");
	pbv_log_state(env, callee, true);
}

static struct frame *new_callee(struct env *env, const struct state *st, uint32_t sub)
{
	struct frame *callee;

	if (st->cur + 1 >= PB_BPF_MAX_FRAMES) {
		log(env, "the call stack of %d frames is too deep\n", (int)st->cur + 2);
		return NULL;
	}
	callee = pbv_frame_new(env, (int32_t)env->insn, st->cur + 1, sub);
	if (callee)
		callee->callback = st->frames[st->cur]->callback;
	if (callee && pbv_frame_copy_refs(env, callee, st->frames[st->cur])) {
		pbv_frame_free(env, callee);
		return NULL;
	}
	return callee;
}

static int no_callee(const struct state *st)
{
	return st->cur + 1 >= PB_BPF_MAX_FRAMES ? -E2BIG : -ENOMEM;
}

int pbv_check_subprog_call(struct env *env, const struct bpf_insn *insn)
{
	int sub = pbv_find_subprog(env, env->insn + (uint32_t)insn->imm + 1);
	struct frame *callee, *caller;

	if (sub < 0)
		return refuse(env, EFAULT, "verifier bug. No program starts at insn %d\n",
			      (int)env->insn + insn->imm + 1);
	if (env->cur->cur + 1 < PB_BPF_MAX_FRAMES && env->funcs[sub] && env->funcs[sub]->global)
		return call_global(env, (uint32_t)sub);
	callee = new_callee(env, env->cur, (uint32_t)sub);
	if (!callee)
		return no_callee(env->cur);
	/* the parents of the callee's registers are the caller's registers, so that a read in the
	 * callee marks the caller's register */
	for (unsigned i = 1; i <= 5; i++)
		pbv_reg_hand_over(callee, i, cur_frame(env), i);
	caller = cur_frame(env);
	pbv_regs_clobber(env, caller->regs);
	env->cur->frames[++env->cur->cur] = callee;
	env->insn = env->subs[sub].start - 1;	/* pbv_check_paths() adds 1 */
	log_call(env, caller, callee);
	return 0;
}

/* A timer's callback runs later, like a separate program. */
static int check_async(struct env *env, const struct helper_call *call)
{
	struct frame *caller = cur_frame(env), *callee;
	uint32_t start = env->subs[call->subprog].start;
	struct state *st;
	int err;

	env->subs[call->subprog].is_async = true;
	st = pbv_branch_push(env, start, env->insn, false);
	if (!st)
		return -EFAULT;
	/* the new state will have no parent (see below), so undo pbv_branch_push(), which has
	 * counted the branch in the parent */
	if (st->parent)
		st->parent->branches--;
	pbv_state_clear(env, st);
	*st = (struct state){ .branches = 1, .first = start, .last = -1 };
	callee = pbv_frame_new(env, MAIN, 0, call->subprog);
	if (!callee)
		return -ENOMEM;
	st->frames[0] = callee;
	callee->async_entries = caller->async_entries + 1;
	callee->in_async = true;
	err = give(env, call->id, caller, callee);
	if (err)
		return err;
	pbv_regs_clobber(env, caller->regs);
	pbv_reg_make_scalar(&caller->regs[0], !env->capable);
	return 0;
}

/*
 * A helper may call its callback any number of times. So the path forks: one branch continues after
 * the call, the other branch enters the callback. The callback returns to the call itself, and the
 * path forks again. But if the state of an earlier iteration covers the path's state, the path is
 * pruned at the call (prune.c). The first argument of bpf_loop limits the number of iterations.
 */
int pbv_check_callback(struct env *env, const struct bpf_insn *insn, const struct helper_call *call)
{
	struct frame *callee, *caller = cur_frame(env);
	uint64_t most = UINT32_MAX;
	struct state *st;
	int err;

	if (call->id == BPF_FUNC_timer_set_callback)
		return check_async(env, call);
	/* if r1 is a pointer, the number of iterations is unknown */
	if (call->id == BPF_FUNC_loop && caller->regs[1].type == SCALAR) {
		err = pbv_precise_reg(env, 1);
		if (err)
			return err;
		most = caller->regs[1].wide.umax < most ? caller->regs[1].wide.umax : most;
		if (caller->iterations >= caller->regs[1].wide.umax) {
			caller->iterations = caller->series = 0;
			return 0;
		}
	}
	env->subs[call->subprog].is_callback = env->passes = true;
	env->passed[caller->subprog][call->subprog / 64] |= 1ull << call->subprog % 64;
	st = pbv_branch_push(env, env->subs[call->subprog].start, env->insn, false);
	if (!st)
		return -EFAULT;
	callee = new_callee(env, st, call->subprog);
	if (!callee)
		return no_callee(st);
	err = give(env, call->id, st->frames[st->cur], callee);
	if (err) {
		pbv_frame_free(env, callee);
		return err;
	}
	callee->in_callback = true;
	callee->callback = (uint8_t)callee->number;
	callee->most_ret = 1;
	st->frames[st->cur]->iterations++;
	st->frames[st->cur]->most_iterations = (uint32_t)most;
	st->iterations++;
	st->frames[++st->cur] = callee;
	caller->iterations = caller->series = 0;
	return 0;
}

/* The key that a helper passes to a callback may lie in the helper's own frame. So when the
 * callback returns, the pointers to the key that it has stored in its callers' frames are lost. */
static void forget_key(struct env *env, uint32_t frame)
{
	for_each_reg(env->cur, f, r)
		if (r->type == TO_MAP_KEY && r->map_uid == frame)
			pbv_reg_lost(env, r);
}

int pbv_leave_frame(struct env *env)
{
	struct state *st = env->cur;
	struct frame *callee = cur_frame(env), *caller = st->frames[st->cur - 1];
	struct reg *r0 = &callee->regs[0];
	bool back;
	int err;

	if (r0->type == TO_STACK)
		return refuse(env, EINVAL, "cannot return stack pointer to the caller\n");
	if (callee->in_callback) {
		if (r0->type != SCALAR)
			return refuse(env, EACCES, "R0 not a scalar value\n");
		pbv_live_read(env, callee, 0);
		err = pbv_precise_reg(env, 0);
		if (err)
			return err;
		if (r0->wide.smin < 0 || r0->wide.smax > callee->most_ret) {
			pbv_log_scalar(env, r0, 0, (int)callee->most_ret, "At callback return");
			return -EINVAL;
		}
	} else {
		pbv_reg_hand_over(caller, 0, callee, 0);
		err = pbv_frame_copy_refs(env, caller, callee);
		if (err)
			return err;
	}
	/* a callback returns to the call itself: the helper may call back once more */
	env->insn = (uint32_t)callee->callsite + !callee->in_callback;
	if (log_on(env)) {
		log(env, "returning from callee:\n");
		pbv_log_state(env, callee, true);
		log(env, "to caller at %d:\n", (int)env->insn);
		pbv_log_state(env, caller, true);
	}
	back = callee->in_callback;
	if (back)
		caller->most_iterations = 0;
	pbv_frame_free(env, callee);
	st->frames[st->cur--] = NULL;
	if (back) {
		forget_key(env, st->cur + 1u);
		pbv_prune_widen(env, st->parent, st);
	}
	env->returned = back;
	return 0;
}
