/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Fast calls (clang's attribute bpf_fastcall) are calls of helpers that newer kernels inline. An
 * inlined call changes only the result register and the registers of its arguments. Other calls may
 * change all of r0 to r5. So for kernels that don't inline these calls, clang saves registers that
 * it needs later in the lowest slots of the frame (the save slots), and restores them:
 *
 *	*(u64 *)(r10 - 8) = r2
 *	*(u64 *)(r10 - 16) = r1
 *	call bpf_get_smp_processor_id
 *	r1 = *(u64 *)(r10 - 16)
 *	r2 = *(u64 *)(r10 - 8)
 *
 * Linux 6.12 drops these loads and stores if nothing else accesses their slots, and doesn't count
 * the slots as part of the frame. In Patchbay the loads and stores stay, because helpers are C
 * functions, which may change r1 to r5. But Patchbay counts the size of a frame as the kernel does,
 * and reserves additional room for the slots.
 */
#include "bpf/verifier/env.h"
#include "bpf/verifier/fastcall.h"

#define ARGS_AND_R0	0x3fu

/* Returns the registers that an inlined call of the helper doesn't change. */
static uint32_t left_alone(const struct env *env, const struct bpf_insn *call)
{
	const struct pb_bpf_verify *v = env->v;
	const struct pb_bpf_helper *h = call->src_reg || call->imm < 0 ? NULL :
		pb_bpf_helper_for(v->type, v->attach_type, v->caps, (uint32_t)call->imm);
	uint32_t changed = h && (h->ret & PB_BPF_RET_BASE) != PB_BPF_RET_VOID;

	for (int i = 0; h && i < 5; i++)
		changed |= h->arg[i] ? 2u << i : 0;
	return h ? ARGS_AND_R0 & ~changed : 0;
}

static bool is_save(const struct bpf_insn *i, int32_t off)
{
	return i->code == (BPF_STX | BPF_MEM | BPF_DW) && i->dst_reg == FP && i->off == off;
}

static bool is_restore(const struct bpf_insn *i, int32_t off)
{
	return i->code == (BPF_LDX | BPF_MEM | BPF_DW) && i->src_reg == FP && i->off == off;
}

/* Looks for pairs of a save before the call and a restore after it. The pair next to the call uses
 * the lowest slot; each pair further out uses the next higher slot. */
static void find_pairs(struct env *env, struct subprog *s, uint32_t call, int32_t lowest,
		       const uint8_t *targets)
{
	uint32_t regs = left_alone(env, &env->insns[call]), n;
	int32_t off = lowest;

	for (n = 1; n <= 6 && call >= n && call + n < env->nr; n++, off += SLOT) {
		const struct bpf_insn *save = &env->insns[call - n],
			*restore = &env->insns[call + n];

		if (targets[call - n + 1] || targets[call + n] || !is_save(save, off) ||
		    !is_restore(restore, off) || save->src_reg != restore->dst_reg ||
		    !(regs >> save->src_reg & 1))
			break;
		regs &= ~(1u << save->src_reg);
		env->aux[call - n].saves = env->aux[call + n].saves = true;
	}
	if (n == 1)
		return;
	if (env->insns[call].imm == BPF_FUNC_get_smp_processor_id)
		s->fast = true;
	else
		s->saves_stay = true;
	if (s->saved_below > off)
		s->saved_below = off;
}

static int32_t lowest_store(const struct env *env, const struct subprog *s)
{
	int32_t lowest = 0;

	for (uint32_t i = s->start; i < s[1].start; i++) {
		const struct bpf_insn *insn = &env->insns[i];

		if (is_save(insn, insn->off) && insn->off < lowest)
			lowest = insn->off;
	}
	return lowest;
}

static void find_targets(const struct env *env, uint8_t *targets)
{
	for (uint32_t i = 0; i < env->nr; i++) {
		unsigned form = pb_bpf_ops[env->ops[i]].form;

		/* pbv_check_subprogs() has checked that targets are inside the program */
		if (form == PB_BPF_GOTO || form == PB_BPF_IF_K || form == PB_BPF_IF_X ||
		    form == PB_BPF_MAY_GOTO)
			targets[i + 1 + (uint32_t)(int32_t)env->insns[i].off] = true;
		else if (form == PB_BPF_GOTOL)
			targets[i + 1 + (uint32_t)env->insns[i].imm] = true;
	}
}

int pbv_find_fast_calls(struct env *env)
{
	uint8_t *targets = pbv_pool_zero(&env->pool, env->nr);

	if (!targets)
		return -ENOMEM;
	find_targets(env, targets);
	for (uint32_t n = 0; n < env->nr_subs; n++) {
		struct subprog *s = &env->subs[n];
		int32_t lowest = lowest_store(env, s);

		for (uint32_t i = s->start; lowest && i < s[1].start; i++)
			if (env->insns[i].code == (BPF_JMP | BPF_CALL))
				find_pairs(env, s, i, lowest, targets);
	}
	pbv_pool_put(&env->pool, targets, env->nr);
	return 0;
}

void pbv_touch_saved(struct env *env, const struct frame *f, int64_t off)
{
	struct subprog *s = &env->subs[f->subprog];

	if (off < s->saved_below && !env->aux[env->insn].saves)
		s->saves_stay = true;
}

uint32_t pbv_counted_stack(const struct subprog *s)
{
	uint32_t others = (uint32_t)-s->saved_below;

	return s->fast && !s->saves_stay && others < s->stack ? others : s->stack;
}
