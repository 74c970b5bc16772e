/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Precision: finds the scalars whose exact values matter. Pruning treats any two scalars as alike
 * (alike.c), unless the program's safety depends on the value. For example, the safety depends on a
 * scalar that is used as a length or an offset, and on a scalar that decides a branch of which only
 * one side was followed. When the verifier finds such a use, it walks the path backwards,
 * instruction by instruction. It marks the scalars from which the value was computed.
 *
 * The set `wanted` holds registers and stack slots of each frame. When the walk crosses an
 * instruction that computes a wanted register, the instruction's inputs become wanted in place of
 * the register:
 *
 *   r1 = 5             r1 is a constant: no longer wanted
 *   r1 = r2            r2 is wanted
 *   r1 += r2           r1 and r2 are wanted
 *   r1 = *(fp - 8)     slot -8 is wanted, if it held a spilled scalar (the path has recorded this)
 *   *(fp - 8) = r1     r1 is wanted, if slot -8 was wanted
 *   if r1 < r2         if one of them was wanted, both are: each bounds the other
 *   exit               the walk enters the callee's frame; r0 may be wanted there
 *   call               the walk leaves the callee's frame; r1-r5 may be wanted in the caller
 *
 * Linked scalars (copies) learn bounds together: if one of them is wanted, all are wanted.
 *
 * At each kept state on the path, the wanted registers and slots are marked as precise. From then
 * on, a path that comes to this point with other values isn't pruned. The walk ends when nothing is
 * wanted any more. It also ends at a kept state in which everything wanted was marked before,
 * because the walk that made those marks also marked the earlier states of the path. The current
 * state gets no marks: it isn't kept, so no path is compared with it.
 *
 * If an instruction can't be followed backwards (GAVE_UP), all scalars of all earlier states of the
 * path are marked. These marks are always safe: they only prevent some pruning.
 *
 * Bound: kept states divide the path into stretches. A stretch has at most about LONG_PATH
 * instructions (prune.c). A walk begins in the last stretch. It goes on to the stretch before a
 * kept state only if it makes a new mark in that state. So the cost of all walks is at most
 * LONG_PATH instructions for each walk, plus LONG_PATH for each mark.
 */
#include "bpf/verifier/env.h"
#include "bpf/verifier/helper_call.h"
#include "bpf/verifier/kept.h"
#include "bpf/verifier/log.h"
#include "bpf/verifier/precise.h"
#include "bpf/verifier/state.h"

#define GAVE_UP 1
#define ARGS	0x3eu

static bool slot_of(int off, uint32_t *slot)
{
	*slot = (uint32_t)((-off - 1) / SLOT);
	return off < 0 && *slot < MAX_SLOTS;
}

static bool any_wanted(const struct wanted *w)
{
	for (uint32_t f = 0; f <= w->frame; f++)
		if (w->regs[f] || w->slots[f])
			return true;
	return false;
}

/* ---- one instruction ------------------------------------------------------------------- */

/* Returns the register's bit in a set of wanted registers. r10 is never wanted, since it is not a
 * scalar. */
static uint32_t bit_of(unsigned reg)
{
	return reg == FP ? 0 : 1u << reg;
}

static int back_alu(const struct bpf_insn *i, const struct pb_bpf_opinfo *o, uint32_t *regs)
{
	uint32_t dst = bit_of(i->dst_reg), src = bit_of(i->src_reg);

	if (!(*regs & dst))
		return 0;
	switch (o->form) {
	case PB_BPF_ALU_K:
		if (BPF_OP(i->code) == BPF_MOV)
			*regs &= ~dst;
		break;
	case PB_BPF_ALU_X: case PB_BPF_MOVSX:
		if (BPF_OP(i->code) == BPF_MOV)
			*regs &= ~dst;
		*regs |= src;
		break;
	}
	return 0;
}

/* A load ends the search for the register that it sets. If the load restores a spilled scalar, the
 * slot becomes wanted. */
static int back_load(unsigned value, const struct step *step, struct wanted *w)
{
	uint32_t *regs = &w->regs[w->frame];

	if (!(*regs >> value & 1))
		return 0;
	*regs &= ~(1u << value);
	if (!step || !step->stack)
		return 0;
	if (step->frame > w->frame)
		return GAVE_UP;
	w->slots[step->frame] |= 1ull << step->slot;
	return 0;
}

static int back_store(const struct bpf_insn *i, const struct pb_bpf_opinfo *o,
		      const struct step *step, struct wanted *w)
{
	uint32_t *regs = &w->regs[w->frame], frame = w->frame, slot;

	/* The store's base register is wanted, but holds a pointer here. So the wanted scalar was
	 * computed later, by a subtraction of pointers. The walk can't follow such a
	 * subtraction. */
	if (*regs >> i->dst_reg & 1)
		return GAVE_UP;
	if (i->dst_reg == FP) {
		if (!slot_of(i->off, &slot))
			return GAVE_UP;
	} else if (step && step->stack) {
		frame = step->frame;
		slot = step->slot;
	} else {
		return 0;
	}
	if (frame > w->frame)
		return GAVE_UP;
	if (!(w->slots[frame] >> slot & 1))
		return 0;
	w->slots[frame] &= ~(1ull << slot);
	if (o->form != PB_BPF_ST)
		*regs |= 1u << i->src_reg;
	return 0;
}

/* Steps back from a subprogram's first instruction to the call. If `pass` is set, the callee's
 * wanted arguments become wanted in the caller, in the same registers. */
static int back_out(struct wanted *w, bool pass)
{
	uint32_t args = w->regs[w->frame];

	if (!w->frame || args & ~ARGS || w->slots[w->frame])
		return GAVE_UP;
	w->regs[w->frame--] = 0;
	if (pass)
		w->regs[w->frame] |= args;
	return 0;
}

/* Steps back from the instruction after a call to the end of the callee. If `pass` is set and the
 * caller's r0 is wanted, the callee's r0 becomes wanted. */
static int back_in(struct wanted *w, bool pass)
{
	uint32_t *regs = &w->regs[w->frame], r0 = *regs & 1;

	if (w->frame + 1 >= PB_BPF_MAX_FRAMES)
		return GAVE_UP;
	*regs &= ~1u;
	w->frame++;
	w->regs[w->frame] = pass ? r0 : 0;
	w->slots[w->frame] = 0;
	return 0;
}

static int back_helper(const struct bpf_insn *i, uint32_t at, uint32_t next, struct wanted *w)
{
	uint32_t *regs = &w->regs[w->frame];

	if (next != at + 1) {
		if (pbv_helper_calls_back(i->imm))
			return back_out(w, false);
		/* bpf_tail_call() in a subprogram: the other program replaced the subprogram, and
		 * returned to the subprogram's caller, at `next` */
		return *regs & ARGS ? GAVE_UP : back_in(w, false);
	}
	*regs &= ~1u;
	return *regs & ARGS ? GAVE_UP : 0;
}

static int back_call(const struct env *env, const struct bpf_insn *i, uint32_t at, uint32_t next,
		     struct wanted *w)
{
	if (next == at + 1 + (uint32_t)i->imm && w->frame)
		return back_out(w, true);
	if (next != at + 1)
		return GAVE_UP;
	/* a global function, which the path doesn't enter */
	w->regs[w->frame] &= ~1u;
	return w->regs[w->frame] & ARGS ? GAVE_UP : 0;
}

static int back_return(const struct env *env, uint32_t next, struct wanted *w)
{
	uint32_t *regs = &w->regs[w->frame];
	bool callback = env->ops[next] == PB_BPF_OP_CALL &&
			pbv_helper_calls_back(env->insns[next].imm);
	bool call = next && env->ops[next - 1] == PB_BPF_OP_CALL_PC;

	/* A callback returns to the call of its helper. So `next` is this call, and r1-r5 are the
	 * call's arguments. This walk needn't follow the arguments, because another walk did so
	 * when the helper was called. */
	if (callback)
		*regs &= ~ARGS;
	return *regs & ARGS ? GAVE_UP : back_in(w, call);
}

static int back_packet(uint32_t at, uint32_t next, struct wanted *w)
{
	uint32_t *regs = &w->regs[w->frame];

	*regs &= ~1u;
	if (*regs & ARGS)
		return GAVE_UP;
	/* a load from outside of the packet ends the subprogram */
	return next == at + 1 ? 0 : back_in(w, false);
}

/* If one of the step's linked scalars is wanted, all of them are. */
static void want_copies(const struct step *step, struct wanted *w)
{
	bool any = false;

	for (int pass = 0; pass < 2 && step; pass++)
		for (unsigned n = 0; n < step->nr_linked; n++) {
			uint32_t frame = step->linked[n] >> 8, what = step->linked[n] & 0x7f;
			bool slot = step->linked[n] & 0x80;

			if (frame > w->frame)
				continue;
			if (!pass)
				any |= (slot ? w->slots[frame] : w->regs[frame]) >> what & 1;
			else if (any && slot)
				w->slots[frame] |= 1ull << what;
			else if (any)
				w->regs[frame] |= 1u << what;
		}
}

/* Steps back over one instruction. *w is the wanted set after the instruction, and becomes the
 * wanted set before it. `next` is the instruction that followed on this path. */
static int back_one(struct env *env, uint32_t at, uint32_t next, const struct step *step,
		    struct wanted *w)
{
	const struct bpf_insn *i = &env->insns[at];
	const struct pb_bpf_opinfo *o = &pb_bpf_ops[env->ops[at]];
	uint32_t dst = bit_of(i->dst_reg), src = bit_of(i->src_reg), *regs = &w->regs[w->frame];

	switch (o->form) {
	case PB_BPF_ALU_K: case PB_BPF_ALU_X: case PB_BPF_MOVSX: case PB_BPF_NEG: case PB_BPF_END:
		return back_alu(i, o, regs);
	case PB_BPF_LDX: case PB_BPF_LDSX:
		return back_load(i->dst_reg, step, w);
	case PB_BPF_FETCH: case PB_BPF_XCHANGE:
		return back_load(i->src_reg, step, w);
	case PB_BPF_COMPARE:
		return back_load(0, step, w);
	case PB_BPF_ST: case PB_BPF_STX: case PB_BPF_ATOMIC:
		return back_store(i, o, step, w);
	case PB_BPF_CALL_HELPER:
		return back_helper(i, at, next, w);
	case PB_BPF_CALL_KFUNC:
		*regs &= ~1u;
		return *regs & ARGS ? GAVE_UP : 0;
	case PB_BPF_CALL_PC:
		return back_call(env, i, at, next, w);
	case PB_BPF_RETURN:
		return back_return(env, next, w);
	case PB_BPF_IF_X:
		if (*regs & (dst | src))
			*regs |= (step &&
				  step->dst_stack ? 0 : dst) | (step && step->src_stack ? 0 : src);
		return 0;
	case PB_BPF_LD64:
		*regs &= ~dst;
		return 0;
	case PB_BPF_LD_ABS: case PB_BPF_LD_IND:
		return back_packet(at, next, w);
	default:
		return 0;
	}
}

static int back(struct env *env, uint32_t at, uint32_t next, const struct step *step,
		struct wanted *w)
{
	int err;

	want_copies(step, w);
	err = back_one(env, at, next, step, w);
	if (!err)
		want_copies(step, w);
	return err;
}

/* ---- the log: frame0: regs=r1,r2 stack=-8,-16 -------------------------------------------- */

static void log_wanted(struct env *env, const char *what, uint32_t frame, const struct wanted *w)
{
	const char *comma = "";

	log(env, "mark_precise: frame%d: %sregs=", (int)frame, what);
	for (uint32_t left = w->regs[frame]; left; left &= left - 1, comma = ",")
		log(env, "%sr%d", comma, __builtin_ctz(left));
	log(env, " stack=");
	comma = "";
	for (uint64_t left = w->slots[frame]; left; left &= left - 1, comma = ",")
		log(env, "%s%d", comma, -(__builtin_ctzll(left) + 1) * SLOT);
}

static void log_back(struct env *env, uint32_t at, const struct wanted *w)
{
	if (!(env->v->log_level & 2) || !env->v->log || !env->insns[at].code)
		return;
	log_wanted(env, "", w->frame, w);
	log(env, " before ");
	pbv_log_disasm(env, at);
}

static void log_marks(struct env *env, const struct state *st, const struct wanted *w)
{
	struct state seen = { 0 };
	bool known = false;

	if (!(env->v->log_level & 2))
		return;
	/* a state that is never compared again may have lost its values, so that the log can't show
	 * them */
	known = st->frames[0] && !pbv_state_wake(env, &seen, st);
	for (int n = (int)w->frame; n >= 0; n--) {
		log_wanted(env, "parent state ", (uint32_t)n, w);
		log(env, ": ");
		if (known)
			pbv_log_state(env, seen.frames[n], true);
		else
			log(env, "\n");
	}
	pbv_state_clear(env, &seen);
}

/* ---- states ------------------------------------------------------------------------------- */

bool pbv_precise_all(struct state *st)
{
	bool new = false;

	for (st = st->parent; st && !st->all_precise; st = st->parent) {
		for (uint32_t n = 0; n <= st->cur; n++) {
			st->marks[n].precise |= st->marks[n].scalar;
			st->marks[n].precise_slots |= st->marks[n].scalar_slots;
		}
		st->all_precise = new = true;
	}
	return new;
}

void pbv_precise_forget(struct state *st)
{
	for_each_reg(st, f, r)
		if (r->type == SCALAR)
			r->precise = false;
}

/* Walks back over the path from the parent state to `st`, up to the first instruction of that path.
 * Returns 0 if something is still wanted in the parent state, and ALL_FOUND if nothing is wanted
 * any more. Otherwise returns GAVE_UP or a negative error. */
#define ALL_FOUND 2
static int walk_state(struct env *env, const struct state *st, uint32_t at, uint32_t *next,
		      struct wanted *w)
{
	uint32_t steps = st->nr_steps;
	int err;

	for (;;) {
		const struct step *step = steps && st->steps[steps - 1].insn == at ?
					  &st->steps[steps - 1] : NULL;

		if (*next < env->nr) {
			log_back(env, at, w);
			env->v->stats.walked++;
			err = back(env, at, *next, step, w);
			if (err)
				return err;
		}
		*next = at;
		if (!any_wanted(w))
			return ALL_FOUND;
		if (at == st->first && (!steps || (steps == 1 && step)))
			return 0;
		if (step)
			steps--;
		at = step ? step->from : at - 1;
		if (at >= env->nr)
			return refuse(env, EFAULT, "BUG backtracking idx %d\n", (int)at);
	}
}

/* Marks the wanted registers and slots of the frame as precise. A value that isn't a scalar needs
 * no mark. A value that was marked before is no longer wanted, since an earlier walk went on from
 * its mark. */
static int mark_frame(struct marks *m, uint32_t *regs, uint64_t *slots)
{
	if (m->nr_slots < MAX_SLOTS && *slots >> m->nr_slots)
		return GAVE_UP;
	*regs &= m->scalar & ~(uint32_t)m->precise;
	*slots &= m->scalar_slots & ~m->precise_slots;
	m->precise |= (uint16_t)*regs;
	m->precise_slots |= *slots;
	return 0;
}

static int mark_state(struct state *st, struct wanted *w)
{
	int err = 0;

	if (st->cur != w->frame)
		return GAVE_UP;
	for (uint32_t n = 0; n <= w->frame && !err; n++)
		err = mark_frame(&st->marks[n], &w->regs[n], &w->slots[n]);
	return err;
}

/* The walk has reached the beginning of a function that is verified on its own. */
static int at_entry(struct env *env, struct state *st, struct wanted *w)
{
	if (!st->cur && st->frames[0]->subprog && st->frames[0]->callsite == MAIN && !w->slots[0] &&
	    !(w->regs[0] & ~ARGS))
		return mark_state(st, w);
	return refuse(env, EFAULT,
		      "BUG backtracking func entry subprog %d reg_mask %x stack_mask %lx\n",
		      (int)st->frames[0]->subprog, w->regs[0], w->slots[0]);
}

static int walk(struct env *env, struct wanted *w)
{
	struct state *st = env->cur;
	int32_t last = (int32_t)env->insn;
	uint32_t next = UINT32_MAX;	/* none: the walk doesn't cross the current instruction */
	int err;

	for (;;) {
		if (env->v->log_level & 2)
			log(env, "mark_precise: frame%d: last_idx %d first_idx %d subseq_idx %d \n",
			    (int)w->frame, last, (int)st->first, (int)next);
		if (last < 0)
			return at_entry(env, st, w);
		err = walk_state(env, st, (uint32_t)last, &next, w);
		if (err == GAVE_UP)
			env->marks_made += pbv_precise_all(st);
		if (err)
			return err < 0 ? err : 0;
		st = st->parent;
		if (!st)
			return 0;
		if (mark_state(st, w)) {
			env->marks_made += pbv_precise_all(&(struct state){ .parent = st });
			return 0;
		}
		log_marks(env, st, w);
		env->marks_made += any_wanted(w);
		if (!any_wanted(w))
			return 0;
		last = st->last;
	}
}

int pbv_precise_wanted(struct env *env, struct wanted *w)
{
	w->frame = env->cur->cur;
	return env->capable && any_wanted(w) ? walk(env, w) : 0;
}

int pbv_precise_reg(struct env *env, unsigned n)
{
	struct wanted w = { .frame = env->cur->cur };

	if (env->capable && cur_regs(env)[n].type != SCALAR)
		return -EFAULT;
	w.regs[w.frame] = 1u << n;
	return pbv_precise_wanted(env, &w);
}
