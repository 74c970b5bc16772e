/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Checks 64-bit loads of numbers, and of the addresses of maps, map values and functions. On the
 * same walk over the program, refuses unknown opcodes, and loads that use reserved fields. */
#include "bpf/verifier/constant.h"
#include "bpf/verifier/env.h"
#include "bpf/verifier/func.h"
#include "bpf/verifier/live.h"
#include "bpf/verifier/log.h"
#include "bpf/verifier/state.h"

static bool of_map(unsigned src)
{
	return src == BPF_PSEUDO_MAP_FD || src == BPF_PSEUDO_MAP_IDX;
}

static bool of_map_value(unsigned src)
{
	return src == BPF_PSEUDO_MAP_VALUE || src == BPF_PSEUDO_MAP_IDX_VALUE;
}

static bool traces(uint32_t type)
{
	return type == BPF_PROG_TYPE_KPROBE || type == BPF_PROG_TYPE_TRACEPOINT ||
	       type == BPF_PROG_TYPE_PERF_EVENT || type == BPF_PROG_TYPE_RAW_TRACEPOINT;
}

static int check_map_of_type(struct env *env, const struct pb_bpf_map *m)
{
	uint32_t type = env->v->type->type;

	if (m->types.spin_lock_off >= 0 && type == BPF_PROG_TYPE_SOCKET_FILTER)
		return refuse(env, EINVAL, "socket filter progs cannot use bpf_spin_lock yet\n");
	if (m->types.spin_lock_off >= 0 && traces(type))
		return refuse(env, EINVAL, "tracing progs cannot use bpf_spin_lock yet\n");
	if (m->types.timer_off >= 0 && traces(type))
		return refuse(env, EINVAL, "tracing progs cannot use bpf_timer yet\n");
	return 0;
}

static int check_value_offset(struct env *env, const struct pb_bpf_map *m, uint32_t off)
{
	if (off >= MAX_VAR_OFF)
		return refuse(env, EINVAL, "direct value offset of %u is not allowed\n", off);
	if (!m->ops || !m->ops->direct)
		return refuse(env, EINVAL, "no direct value access support for this map type\n");
	/* the map must have only one value, so that the value's address doesn't depend on a key */
	if (off >= m->attr.value_size || m->attr.max_entries != 1)
		return refuse(env, EINVAL,
			      "invalid access to map value pointer, value_size=%u off=%u\n",
			      m->attr.value_size, off);
	return 0;
}

/* Gives the value of map n an id, if it has a spin lock. The id is the same in all loads of the
 * value. So a lock that was taken through one load can be released through another load. */
static void number_value(struct env *env, uint32_t n)
{
	struct pb_bpf_map *const *maps = env->v->maps;
	uint32_t first = 0;	/* the map's first place in `maps` */

	if (maps[n]->types.spin_lock_off < 0)
		return;
	while (maps[first] != maps[n])
		first++;
	if (!env->value_ids[first])
		env->value_ids_end = env->value_ids[first] = ++env->ids;
	env->value_ids[n] = env->value_ids[first];
}

static int check_map_load(struct env *env, uint32_t i)
{
	const struct bpf_insn *insn = &env->insns[i];
	const struct pb_bpf_verify *v = env->v;
	uint32_t n = (uint32_t)insn->imm;
	int err;

	if (!of_map_value(insn->src_reg) && (!of_map(insn->src_reg) || insn[1].imm))
		return refuse(env, EINVAL, "unrecognized bpf_ld_imm64 insn\n");
	if (n >= v->nr_maps || !v->maps[n])
		return refuse(env, EBADF, "fd %d is not pointing to valid bpf_map\n", insn->imm);
	err = check_map_of_type(env, v->maps[n]);
	if (!err && of_map_value(insn->src_reg))
		err = check_value_offset(env, v->maps[n], (uint32_t)insn[1].imm);
	if (err)
		return err;
	if (of_map_value(insn->src_reg))
		number_value(env, n);
	env->aux[i].fact.map = n + 1;
	env->aux[i].fact.off = of_map_value(insn->src_reg) ? (uint32_t)insn[1].imm : 0;
	return 0;
}

const struct pb_bpf_map *pbv_inner_map(struct env *env, const struct pb_bpf_map *outer)
{
	for (uint32_t i = 0; i < env->v->nr_maps; i++)
		if (env->v->maps[i] == outer)
			return &env->inner[i];
	return outer;
}

static int describe_inner(struct env *env)
{
	const struct pb_bpf_verify *v = env->v;

	env->inner = pbv_pool_zero(&env->pool, (v->nr_maps + 1) * sizeof *env->inner);
	for (uint32_t i = 0; env->inner && i < v->nr_maps; i++) {
		if (v->maps[i])
			env->inner[i].attr = v->maps[i]->inner;
		env->inner[i].types.spin_lock_off = env->inner[i].types.timer_off = -1;
	}
	return env->inner ? 0 : -ENOMEM;
}

static int check_one(struct env *env, uint32_t i)
{
	const struct bpf_insn *insn = &env->insns[i];

	if (i + 1 >= env->nr || insn[1].code || insn[1].dst_reg || insn[1].src_reg || insn[1].off)
		return refuse(env, EINVAL, "invalid bpf_ld_imm64 insn\n");
	if (insn->src_reg == BPF_PSEUDO_BTF_ID)
		return refuse(env, EINVAL,
			      "ldimm64 of a kernel variable, which doesn't exist in user space\n");
	if (!insn->src_reg || insn->src_reg == BPF_PSEUDO_FUNC)
		return 0;
	return check_map_load(env, i);
}

/* Returns whether an instruction with this opcode exists. The other fields don't matter. */
static bool known_opcode(uint8_t code)
{
	for (int op = 1; op < PB_BPF_NR_OPS; op++)
		if (pb_bpf_ops[op].code == code)
			return true;
	return false;
}

int pbv_check_constants(struct env *env)
{
	env->value_ids = pbv_pool_zero(&env->pool, (env->v->nr_maps + 1) * sizeof *env->value_ids);
	if (!env->value_ids || describe_inner(env))
		return -ENOMEM;
	for (uint32_t i = 0; i < env->nr; i++) {
		const struct bpf_insn *insn = &env->insns[i];
		unsigned mode = BPF_MODE(insn->code);
		int err;

		if (BPF_CLASS(insn->code) == BPF_LDX && ((mode != BPF_MEM && mode != BPF_MEMSX) ||
							 insn->imm))
			return refuse(env, EINVAL, "BPF_LDX uses reserved fields\n");
		if (insn->code == (BPF_LD | BPF_IMM | BPF_DW)) {
			err = check_one(env, i);
			if (err)
				return err;
			i++;
		} else if (!env->ops[i] && !known_opcode(insn->code)) {
			return refuse(env, EINVAL, "unknown opcode %02x\n", insn->code);
		}
	}
	return 0;
}

static int load_func(struct env *env, const struct bpf_insn *insn, struct reg *dst)
{
	int sub = pbv_find_subprog(env, env->insn + 1 + (uint32_t)insn->imm);

	if (!env->v->nr_funcs)
		return refuse(env, EINVAL, "missing btf func_info\n");
	if (sub < 0 || (env->funcs[sub] && env->funcs[sub]->global))
		return refuse(env, EINVAL, "callback function not static\n");
	if (!sub)
		return refuse(env, EINVAL, "callback function cannot be the main program\n");
	dst->type = TO_FUNC;
	dst->subprog = (uint32_t)sub;
	return 0;
}

int pbv_check_ld64(struct env *env, const struct bpf_insn *insn)
{
	const struct pb_bpf_fact *fact = &env->aux[env->insn].fact;
	struct reg *dst = &cur_regs(env)[insn->dst_reg];
	int err;

	if (insn->off)
		return refuse(env, EINVAL, "BPF_LD_IMM64 uses reserved fields\n");
	err = pbv_reg_use(env, insn->dst_reg, WRITE);
	if (err)
		return err;
	if (!insn->src_reg) {
		pbv_reg_make_const(dst,
				   (uint64_t)(uint32_t)insn[1].imm << 32 | (uint32_t)insn->imm);
		return 0;
	}
	pbv_reg_make(dst, NOT_INIT, 0);
	if (insn->src_reg == BPF_PSEUDO_FUNC)
		return load_func(env, insn, dst);
	dst->map = env->v->maps[fact->map - 1];
	dst->type = MAP_PTR;
	if (of_map_value(insn->src_reg)) {
		dst->type = TO_MAP_VALUE;
		dst->off = (int32_t)fact->off;
		dst->id = env->value_ids[fact->map - 1];
	}
	return 0;
}
