/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Turns each verified instruction into resolved instructions (fixup.h). Then sets the distances of
 * jumps and calls. */
#include <errno.h>
#include "base/base.h"
#include "base/mem.h"
#include "bpf/core/host.h"
#include "bpf/helper/helper.h"
#include "bpf/helper/kfunc.h"
#include "bpf/run/fixup.h"

#define AX		PB_BPF_REG_AX
#define NO_TARGET	UINT32_MAX
#define MAX_FOR_ONE	12	/* the largest number of resolved instructions for one verified
				 * instruction */

struct out {
	const struct pb_bpf_verify *v;
	const struct pb_bpf_fact *facts;
	struct bpf_insn *insns;
	uint8_t *ops;
	uint32_t *origin;
	uint32_t *target;	/* for a resolved jump or call: the verified instruction that is its
				 * target */
	uint32_t *place;	/* for a verified instruction: the first of its resolved
				 * instructions */
	uint32_t nr, room, from;	/* nr: number of resolved instructions so far; from: the
					 * verified instruction that is being resolved */
	pb_bpf_fn **calls;
	struct pb_bpf_map **maps;	/* the maps that the program names */
	uint32_t nr_calls, nr_maps;
};

static void emit_op(struct out *o, struct bpf_insn insn, unsigned op)
{
	o->insns[o->nr] = insn;
	o->ops[o->nr] = (uint8_t)op;
	o->origin[o->nr] = o->from;
	o->target[o->nr++] = NO_TARGET;
}

static void emit(struct out *o, struct bpf_insn insn)
{
	emit_op(o, insn, pb_bpf_decode(&insn));
}

#define INSN(code_, dst, src, off_, imm_) \
	((struct bpf_insn){ .code = (code_), .dst_reg = (dst) & 15, \
	.src_reg = (src) & 15, .off = (int16_t)(off_), .imm = (int32_t)(imm_) })
#define ALU64(op, kind, dst, src, imm) emit(o, INSN(BPF_ALU64 | (kind) | (op), dst, src, 0, imm))
#define ALU32(op, kind, dst, src, imm) emit(o, INSN(BPF_ALU | (kind) | (op), dst, src, 0, imm))

static void emit_const(struct out *o, unsigned dst, uint64_t v)
{
	emit(o, INSN(BPF_LD | BPF_IMM | BPF_DW, dst, 0, 0, (uint32_t)v));
	emit_op(o, INSN(0, 0, 0, 0, (uint32_t)(v >> 32)), PB_BPF_OP_NONE);
}

/* ---- calls --------------------------------------------------------------------------------- */

static int32_t call_index(struct out *o, pb_bpf_fn *fn)
{
	for (uint32_t i = 0; i < o->nr_calls; i++)
		if (o->calls[i] == fn)
			return (int32_t)i;
	o->calls[o->nr_calls] = fn;
	return (int32_t)o->nr_calls++;
}

/* Emits a lookup without a call, if the call gets the same array on all paths and the index needs
 * no mask. The emitted code sets r0 to the address of element *r2, or to NULL. False: nothing was
 * emitted. */
static bool inline_lookup(struct out *o, const struct pb_bpf_fact *f)
{
	const struct pb_bpf_map *m = f->map && !f->poisoned ? o->v->maps[f->map - 1] : NULL;

	/* without CAP_PERFMON, the index would need a mask against speculation */
	if (!m || m->attr.type != BPF_MAP_TYPE_ARRAY || !m->elems || m->elem_size > INT32_MAX ||
	    m->attr.max_entries > INT32_MAX ||
	    !(o->v->caps & PB_BPF_CAP_PERFMON))
		return false;
	emit(o, INSN(BPF_LDX | BPF_MEM | BPF_W, 0, 2, 0, 0));
	emit(o, INSN(BPF_JMP | BPF_K | BPF_JGE, 0, 0, 5, m->attr.max_entries));
	emit_const(o, 1, (uint64_t)m->elems);
	/* the JIT fuses a small shift and the addition after it into one instruction */
	if (m->elem_size & (m->elem_size - 1))
		ALU64(BPF_MUL, BPF_K, 0, 0, m->elem_size);
	else
		ALU64(BPF_LSH, BPF_K, 0, 0, __builtin_ctzll(m->elem_size));
	ALU64(BPF_ADD, BPF_X, 0, 1, 0);
	emit(o, INSN(BPF_JMP | BPF_JA, 0, 0, 1, 0));
	ALU64(BPF_MOV, BPF_K, 0, 0, 0);
	return true;
}

/* Without CAP_PERFMON the emitted code masks the index, so that it stays within the map even if the
 * processor mispredicts a branch. */
static void emit_tail_call(struct out *o, const struct bpf_insn *insn, const struct pb_bpf_fact *f)
{
	const struct pb_bpf_map *m = f->map ? o->v->maps[f->map - 1] : NULL;
	uint32_t most = m ? m->attr.max_entries : 0;

	if (most && !(o->v->caps & PB_BPF_CAP_PERFMON)) {
		emit(o, INSN(BPF_JMP | BPF_K | BPF_JGE, 3, 0, 2, most));
		ALU32(BPF_AND, BPF_K, 3, 0, most > 1 ? ~0u >> __builtin_clz(most - 1) : 0);
	}
	emit_op(o, *insn, PB_BPF_OP_TAIL_CALL);
}

static int emit_helper(struct out *o, const struct bpf_insn *insn, const struct pb_bpf_fact *f)
{
	const struct pb_bpf_verify *v = o->v;
	const struct pb_bpf_helper *h = pb_bpf_helper_for(v->type, v->attach_type, v->caps,
							  (uint32_t)insn->imm);

	if (insn->imm == BPF_FUNC_tail_call) {
		emit_tail_call(o, insn, f);
		return 0;
	}
	if (insn->imm == BPF_FUNC_map_lookup_elem && inline_lookup(o, f))
		return 0;
	if (!h || !h->fn) {
		if (o->v->log && o->v->log_level)
			pb_bpf_printf(o->v->log, "func %s#%d can only be called in the kernel\n",
				      h && h->name ? h->name : "unknown", insn->imm);
		return -EINVAL;
	}
	emit(o, INSN(BPF_JMP | BPF_CALL, 0, 0, 0, call_index(o, h->fn)));
	return 0;
}

/* The verifier has checked that the kfunc exists. */
static void emit_kfunc(struct out *o, const struct bpf_insn *insn)
{
	emit(o, INSN(BPF_JMP | BPF_CALL, 0, 0, 0, call_index(o, pb_bpf_kfunc_of(insn->imm)->fn)));
}

static uint32_t stack_of(const struct out *o, uint32_t insn)
{
	const struct pb_bpf_facts *f = o->v->facts;
	size_t n = pb_bisect(i, 0, f->nr_subprogs, f->subprogs[i].start <= insn);

	return f->subprogs[n - 1].stack;
}

static void emit_subprog_call(struct out *o, const struct bpf_insn *insn)
{
	struct bpf_insn call = *insn;

	call.off = (int16_t)stack_of(o, o->from);
	emit(o, call);
	o->target[o->nr - 1] = o->from + 1 + (uint32_t)insn->imm;
}

/* ---- loads and stores ---------------------------------------------------------------------- */

static unsigned size_code(unsigned bytes)
{
	return bytes == 1 ? BPF_B : bytes == 2 ? BPF_H : bytes == 4 ? BPF_W : BPF_DW;
}

static int emit_ctx(struct out *o, const struct bpf_insn *insn, const struct pb_bpf_opinfo *info,
		    bool write)
{
	struct pb_bpf_ctx_access a;
	struct bpf_insn i = *insn;

	if (pb_bpf_ctx_access(o->v->type, o->v->caps, o->v->attach_type, insn->off, info->width,
			      write, &a))
		return -EINVAL;
	/* a load keeps its width, so a sign-extending load extends the value that it would load */
	i.code = (uint8_t)((insn->code & ~0x18) | size_code(a.width));
	i.off = (int16_t)a.at;
	/* If a.below isn't 0, a store of a value >= a.below has no effect. As in the kernel, the
	 * comparison of a constant is signed: a negative constant is stored, cut to a.width
	 * bytes. */
	if (write && a.below && info->form == PB_BPF_ST && insn->imm >= (int64_t)a.below)
		i = INSN(BPF_JMP | BPF_JA, 0, 0, 0, 0);
	else if (write && a.below && info->form != PB_BPF_ST)
		emit(o, INSN(BPF_JMP | BPF_K | BPF_JGE, insn->src_reg, 0, 1, a.below));
	emit(o, i);
	return 0;
}

static unsigned probe_op(const struct pb_bpf_opinfo *info)
{
	if (info->form == PB_BPF_LDSX)
		return info->width == 1 ? PB_BPF_OP_PROBE_SB :
		info->width == 2 ? PB_BPF_OP_PROBE_SH :
		       PB_BPF_OP_PROBE_SW;
	return info->width == 1 ? PB_BPF_OP_PROBE_B : info->width == 2 ? PB_BPF_OP_PROBE_H :
	       info->width == 4 ? PB_BPF_OP_PROBE_W : PB_BPF_OP_PROBE_DW;
}

static int emit_memory(struct out *o, const struct bpf_insn *insn, const struct pb_bpf_opinfo *info,
		       const struct pb_bpf_fact *f)
{
	bool load = info->form == PB_BPF_LDX || info->form == PB_BPF_LDSX;
	int err = 0;

	if (f->access == PB_BPF_ACCESS_CTX)
		err = emit_ctx(o, insn, info, !load);
	else if (f->access == PB_BPF_ACCESS_PROBE && load)
		emit_op(o, *insn, probe_op(info));
	else
		emit(o, *insn);
	if (f->fence)
		emit_op(o, INSN(0, 0, 0, 0, 0), PB_BPF_OP_NOSPEC);
	return err;
}

/* Emits r0 = packet[offset]. If the offset is outside of the packet, the program ends with 0. */
static void emit_packet_load(struct out *o, const struct bpf_insn *insn,
			     const struct pb_bpf_opinfo *info)
{
	if (info->form == PB_BPF_LD_IND) {
		ALU64(BPF_MOV, BPF_X, 2, insn->src_reg, 0);
		if (insn->imm)
			ALU32(BPF_ADD, BPF_K, 2, 0, insn->imm);
	} else {
		ALU64(BPF_MOV, BPF_K, 2, 0, insn->imm);
	}
	ALU64(BPF_MOV, BPF_X, 1, 6, 0);
	ALU64(BPF_MOV, BPF_K, 3, 0, info->width);
	emit(o, INSN(BPF_JMP | BPF_CALL, 0, 0, 0, call_index(o, pb_bpf_ld_abs)));
	emit(o, INSN(BPF_JMP | BPF_K | BPF_JSGE, 0, 0, 2, 0));
	ALU64(BPF_MOV, BPF_K, 0, 0, 0);
	emit(o, INSN(BPF_JMP | BPF_EXIT, 0, 0, 0, 0));
}

static void note_map(struct out *o, struct pb_bpf_map *m)
{
	for (uint32_t i = 0; i < o->nr_maps; i++)
		if (o->maps[i] == m)
			return;
	o->maps[o->nr_maps++] = m;
}

static void emit_load64(struct out *o, const struct bpf_insn *insn, const struct pb_bpf_fact *f)
{
	struct pb_bpf_map *m = f->map ? o->v->maps[f->map - 1] : NULL;
	uint64_t v = (uint64_t)(uint32_t)insn[1].imm << 32 | (uint32_t)insn->imm;

	if (insn->src_reg == BPF_PSEUDO_FUNC) {
		emit(o, *insn);
		o->target[o->nr - 1] = o->from + 1 + (uint32_t)insn->imm;
		emit_op(o, INSN(0, 0, 0, 0, 0), PB_BPF_OP_NONE);
		return;
	}
	if (m)
		note_map(o, m);
	if (m && (insn->src_reg == BPF_PSEUDO_MAP_VALUE ||
		  insn->src_reg == BPF_PSEUDO_MAP_IDX_VALUE))
		v = (uint64_t)m->ops->direct(m, 0) + f->off;
	else if (m)
		v = (uint64_t)m;
	emit_const(o, insn->dst_reg, v);
}

/* ---- arithmetic ---------------------------------------------------------------------------- */

/*
 * The instruction adds a number n to a pointer, or subtracts n. Emits code that sets AX to n if n
 * is in 0 ... limit, and to 0 otherwise. Then emits the instruction, with AX in place of n. The
 * code has no branch that the processor could mispredict. It uses the sign bit of (limit - n) | n,
 * which is set if n is out of range.
 *
 * If f->mask says that n is negative, the code negates n first, and the instruction becomes a
 * subtraction instead of an addition, or the reverse. If n is a known constant, the limit is its
 * absolute value, so the code only sets AX to the limit.
 */
static void emit_masked(struct out *o, const struct bpf_insn *insn, const struct pb_bpf_fact *f)
{
	bool negative = f->mask & PB_BPF_MASK_NEGATIVE, in_src = f->mask & PB_BPF_MASK_SRC;
	bool known = f->mask & PB_BPF_MASK_IMMEDIATE;
	unsigned number = in_src ? insn->src_reg : insn->dst_reg;
	struct bpf_insn i = *insn;

	if (known) {
		ALU32(BPF_MOV, BPF_K, AX, 0, f->limit);
	} else {
		if (negative)
			ALU64(BPF_MUL, BPF_K, number, 0, -1);
		ALU32(BPF_MOV, BPF_K, AX, 0, f->limit);
		ALU64(BPF_SUB, BPF_X, AX, number, 0);
		ALU64(BPF_OR, BPF_X, AX, number, 0);
		ALU64(BPF_NEG, 0, AX, 0, 0);
		ALU64(BPF_ARSH, BPF_K, AX, 0, 63);
		ALU64(BPF_AND, BPF_X, AX, number, 0);
	}
	if (!in_src)
		ALU64(BPF_MOV, BPF_X, insn->dst_reg, insn->src_reg, 0);
	i.src_reg = AX;
	if (negative)
		i.code ^= BPF_ADD ^ BPF_SUB;
	emit(o, i);
	if (in_src && negative && !known)
		ALU64(BPF_MUL, BPF_K, number, 0, -1);
}

/* ---- jumps --------------------------------------------------------------------------------- */

static bool seen(const struct out *o, int64_t i)
{
	return i >= 0 && i < o->v->nr && o->facts[i].seen;
}

static void emit_jump(struct out *o, const struct bpf_insn *insn, const struct pb_bpf_opinfo *info)
{
	int64_t to = (int64_t)o->from + 1 + (info->form == PB_BPF_GOTOL ? insn->imm : insn->off);
	bool conditional = info->form == PB_BPF_IF_K || info->form == PB_BPF_IF_X;

	/* drop a jump that no path takes */
	if (conditional && !seen(o, to))
		return;
	if (conditional && !seen(o, (int64_t)o->from + 1))
		emit(o, INSN(BPF_JMP32 | BPF_JA, 0, 0, 0, 0));
	else if (conditional)
		emit(o, *insn);
	else
		emit(o, INSN(BPF_JMP32 | BPF_JA, 0, 0, 0, 0));
	o->target[o->nr - 1] = (uint32_t)to;
}

/*
 * A frame with may_gotos has a counter in its lowest 8 bytes: the number of iterations that the
 * may_gotos still allow. The emitted code sets the counter. The code is before the subprogram's
 * first instruction, so that a jump to that instruction doesn't set the counter again.
 */
static void emit_counter(struct out *o)
{
	emit(o, INSN(BPF_ST | BPF_MEM | BPF_DW, 10, 0, -(int32_t)stack_of(o, o->from),
		     PB_BPF_MAX_ITERATIONS));
}

static void emit_may_goto(struct out *o, const struct bpf_insn *insn)
{
	int32_t counter = -(int32_t)stack_of(o, o->from);

	emit(o, INSN(BPF_LDX | BPF_MEM | BPF_DW, AX, 10, counter, 0));
	emit(o, INSN(BPF_JMP | BPF_K | BPF_JEQ, AX, 0, 0, 0));
	o->target[o->nr - 1] = o->from + 1 + (uint32_t)(int32_t)insn->off;
	ALU64(BPF_SUB, BPF_K, AX, 0, 1);
	emit(o, INSN(BPF_STX | BPF_MEM | BPF_DW, 10, AX, counter, 0));
}

/* ---- all of it ----------------------------------------------------------------------------- */

static int emit_insn(struct out *o, uint32_t at)
{
	const struct bpf_insn *insn = &o->v->insns[at];
	const struct pb_bpf_opinfo *info = &pb_bpf_ops[pb_bpf_decode(insn)];
	const struct pb_bpf_fact *f = &o->facts[at];

	switch (info->form) {
	case PB_BPF_LD64:
		emit_load64(o, insn, f);
		return 0;
	case PB_BPF_LD_ABS: case PB_BPF_LD_IND:
		emit_packet_load(o, insn, info);
		return 0;
	case PB_BPF_LDX: case PB_BPF_LDSX: case PB_BPF_ST: case PB_BPF_STX:
		return emit_memory(o, insn, info, f);
	case PB_BPF_GOTO: case PB_BPF_GOTOL: case PB_BPF_IF_K: case PB_BPF_IF_X:
		emit_jump(o, insn, info);
		return 0;
	case PB_BPF_MAY_GOTO:
		emit_may_goto(o, insn);
		return 0;
	case PB_BPF_CALL_KFUNC:
		emit_kfunc(o, insn);
		return 0;
	case PB_BPF_CALL_HELPER:
		return emit_helper(o, insn, f);
	case PB_BPF_CALL_PC:
		emit_subprog_call(o, insn);
		return 0;
	case PB_BPF_ALU_X:
		if (f->mask & (PB_BPF_MASK_SRC | PB_BPF_MASK_DST)) {
			emit_masked(o, insn, f);
			return 0;
		}
	}
	emit(o, *insn);
	return 0;
}

/* Returns the subprogram that begins at verified instruction `at`, or NULL. */
static const struct pb_bpf_subprog *subprog_at(const struct pb_bpf_facts *f, uint32_t at)
{
	size_t n = pb_bisect(i, 0, f->nr_subprogs, f->subprogs[i].start < at);

	return n < f->nr_subprogs && f->subprogs[n].start == at ? &f->subprogs[n] : NULL;
}

/* Returns the resolved instruction at which calls enter a subprogram. The subprogram begins at
 * verified instruction `at`. */
static uint32_t entry_of(const struct out *o, uint32_t at)
{
	const struct pb_bpf_subprog *s = subprog_at(o->v->facts, at);

	return o->place[at] - (s && s->counts);
}

static int emit_all(struct out *o)
{
	for (uint32_t i = 0; i < o->v->nr; i++) {
		bool wide = pb_bpf_decode(&o->v->insns[i]) == PB_BPF_OP_LD_IMM64;
		const struct pb_bpf_subprog *sub = subprog_at(o->v->facts, i);
		int err;

		o->from = i;
		if (o->nr + MAX_FOR_ONE + 1 > o->room)
			return -ENOMEM;
		if (sub && sub->counts)
			emit_counter(o);
		o->place[i] = o->nr;
		if (o->facts[i].seen) {
			err = emit_insn(o, i);
			if (err)
				return err;
		} else if (sub) {
			/* No path reaches the subprogram, but the program may take its address. So
			 * the subprogram stays, with code that returns 0. */
			ALU64(BPF_MOV, BPF_K, 0, 0, 0);
			emit(o, INSN(BPF_JMP | BPF_EXIT, 0, 0, 0, 0));
		}
		if (wide)
			o->place[++i] = o->nr;
	}
	o->place[o->v->nr] = o->nr;
	return 0;
}

/* Sets the distance of each jump and call to its target. */
static int aim(struct out *o)
{
	for (uint32_t i = 0; i < o->nr; i++) {
		struct bpf_insn *insn = &o->insns[i];
		bool is_entry;
		int64_t by;

		if (o->target[i] == NO_TARGET)
			continue;
		is_entry = insn->code == (BPF_JMP | BPF_CALL) ||
			   insn->code == (BPF_LD | BPF_IMM | BPF_DW);
		by = (int64_t)(is_entry ? entry_of(o, o->target[i]) : o->place[o->target[i]]) - i -
		     1;
		if (insn->code == (BPF_JMP32 | BPF_JA) && by == (int16_t)by) {
			*insn = INSN(BPF_JMP | BPF_JA, 0, 0, by, 0);
			o->ops[i] = PB_BPF_OP_JA;
		} else if (insn->code == (BPF_JMP32 | BPF_JA) || is_entry) {
			insn->imm = (int32_t)by;
		} else if (by == (int16_t)by) {
			insn->off = (int16_t)by;
		} else {
			if (o->v->log && o->v->log_level)
				pb_bpf_printf(o->v->log,
					      "insn %d cannot be patched due to 16-bit range\n",
					      (int)o->origin[i]);
			return -ERANGE;
		}
	}
	return 0;
}

static struct pb_bpf_sub *subs_of(const struct out *o, struct pb_bpf_sub *subs)
{
	const struct pb_bpf_facts *f = o->v->facts;

	for (uint32_t i = 0; i < f->nr_subprogs; i++)
		subs[i] = (struct pb_bpf_sub){ .start = entry_of(o, f->subprogs[i].start),
					       .stack = (uint16_t)f->subprogs[i].stack };
	/* if a subprogram's address is taken, the subprogram is a callback */
	for (uint32_t i = 0; i < o->nr; i++)
		if (o->insns[i].code == (BPF_LD | BPF_IMM | BPF_DW) &&
		    o->insns[i].src_reg == BPF_PSEUDO_FUNC)
			for (uint32_t n = 0; n < f->nr_subprogs; n++)
				subs[n].callback |= f->subprogs[n].start == o->target[i];
	return subs;
}

/* ---- helpers that need the host ------------------------------------------------------------ */

const char *pb_bpf_host_lacks(const struct pb_bpf_host *host, pb_bpf_fn *const *calls, uint32_t nr)
{
	const struct { bool has; uint32_t helper; } needs[] = {
		{ host->cgroup, BPF_FUNC_get_current_cgroup_id },
		{ host->cgroup, BPF_FUNC_get_current_ancestor_cgroup_id },
		{ host->cgroup, BPF_FUNC_current_task_under_cgroup },
		{ host->event_read, BPF_FUNC_perf_event_read },
		{ host->event_read, BPF_FUNC_perf_event_read_value },
	};

	for (uint32_t i = 0; i < nr; i++)
		for (size_t k = 0; k < pb_array_size(needs); k++)
			if (!needs[k].has && pb_bpf_helper_of(needs[k].helper)->fn == calls[i])
				return pb_bpf_helper_of(needs[k].helper)->name;
	return NULL;
}

/* ---- memory -------------------------------------------------------------------------------- */

static void *block(struct pb_bpf_resolved *r, int n, size_t size)
{
	r->blocks[n].p = r->mem->alloc(r->mem, size);
	r->blocks[n].size = size;
	return r->blocks[n].p;
}

void pb_bpf_resolved_free(struct pb_bpf_resolved *r)
{
	for (size_t i = 0; i < pb_array_size(r->blocks); i++) {
		if (r->blocks[i].p)
			r->mem->free(r->mem, r->blocks[i].p, r->blocks[i].size);
		r->blocks[i].p = NULL;
	}
}

/* Returns the largest number of instructions that the resolved program may have. */
static uint32_t room_for(const struct pb_bpf_verify *v)
{
	uint32_t room = MAX_FOR_ONE + 1 + v->facts->nr_subprogs;

	for (uint32_t i = 0; i < v->nr; i++) {
		const struct pb_bpf_fact *f = &v->facts->insns[i];
		unsigned form = pb_bpf_ops[pb_bpf_decode(&v->insns[i])].form;
		bool grows = f->mask || f->fence || f->access == PB_BPF_ACCESS_CTX ||
			     form == PB_BPF_LD_ABS || form == PB_BPF_LD_IND ||
			     form == PB_BPF_CALL_HELPER || form == PB_BPF_MAY_GOTO;

		room += grows ? MAX_FOR_ONE : 2;
	}
	return room;
}

int pb_bpf_resolve(const struct pb_bpf_verify *v, struct pb_bpf_resolved *r)
{
	uint32_t room = room_for(v), subs = v->facts->nr_subprogs;
	struct out o = { .v = v, .facts = v->facts->insns, .room = room };
	struct pb_bpf_sub *sub;
	int err;

	*r = (struct pb_bpf_resolved){ .mem = v->mem };
	o.insns = block(r, 0, room * sizeof *o.insns);
	o.ops = block(r, 1, room);
	o.origin = block(r, 2, room * sizeof *o.origin);
	o.target = block(r, 3, (room + v->nr + 1) * sizeof *o.target);
	o.calls = block(r, 4, (room + 1) * sizeof *o.calls);
	sub = block(r, 5, subs * sizeof *sub);
	o.maps = block(r, 6, (v->nr_maps + 1) * sizeof *o.maps);
	err = o.insns && o.ops && o.origin && o.target && o.calls && sub && o.maps ? 0 : -ENOMEM;
	o.place = o.target ? o.target + room : NULL;
	if (!err)
		err = emit_all(&o);
	if (!err)
		err = aim(&o);
	if (err) {
		pb_bpf_resolved_free(r);
		return err;
	}
	r->origin = o.origin;
	r->spec = (struct pb_bpf_prog_spec){
		.nr = o.nr, .nr_subs = subs, .nr_calls = o.nr_calls, .nr_maps = o.nr_maps,
		.insns = o.insns, .ops = o.ops, .subs = subs_of(&o, sub), .calls = o.calls,
		.maps = o.maps, .type = v->type, .stack = v->facts->stack,
		.deepest = v->facts->deepest, .nested = v->facts->nested,
		.ctx_needed = v->facts->ctx_needed, .privileged = v->caps & PB_BPF_CAP_BPF,
		.perfmon = v->caps & PB_BPF_CAP_PERFMON,
	};
	return 0;
}
