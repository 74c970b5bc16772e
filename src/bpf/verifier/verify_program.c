/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A whole verification: sets up, checks the program, and collects the facts. */
#include "bpf/verifier/cfg.h"
#include "bpf/verifier/check.h"
#include "bpf/verifier/constant.h"
#include "bpf/verifier/env.h"
#include "bpf/verifier/fastcall.h"
#include "bpf/verifier/log.h"
#include "bpf/verifier/prune.h"
#include "bpf/verifier/state.h"
#include "bpf/verifier/iterations.h"

/* Whether programs of this type need the capability `cap`. Programs of tc and XDP need
 * PB_BPF_CAP_NET_ADMIN. Programs that may see other processes' memory need PB_BPF_CAP_PERFMON. */
static bool needs(uint32_t type, uint32_t cap)
{
	switch (type) {
	case BPF_PROG_TYPE_SCHED_CLS: case BPF_PROG_TYPE_SCHED_ACT: case BPF_PROG_TYPE_XDP:
		return cap == PB_BPF_CAP_NET_ADMIN;
	case BPF_PROG_TYPE_KPROBE: case BPF_PROG_TYPE_TRACEPOINT: case BPF_PROG_TYPE_PERF_EVENT:
	case BPF_PROG_TYPE_RAW_TRACEPOINT:
		return cap == PB_BPF_CAP_PERFMON;
	default:
		return false;
	}
}

static int check_rights(const struct pb_bpf_verify *v)
{
	bool capable = v->caps & PB_BPF_CAP_BPF;

	if (!v->nr || v->nr > (capable ? PB_BPF_COMPLEXITY : PB_BPF_MAX_INSNS_UNPRIV))
		return -E2BIG;
	if (!capable && (!v->type->unpriv || pb_bpf_settings.unprivileged_disabled))
		return -EPERM;
	if (capable && needs(v->type->type, PB_BPF_CAP_NET_ADMIN) &&
	    !(v->caps & PB_BPF_CAP_NET_ADMIN))
		return -EPERM;
	if (needs(v->type->type, PB_BPF_CAP_PERFMON) && !(v->caps & PB_BPF_CAP_PERFMON))
		return -EPERM;
	return 0;
}

static int set_up(struct env *env, struct pb_bpf_verify *v)
{
	bool trusted = v->caps & PB_BPF_CAP_PERFMON;

	env->v = v;
	env->insns = v->insns;
	env->nr = v->nr;
	env->capable = v->caps & PB_BPF_CAP_BPF;
	env->ptr_leaks = env->uninit_stack = env->trust_v1 = env->trust_v4 = trusted;
	env->strict = v->flags & BPF_F_STRICT_ALIGNMENT && !(v->flags & BPF_F_ANY_ALIGNMENT);
	env->state_freq = env->capable && v->flags & BPF_F_TEST_STATE_FREQ;
	env->ops = pbv_pool_zero(&env->pool, v->nr);
	env->aux = pbv_pool_zero(&env->pool, v->nr * sizeof *env->aux);
	env->nr_lists = v->nr < MAX_LISTS ? v->nr : MAX_LISTS;
	env->explored = pbv_pool_zero(&env->pool, env->nr_lists * sizeof(struct explored *));
	if (!env->ops || !env->aux || !env->explored)
		return -ENOMEM;
	env->set_up = pool_mark(&env->pool);
	for (uint32_t i = 0; i < v->nr; i++) {
		env->ops[i] = pb_bpf_decode(&v->insns[i]);
		if (env->ops[i] == PB_BPF_OP_LD_IMM64)
			i++;
	}
	return 0;
}

/* ---- one function ---------------------------------------------------------------------------- */

static int give_arguments(struct env *env, uint32_t sub, struct reg *regs)
{
	const struct pb_bpf_func *f = env->funcs[sub];

	if (!sub) {
		pbv_reg_make(&regs[1], TO_CTX, 0);
		return 0;
	}
	for (uint32_t i = 0; i < f->nr_args && i < PB_BPF_FUNC_ARGS; i++) {
		struct reg *r = &regs[i + 1];

		switch (f->args[i].kind) {
		case PB_BPF_FUNC_CTX:
			pbv_reg_make(r, TO_CTX, 0);
			break;
		case PB_BPF_FUNC_MEM: case PB_BPF_FUNC_MEM_SURE:
			pbv_reg_make(r, TO_MEM, f->args[i].kind == PB_BPF_FUNC_MEM ? MAYBE_NULL :
				     0);
			r->mem_size = f->args[i].size;
			if (r->flags)
				r->id = ++env->ids;
			break;
		case PB_BPF_FUNC_DYNPTR:
			pbv_reg_make(r, TO_DYNPTR, 0);
			break;
		default:
			pbv_reg_make_scalar(r, !env->capable);
		}
	}
	return 0;
}

static int check_function(struct env *env, uint32_t sub)
{
	struct state *st = pbv_pool_zero(&env->pool, sizeof *st);
	struct pb_bpf_text *log = env->v->log;
	int err;

	if (!st)
		return -ENOMEM;
	env->cur = st;
	env->last_line = NULL;
	env->insn = st->first = env->subs[sub].start;
	st->last = -1;
	st->branches = 1;
	st->frames[0] = pbv_frame_new(env, MAIN, 0, sub);
	if (!st->frames[0])
		return -ENOMEM;
	err = give_arguments(env, sub, st->frames[0]->regs);
	if (!err)
		err = pbv_check_paths(env);
	/* after an error the whole pool is freed */
	if (err)
		return err;
	pbv_state_clear(env, st);
	pbv_pool_put(&env->pool, st, sizeof *st);
	pbv_prune_free(env);
	if (log && !(env->v->log_level & 2))
		pb_bpf_text_back(log, 0);
	return 0;
}

/* A global function is verified only if the verifier has seen a call of it. The function may call
 * further global functions. */
static int check_functions(struct env *env)
{
	int err = check_function(env, 0);
	bool more = true;

	while (more && !err) {
		more = false;
		for (uint32_t i = 1; i < env->nr_subs && !err; i++) {
			if (!env->subs[i].called || env->subs[i].verified)
				continue;
			more = env->subs[i].verified = true;
			log(env, "Validating %s() func#%d...\n", env->funcs[i]->name, (int)i);
			err = check_function(env, i);
			if (!err)
				log(env, "Func#%d ('%s') is safe for any args that match its "
					 "prototype\n", (int)i,
				    env->funcs[i]->name);
		}
	}
	return err;
}

/* ---- the facts ------------------------------------------------------------------------------- */

static uint32_t map_number(const struct env *env, const struct pb_bpf_map *m)
{
	for (uint32_t i = 0; i < env->v->nr_maps; i++)
		if (env->v->maps[i] == m)
			return i + 1;
	return 0;	/* an inner map, which is known only at run time */
}

static void report_fact(const struct env *env, uint32_t i, struct pb_bpf_fact *fact)
{
	const struct aux *aux = &env->aux[i];

	*fact = aux->fact;
	if (aux->map_known && !fact->poisoned)
		fact->map = map_number(env, aux->func_map);
	if (aux->ptr_known)
		fact->access = aux->ptr_type == TO_CTX ? PB_BPF_ACCESS_CTX :
			       aux->ptr_type >= TO_SOCKET &&
				       aux->ptr_type <= TO_XDP_SOCK ? PB_BPF_ACCESS_SOCK :
			       aux->ptr_type == TO_BTF ||
				       aux->ptr_type == MAP_PTR ? PB_BPF_ACCESS_PROBE :
			       PB_BPF_ACCESS_PLAIN;
	fact->mask = aux->alu_state;
}

static int report_facts(struct env *env)
{
	struct pb_bpf_verify *v = env->v;
	size_t insns = sizeof(struct pb_bpf_fact) * env->nr,
		subs = sizeof(struct pb_bpf_subprog) * env->nr_subs;
	size_t size = sizeof(struct pb_bpf_facts) + insns + subs;
	struct pb_bpf_facts *f;

	/* The states are no longer needed. They are freed first, since memory may be too short for
	 * states and facts of a program with a million instructions. */
	pbv_pool_back_to(&env->pool, env->set_up);
	f = v->mem->alloc(v->mem, size);
	if (!f)
		return -ENOMEM;
	f->size = size;
	f->insns = (struct pb_bpf_fact *)(f + 1);
	f->subprogs = (struct pb_bpf_subprog *)((char *)(f + 1) + insns);
	f->nr_subprogs = env->nr_subs;
	f->stack = v->stats.stack;
	f->ctx_needed = env->ctx_needed;
	f->deepest = env->deepest;
	f->nested = env->nested;
	for (uint32_t i = 0; i < env->nr; i++)
		report_fact(env, i, &f->insns[i]);
	for (uint32_t i = 0; i < env->nr_subs; i++) {
		bool counts = pbv_has_may_goto(env, i);

		/* v->stats.stack has no room for counters of may_gotos, and no room for registers
		 * that are saved around fast calls. If any function needs one of these, f->stack
		 * has room for both in PB_BPF_MAX_FRAMES frames. */
		if (counts || pbv_counted_stack(&env->subs[i]) < env->subs[i].stack)
			f->stack = v->stats.stack + PB_BPF_MAX_FRAMES *
				   (PB_BPF_COUNTER + PB_BPF_SAVED);
		f->subprogs[i] = (struct pb_bpf_subprog){
			.start = env->subs[i].start,
			.stack = pb_align_up(env->subs[i].stack,
					     8u) + (counts ? PB_BPF_COUNTER : 0),
			.has_tail_call = env->subs[i].has_tail_call, .counts = counts,
			.is_callback = env->subs[i].is_callback || env->subs[i].is_async,
		};
	}
	v->facts = f;
	return 0;
}

void pb_bpf_facts_free(struct pb_bpf_mem *mem, struct pb_bpf_facts *facts)
{
	if (facts)
		mem->free(mem, facts, facts->size);
}

/* Without CAP_PERFMON the index of each tail call is masked, and the mask depends on the map. So a
 * tail call that gets different maps on different paths is refused. */
static int check_tail_calls(struct env *env)
{
	for (uint32_t i = 0; i < env->nr && !env->trust_v1; i++)
		if (env->aux[i].fact.key_seen && env->aux[i].fact.poisoned)
			return refuse(env, EINVAL, "tail_call abusing map_ptr\n");
	return 0;
}

static int check_all(struct env *env)
{
	int err = pbv_find_subprogs(env);

	if (!err)
		err = pbv_check_subprogs(env);
	if (!err)
		err = pbv_check_funcs(env);
	if (!err)
		err = pbv_check_constants(env);
	if (!err)
		err = pbv_check_cfg(env);
	if (!err)
		err = pbv_find_fast_calls(env);
	if (!err)
		err = check_functions(env);
	if (!err)
		err = pbv_check_stack_depth(env);
	if (!err)
		err = check_tail_calls(env);
	return err;
}

static int verify(struct pb_bpf_verify *v)
{
	struct pool pool = { .mem = v->mem };
	struct env *env;
	int err;

	v->facts = NULL;
	memset(&v->stats, 0, sizeof v->stats);
	err = check_rights(v);
	if (err)
		return err;
	env = pbv_pool_zero(&pool, sizeof *env);
	if (!env) {
		pbv_pool_end(&pool);
		return -ENOMEM;
	}
	env->pool = pool;
	err = set_up(env, v);
	if (!err)
		err = check_all(env);
	v->stats.insns = env->processed;
	if (err && env->pool.failed)
		err = refuse(env, ENOMEM, "verifying the program needs more than %d MB\n",
			     (int)(MAX_POOL >> 20));
	pbv_log_stats(env);
	if (!err)
		err = report_facts(env);
	pool = env->pool;	/* a copy, since env itself lies in the pool */
	pbv_pool_end(&pool);
	return err;
}

/* Writing a log takes several times as long as the verification, and hardly anyone reads the log.
 * So with PB_BPF_LOG_REFUSAL the first verification writes no log. After a refusal, a second
 * verification writes one. The second verdict is the result. If memory was short only for a moment,
 * it differs from the first one. */
int pb_bpf_verify(struct pb_bpf_verify *v)
{
	uint32_t level = v->log_level;
	int err;

	if (v->log)
		v->log->tail = true;
	v->log_level &= ~(uint32_t)PB_BPF_LOG_REFUSAL;
	err = verify(v);
	if (err && level == PB_BPF_LOG_REFUSAL && v->log) {
		v->log_level = 1;
		err = verify(v);
	}
	v->log_level = level;
	return err;
}
