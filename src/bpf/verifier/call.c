/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Checks calls of helpers: permission, arguments, return value. */
#include "bpf/core/format.h"
#include "bpf/verifier/access.h"
#include "bpf/verifier/env.h"
#include "bpf/verifier/func.h"
#include "bpf/verifier/helper_call.h"
#include "bpf/verifier/live.h"
#include "bpf/verifier/log.h"
#include "bpf/verifier/precise.h"
#include "bpf/verifier/state.h"

#define MAX_ERRNO 4095

static bool one_of(int32_t id, const int16_t *ids, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (ids[i] == id)
			return true;
	return false;
}
#define is_one_of(id, ...) one_of(id, (const int16_t[]){ __VA_ARGS__ }, \
				  sizeof((int16_t[]){ __VA_ARGS__ }) / sizeof(int16_t))

static bool acquires(const struct helper_call *c)
{
	uint32_t map = c->map ? c->map->attr.type : 0;

	return is_one_of(c->id, BPF_FUNC_sk_lookup_tcp, BPF_FUNC_sk_lookup_udp,
			 BPF_FUNC_skc_lookup_tcp, BPF_FUNC_ringbuf_reserve, BPF_FUNC_kptr_xchg) ||
	       (c->id == BPF_FUNC_map_lookup_elem &&
		(map == BPF_MAP_TYPE_SOCKMAP || map == BPF_MAP_TYPE_SOCKHASH));
}

/* Returns whether the helper returns its argument as a different type. */
static bool casts(int32_t id)
{
	return is_one_of(id, BPF_FUNC_tcp_sock, BPF_FUNC_sk_fullsock, BPF_FUNC_skc_to_tcp_sock,
			 BPF_FUNC_skc_to_tcp6_sock, BPF_FUNC_skc_to_udp6_sock,
			 BPF_FUNC_skc_to_mptcp_sock, BPF_FUNC_skc_to_tcp_timewait_sock,
			 BPF_FUNC_skc_to_tcp_request_sock);
}

bool pbv_helper_calls_back(int32_t id)
{
	return is_one_of(id, BPF_FUNC_for_each_map_elem, BPF_FUNC_timer_set_callback,
			 BPF_FUNC_find_vma, BPF_FUNC_loop, BPF_FUNC_user_ringbuf_drain);
}

static int check_allowed(struct env *env, struct helper_call *c)
{
	const struct pb_bpf_verify *v = env->v;

	if (c->id < 0 || !pb_bpf_helper_of((uint32_t)c->id)->name)
		return refuse(env, EINVAL, "invalid func %s#%d\n", pbv_helper_name(c->id), c->id);
	c->proto = pb_bpf_helper_for(v->type, v->attach_type, v->caps, (uint32_t)c->id);
	if (!c->proto)
		return refuse(env, EINVAL, "program of this type cannot use helper %s#%d\n",
			      pbv_helper_name(c->id), c->id);
	if (!env->v->gpl && c->proto->flags & PB_BPF_HELPER_GPL)
		return refuse(env, EINVAL, "cannot call GPL-restricted function from non-GPL "
					   "compatible program\n");
	return 0;
}

/* ---- facts for pb_bpf_resolve() ------------------------------------------------------------ */

static int note_map_of_call(struct env *env, const struct helper_call *c)
{
	struct aux *aux = &env->aux[env->insn];

	if (!is_one_of(c->id, BPF_FUNC_tail_call, BPF_FUNC_map_lookup_elem,
		       BPF_FUNC_map_update_elem, BPF_FUNC_map_delete_elem, BPF_FUNC_map_push_elem,
		       BPF_FUNC_map_pop_elem, BPF_FUNC_map_peek_elem, BPF_FUNC_for_each_map_elem,
		       BPF_FUNC_redirect_map, BPF_FUNC_map_lookup_percpu_elem))
		return 0;
	if (c->map->attr.flags & BPF_F_RDONLY_PROG &&
	    is_one_of(c->id, BPF_FUNC_map_update_elem, BPF_FUNC_map_delete_elem,
		      BPF_FUNC_map_push_elem, BPF_FUNC_map_pop_elem))
		return refuse(env, EACCES, "write into map forbidden\n");
	if (!aux->map_known)
		aux->func_map = c->map;
	else if (aux->func_map != c->map)
		aux->fact.poisoned = true;
	aux->map_known = true;
	return 0;
}

static int note_tail_call_index(struct env *env, const struct helper_call *c)
{
	struct pb_bpf_fact *fact = &env->aux[env->insn].fact;
	const struct reg *r = &cur_regs(env)[3];
	bool first = !fact->key_seen;
	int err;

	if (c->id != BPF_FUNC_tail_call)
		return 0;
	fact->key_seen = true;
	if (!reg_is_const(r) || r->var.value >= c->map->attr.max_entries) {
		fact->key_known = false;
		return 0;
	}
	err = pbv_precise_reg(env, 3);
	if (first) {
		fact->key = (uint32_t)r->var.value;
		fact->key_known = true;
	} else if (fact->key != r->var.value) {
		fact->key_known = false;
	}
	return err;
}

static int note_loop(struct env *env, const struct helper_call *c)
{
	struct aux *aux = &env->aux[env->insn];
	bool no_flags = reg_is_null(&cur_regs(env)[4]);
	int32_t func = (int32_t)env->subs[c->subprog].start;
	int err = 0;

	if (aux->loop_known && !aux->fact.loop_fits)
		return 0;
	if (no_flags)
		err = pbv_precise_reg(env, 4);
	aux->fact.loop_fits = no_flags && (!aux->loop_known || aux->fact.loop_func == func);
	aux->fact.loop_func = func;
	aux->loop_known = true;
	return err;
}

/* ---- what the call does to memory and references --------------------------------------------- */

static int write_raw(struct env *env, const struct helper_call *c)
{
	int err = 0;

	for (int i = 0; i < c->raw_size && !err; i++)
		err = pbv_check_mem(env, (unsigned)c->raw_reg, i, 1, true, -1, false);
	return err;
}

static int make_dynptr(struct env *env, const struct helper_call *c)
{
	const struct reg *r = &cur_regs(env)[c->dynptr_reg];
	unsigned arg = c->dynptr_reg ? c->proto->arg[c->dynptr_reg - 1] : 0;
	struct slot *s;
	int err = 0, id = 0;

	if (!c->dynptr_reg)
		return 0;
	for (int i = 0; i < 2 * SLOT && !err; i += SLOT)
		err = pbv_check_mem(env, c->dynptr_reg, i, SLOT, true, -1, false);
	if (err)
		return err;
	if ((-r->off - 1) / SLOT < 1 || !(arg & (PB_BPF_DYNPTR_LOCAL | PB_BPF_DYNPTR_RINGBUF)))
		return -EINVAL;
	if (arg & PB_BPF_DYNPTR_RINGBUF)
		id = pbv_ref_acquire(env);
	if (id < 0)
		return id;
	s = &frame_of(env, r)->slots[(-r->off - 1) / SLOT];
	/* the slots may still describe registers that were spilled there */
	for (int i = -1; i <= 0; i++) {
		memset(s[i].type, S_DYNPTR, SLOT);
		pbv_reg_make_none(&s[i].reg, !env->capable);
	}
	s[0].reg.first_slot = true;
	s[0].reg.dynptr = s[-1].reg.dynptr = arg & PB_BPF_DYNPTR_LOCAL ? LOCAL_DYNPTR :
			  RINGBUF_DYNPTR;
	s[0].reg.dynptr_id = s[-1].reg.dynptr_id = ++env->ids;
	s[0].reg.id = s[-1].reg.id = (uint32_t)id;
	return 0;
}

static int end_dynptr(struct env *env, const struct reg *r)
{
	struct slot *s = &frame_of(env, r)->slots[(-r->off - 1) / SLOT];
	int err = 0;

	memset(s[0].type, S_INVALID, SLOT);
	memset(s[-1].type, S_INVALID, SLOT);
	if (s[0].reg.dynptr == RINGBUF_DYNPTR)
		err = pbv_ref_release(env, s[0].reg.id);
	s[0].reg.id = s[-1].reg.id = 0;
	s[0].reg.first_slot = false;
	s[0].reg.dynptr = s[-1].reg.dynptr = 0;
	return err;
}

static int release(struct env *env, const struct helper_call *c)
{
	const struct reg *r = &cur_regs(env)[c->release_reg];
	int err = -EINVAL;

	if (!c->release_reg)
		return 0;
	if ((c->proto->arg[c->release_reg - 1] & PB_BPF_ARG_BASE) == PB_BPF_ARG_PTR_TO_DYNPTR)
		err = end_dynptr(env, r);
	else if (c->ref)
		err = pbv_ref_release(env, c->ref);
	else if (reg_is_null(r))
		err = 0;
	if (err)
		log(env, "func %s#%d reference has not been acquired before\n", c->proto->name,
		    (int)c->id);
	return err;
}

static int check_format(struct env *env)
{
	const struct reg *len = &cur_regs(env)[5], *fmt = &cur_regs(env)[3];
	const char *text = fmt->map->ops->direct((struct pb_bpf_map *)fmt->map, 0);

	if (len->var.value % 8)
		return -EINVAL;
	text += fmt->off + (int64_t)fmt->var.value;
	if (pb_bpf_format_check(text, ~0u, (uint32_t)(len->var.value / 8)))
		return refuse(env, EINVAL, "Invalid format string\n");
	return 0;
}

/* Additional checks for particular helpers. */
static int check_special(struct env *env, const struct bpf_insn *insn, struct helper_call *c)
{
	struct reg *regs = cur_regs(env);
	int err;

	switch (c->id) {
	case BPF_FUNC_tail_call:
		err = pbv_ref_check_leak(env);
		if (err)
			log(env, "tail_call would lead to reference leak\n");
		return err;
	case BPF_FUNC_get_local_storage:
		if (!reg_is_null(&regs[2]))
			return refuse(env, EINVAL,
				      "get_local_storage() doesn't support non-zero flags\n");
		return pbv_precise_reg(env, 2);
	case BPF_FUNC_snprintf:
		return check_format(env);
	case BPF_FUNC_loop:
		err = note_loop(env, c);
		return err ? err : pbv_check_callback(env, insn, c);
	case BPF_FUNC_for_each_map_elem: case BPF_FUNC_timer_set_callback: case BPF_FUNC_find_vma:
	case BPF_FUNC_user_ringbuf_drain:
		return pbv_check_callback(env, insn, c);
	case BPF_FUNC_dynptr_from_mem:
		if (!reg_is(&regs[1], TO_MAP_VALUE))
			return refuse(env, EACCES,
				      "Unsupported reg type %s for bpf_dynptr_from_mem data\n",
				      type_name(&regs[1]));
		return 0;
	case BPF_FUNC_dynptr_data:
		if (regs[1].type == TO_STACK) {
			const struct slot *s =
				&frame_of(env, &regs[1])->slots[(-regs[1].off - 1) / SLOT];

			c->ref = s->reg.id;
			c->slice_of = s->reg.dynptr_id;
		}
		return 0;
	case BPF_FUNC_get_func_ip:
		if (env->v->type->type == BPF_PROG_TYPE_KPROBE)
			return 0;
		return refuse(env, ENOTSUPP, "func %s#%d not supported for program type %d\n",
			      c->proto->name, (int)c->id, (int)env->v->type->type);
	default:
		return 0;
	}
}

/* ---- the result ---------------------------------------------------------------------------- */

static int make_result(struct env *env, const struct helper_call *c, struct reg *r0)
{
	static const uint8_t types[] = {
		[PB_BPF_RET_MAP_VALUE] = TO_MAP_VALUE, [PB_BPF_RET_SOCKET] = TO_SOCKET,
		[PB_BPF_RET_TCP_SOCK] = TO_TCP_SOCK, [PB_BPF_RET_SOCK_COMMON] = TO_SOCK_COMMON,
		[PB_BPF_RET_MEM] = TO_MEM, [PB_BPF_RET_ALLOC_MEM] = TO_MEM,
		[PB_BPF_RET_BTF_ID] = TO_BTF, [PB_BPF_RET_MEM_OR_BTF_ID] = TO_BTF,
	};
	unsigned ret = c->proto->ret & PB_BPF_RET_BASE,
		flags = c->proto->ret & PB_BPF_MAYBE_NULL ? MAYBE_NULL : 0;

	if (ret == PB_BPF_RET_VOID)
		return 0;
	if (ret == PB_BPF_RET_INTEGER) {
		pbv_reg_make_scalar(r0, !env->capable);
		return 0;
	}
	pbv_reg_make(r0, types[ret], flags | (ret == PB_BPF_RET_ALLOC_MEM ? RESERVED : 0));
	switch (ret) {
	case PB_BPF_RET_MAP_VALUE:
		r0->map = c->map;
		r0->map_uid = c->map_uid;
		if (!flags && c->map->types.spin_lock_off >= 0)
			r0->id = ++env->ids;
		break;
	case PB_BPF_RET_MEM: case PB_BPF_RET_ALLOC_MEM:
		r0->mem_size = c->mem_size;
		r0->slice_of = c->slice_of;
		break;
	case PB_BPF_RET_BTF_ID:
		r0->btf = c->id == BPF_FUNC_kptr_xchg ? c->kptr->name : c->proto->ret_btf;
		break;
	case PB_BPF_RET_MEM_OR_BTF_ID:
		r0->btf = c->btf;
		break;
	}
	if (flags)
		r0->id = ++env->ids;
	return 0;
}

static int make_reference(struct env *env, const struct helper_call *c, struct reg *r0)
{
	int id;

	if (casts(c->id) || c->id == BPF_FUNC_dynptr_data) {
		r0->ref = c->ref;
	} else if (acquires(c)) {
		id = pbv_ref_acquire(env);
		if (id < 0)
			return id;
		r0->id = r0->ref = (uint32_t)id;
	}
	return 0;
}

/* If a helper returns a length, the length is at most the given size. A negative result is an error
 * number, at least -MAX_ERRNO. */
static void refine_result(const struct helper_call *c, struct reg *r0)
{
	if ((c->proto->ret & PB_BPF_RET_BASE) != PB_BPF_RET_INTEGER ||
	    !is_one_of(c->id, BPF_FUNC_get_stack, BPF_FUNC_get_task_stack, BPF_FUNC_probe_read_str,
		       BPF_FUNC_probe_read_kernel_str, BPF_FUNC_probe_read_user_str))
		return;
	r0->wide.smax = (int64_t)c->most_size;
	r0->low.smax = (int32_t)c->most_size;
	r0->wide.smin = r0->low.smin = -MAX_ERRNO;
	pbv_reg_sync(r0);
}

/* Follows a tail call in a subprogram as two paths. If there is a target program, it returns to the
 * subprogram's caller, with any value. Otherwise the subprogram continues after the call. */
static int return_of_other(struct env *env)
{
	struct frame *f = cur_frame(env);
	int err;

	if (!env->cur->cur)
		return 0;
	if (!pbv_branch_push(env, env->insn + 1, env->insn, false))
		return -EFAULT;
	pbv_forget_packets(env);
	pbv_reg_make_scalar(&f->regs[0], !env->capable);
	if (f->in_callback) {
		/* Helpers only test whether a callback's return value is 0, so any other value acts
		 * like 1. So it is enough to allow 0 to most_ret, which is 1 for a callback. */
		f->regs[0].var = tnum_range(0, f->most_ret);
		pbv_reg_sync(&f->regs[0]);
	}
	err = pbv_leave_frame(env);
	env->insn--;
	return err;
}

int pbv_check_helper(struct env *env, const struct bpf_insn *insn)
{
	struct helper_call c = { .id = insn->imm };
	struct reg *regs = cur_regs(env);
	int err = check_allowed(env, &c);

	for (unsigned i = 0; i < 5 && !err; i++)
		err = pbv_check_arg(env, i, &c);
	if (!err)
		err = note_map_of_call(env, &c);
	if (!err)
		err = note_tail_call_index(env, &c);
	if (!err)
		err = write_raw(env, &c);
	if (!err)
		err = make_dynptr(env, &c);
	if (!err)
		err = release(env, &c);
	if (!err)
		err = check_special(env, insn, &c);
	if (err)
		return err;
	pbv_regs_clobber(env, regs);
	err = make_result(env, &c, &regs[0]);
	if (!err)
		err = make_reference(env, &c, &regs[0]);
	if (err)
		return err;
	refine_result(&c, &regs[0]);
	err = pbv_check_map_helper(env, c.map, c.id);
	if (!err && c.proto->flags & PB_BPF_HELPER_MOVES_PKT)
		pbv_forget_packets(env);
	return err || c.id != BPF_FUNC_tail_call ? err : return_of_other(env);
}
