/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Precision. Of two scalars one is as good as the other, unless its value has decided
 * what is safe: a length, an offset, a branch that was taken without looking at the
 * other one. Then the way is walked back, instruction by instruction, over what the
 * value was made of, and in each state on the way those registers and slots are
 * marked: paths that come there with other values are no longer alike.
 *
 * Marks in the present state have no meaning, nobody will compare with it.
 */
#include "bpf/verifier/env.h"

#define GAVE_UP 1

struct wanted {
	uint32_t regs;
	uint64_t slots;
};

static bool slot_of(int off, int *slot)
{
	*slot = (-off - 1) / SLOT;
	return *slot >= 0 && *slot < MAX_SLOTS;
}

static int back_alu(const struct bpf_insn *i, const struct pb_bpf_opinfo *o, struct wanted *w)
{
	uint32_t dst = 1u << i->dst_reg, src = 1u << i->src_reg;

	if (!(w->regs & dst))
		return 0;
	switch (o->form) {
	case PB_BPF_ALU_K:
		if (BPF_OP(i->code) == BPF_MOV)
			w->regs &= ~dst;
		break;
	case PB_BPF_ALU_X: case PB_BPF_MOVSX:
		if (BPF_OP(i->code) == BPF_MOV)
			w->regs &= ~dst;
		w->regs |= src;
		break;
	}
	return 0;
}

static int back_load(const struct bpf_insn *i, unsigned value, unsigned base, struct wanted *w)
{
	int slot;

	if (!(w->regs >> value & 1))
		return 0;
	w->regs &= ~(1u << value);
	if (base != FP)
		return 0;
	if (!slot_of(i->off, &slot))
		return -EFAULT;
	w->slots |= 1ull << slot;
	return 0;
}

static int back_store(const struct bpf_insn *i, const struct pb_bpf_opinfo *o, struct wanted *w)
{
	int slot;

	/* an address isn't a scalar: two pointers were subtracted */
	if (w->regs >> i->dst_reg & 1)
		return GAVE_UP;
	if (i->dst_reg != FP)
		return 0;
	if (!slot_of(i->off, &slot))
		return -EFAULT;
	if (!(w->slots >> slot & 1))
		return 0;
	w->slots &= ~(1ull << slot);
	if (o->form != PB_BPF_ST)
		w->regs |= 1u << i->src_reg;
	return 0;
}

static int back_call(struct env *env, const struct bpf_insn *i, struct wanted *w)
{
	if (helper_calls_back(i->imm))
		return GAVE_UP;
	w->regs &= ~1u;
	if (w->regs & 0x3f)
		return refuse(env, EFAULT, "BUG regs %x\n", w->regs);
	return 0;
}

/* What has to be wanted before the instruction for what is wanted behind it. */
static int back(struct env *env, uint32_t at, struct wanted *w)
{
	const struct bpf_insn *i = &env->insns[at];
	const struct pb_bpf_opinfo *o = &pb_bpf_ops[env->ops[at]];
	uint32_t dst = 1u << i->dst_reg, src = 1u << i->src_reg;

	switch (o->form) {
	case PB_BPF_ALU_K: case PB_BPF_ALU_X: case PB_BPF_MOVSX: case PB_BPF_NEG: case PB_BPF_END:
		return back_alu(i, o, w);
	case PB_BPF_LDX: case PB_BPF_LDSX:
		return back_load(i, i->dst_reg, i->src_reg, w);
	case PB_BPF_FETCH: case PB_BPF_XCHANGE:
		return back_load(i, i->src_reg, i->dst_reg, w);
	case PB_BPF_COMPARE:
		return back_load(i, 0, i->dst_reg, w);
	case PB_BPF_ST: case PB_BPF_STX: case PB_BPF_ATOMIC:
		return back_store(i, o, w);
	case PB_BPF_CALL_HELPER:
		return back_call(env, i, w);
	case PB_BPF_CALL_PC: case PB_BPF_RETURN:
		return GAVE_UP;
	case PB_BPF_IF_X:
		if (w->regs & (dst | src))
			w->regs |= dst | src;
		return 0;
	case PB_BPF_LD64:
		w->regs &= ~dst;
		return 0;
	case PB_BPF_LD_ABS: case PB_BPF_LD_IND:
		return w->regs & dst ? GAVE_UP : 0;
	default:
		return 0;
	}
}

static void log_back(struct env *env, uint32_t at, const struct wanted *w)
{
	if (!(env->v->log_level & 2) || !env->v->log || !env->insns[at].code)
		return;
	log(env, "regs=%x stack=%lx before ", w->regs, w->slots);
	log_disasm(env, at);
}

/* Every scalar on the way. */
static void all_precise(struct state *st)
{
	for (st = st->parent; st; st = st->parent)
		for_each_reg(st, f, r)
			if (r->type == SCALAR)
				r->precise = true;
}

void precise_forget(struct state *st)
{
	for_each_reg(st, f, r)
		if (r->type == SCALAR)
			r->precise = false;
}

/* Back to the state's first instruction. 0: what is left in w is its parent's; else
 * nothing is left, or GAVE_UP, or an error. */
#define ALL_FOUND 2
static int walk_state(struct env *env, const struct state *st, uint32_t at, bool *skip, struct wanted *w)
{
	uint32_t jumps = st->nr_jumps;
	int err;

	for (;;) {
		if (!*skip) {
			log_back(env, at, w);
			err = back(env, at, w);
			if (err)
				return err;
		}
		*skip = false;
		if (!w->regs && !w->slots)
			return ALL_FOUND;
		if (at == st->first && (!jumps || (jumps == 1 && st->jumps[0].insn == at)))
			return 0;
		at = jumps && st->jumps[jumps - 1].insn == at ? st->jumps[--jumps].from : at - 1;
		if (at >= env->nr)
			return refuse(env, EFAULT, "BUG backtracking idx %d\n", (int)at);
	}
}

static bool mark(struct reg *r, bool *new)
{
	if (r->type != SCALAR)
		return false;
	*new |= !r->precise;
	r->precise = true;
	return true;
}

/* Marks what is wanted in the frame; what is no scalar there needs no more. */
static int mark_state(struct frame *f, struct wanted *w, bool *new)
{
	*new = false;
	for (int i = 0; i < 11; i++)
		if (w->regs >> i & 1 && !mark(&f->regs[i], new))
			w->regs &= ~(1u << i);
	for (uint32_t i = 0; i < MAX_SLOTS; i++) {
		if (!(w->slots >> i & 1))
			continue;
		/* written through a register that the walk didn't know for a stack pointer */
		if (i >= f->nr_slots)
			return GAVE_UP;
		if (!slot_spilled(&f->slots[i]) || !mark(&f->slots[i].reg, new))
			w->slots &= ~(1ull << i);
	}
	return 0;
}

/* The walk came to the beginning of a function that is looked at alone. */
static int at_entry(struct env *env, struct state *st, struct wanted *w)
{
	bool new;

	if (!st->cur && st->frames[0]->subprog && st->frames[0]->callsite == MAIN && !w->slots &&
	    !(w->regs & ~0x3eu))
		return mark_state(st->frames[0], w, &new);
	return refuse(env, EFAULT, "BUG backtracing func entry subprog %d reg_mask %x stack_mask %lx\n",
		      (int)st->frames[0]->subprog, w->regs, w->slots);
}

static int walk(struct env *env, uint32_t frame, struct wanted w)
{
	struct state *st = env->cur;
	int32_t last = (int32_t)env->insn;
	bool skip = true, new;
	int err;

	for (;;) {
		if (env->v->log_level & 2)
			log(env, "last_idx %d first_idx %d\n", last, (int)st->first);
		if (last < 0)
			return at_entry(env, st, &w);
		err = walk_state(env, st, (uint32_t)last, &skip, &w);
		if (err == GAVE_UP)
			all_precise(st);
		if (err)
			return err < 0 ? err : 0;
		st = st->parent;
		if (!st)
			return 0;
		if (mark_state(st->frames[frame], &w, &new)) {
			all_precise(st);
			return 0;
		}
		if (env->v->log_level & 2) {
			log(env, "parent %s regs=%x stack=%lx marks:", new ? "didn't have" : "already had",
			    w.regs, w.slots);
			log_state(env, st->frames[frame], true);
		}
		if (!new || (!w.regs && !w.slots))
			return 0;
		last = st->last;
	}
}

int precise_in(struct env *env, uint32_t frame, int reg, int slot)
{
	struct frame *f = env->cur->frames[frame];
	struct wanted w = { reg >= 0 ? 1u << reg : 0, slot >= 0 ? 1ull << slot : 0 };

	if (!env->capable)
		return 0;
	if (slot >= 0 && (!slot_spilled(&f->slots[slot]) || f->slots[slot].reg.type != SCALAR))
		return 0;
	if (reg < 0 && slot < 0)
		return 0;
	if (reg >= 0 && f->regs[reg].type != SCALAR)
		return -EFAULT;
	return walk(env, frame, w);
}

int precise_reg(struct env *env, unsigned n)
{
	return precise_in(env, env->cur->cur, (int)n, -1);
}
