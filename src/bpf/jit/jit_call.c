/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Frames and calls in native code. A subprogram becomes a function with this frame:
 *
 *	return address
 *	rbp of the caller      <- rbp, which is eBPF's r10: frames form a chain
 *	the program's stack
 *	saved values of the registers that the function changes
 *
 * If the program contains a call, the main program also saves the caller's r12, and sets r12 to the
 * run. If the program takes a subprogram's address, the subprogram has a second entry, for calls
 * from C. The code at the second entry also saves r12 and sets it to the run. C code passes the run
 * to the main program in rsi, and to a second entry in r9.
 */
#include "bpf/jit/jit_priv.h"

static const struct { uint8_t bit, reg; } kept[] = {
	{ SAVE_RUN, R12 }, { SAVE_R6, RBX }, { SAVE_R7, R13 }, { SAVE_R8, R14 }, { SAVE_R9, R15 },
};

static bool is_call(uint8_t op)
{
	return op == PB_BPF_OP_CALL || op == PB_BPF_OP_CALL_PC || op == PB_BPF_OP_TAIL_CALL;
}

/* If an instruction changes one of r6 ... r9, returns this register's number. Otherwise returns any
 * other number. */
static unsigned changed(const struct bpf_insn *i, uint8_t op)
{
	if (op >= PB_BPF_NR_OPS)
		return op == PB_BPF_OP_TAIL_CALL || op == PB_BPF_OP_NOSPEC ? 0 : i->dst_reg;
	switch (pb_bpf_ops[op].form) {
	case PB_BPF_ALU_K: case PB_BPF_ALU_X: case PB_BPF_NEG: case PB_BPF_MOVSX: case PB_BPF_END:
	case PB_BPF_LD64: case PB_BPF_LDX: case PB_BPF_LDSX:
		return i->dst_reg;
	case PB_BPF_FETCH: case PB_BPF_XCHANGE:
		return i->src_reg;
	default:
		return 0;
	}
}

void pb_jit_find_saved(struct pb_jit *j)
{
	const struct pb_bpf_prog *p = j->prog;
	uint32_t sub = 0;

	for (uint32_t i = 0; i < p->nr; i++) {
		unsigned reg = changed(&p->insns[i], p->ops[i]);

		if (sub + 1 < p->nr_subs && p->subs[sub + 1].start == i)
			sub++;
		if (reg >= 6 && reg <= 9)
			j->subs[sub].saved |= (uint8_t)(SAVE_R6 << (reg - 6));
		if (is_call(p->ops[i]))
			j->subs[0].saved |= SAVE_RUN;
		j->tail_calls |= p->ops[i] == PB_BPF_OP_TAIL_CALL;
	}
}

static int count(unsigned bits)
{
	int n = 0;

	for (; bits; bits &= bits - 1)
		n++;
	return n;
}

/* Returns the number of bytes between rbp and the saved registers. These bytes hold the
 * subprogram's stack, padded so that rsp becomes a multiple of 16. */
static int32_t room(const struct pb_jit *j)
{
	int32_t stack = (int32_t)pb_align_up((uint32_t)j->prog->subs[j->sub].stack, 8u);

	return stack + (stack / 8 + count(j->subs[j->sub].saved)) % 2 * 8;
}

/* Records that a function begins here, and that the previous function ends here. */
static struct pb_bpf_jit_frame *note_frame(struct pb_jit *j)
{
	struct pb_bpf_jit *job = j->job;
	struct pb_bpf_jit_frame *f;

	if (!j->out || !job->frames || job->nr_frames == 2 * j->prog->nr_subs)
		return &j->nowhere;
	if (job->nr_frames)
		job->frames[job->nr_frames - 1].end = j->at;
	f = &job->frames[job->nr_frames++];
	*f = (struct pb_bpf_jit_frame){ .entry = j->at };
	return f;
}

static void callback_entry(struct pb_jit *j)
{
	struct pb_bpf_jit_frame *f = note_frame(j);

	pb_jit_place(j, &j->subs[j->sub].callback);
	pb_jit_push(j, RBP);
	pb_jit_mov(j, true, RBP, RSP);
	pb_jit_push(j, R12);
	f->body = j->at;
	f->saved = SAVE_RUN;
	pb_jit_group1(j, true, 5, RSP, 8);
	pb_jit_mov(j, true, R12, R9);
	pb_jit_bytes(j, 0xe8, 1);
	pb_jit_bytes(j, j->subs[j->sub].entry - (j->at + 4), 4);
	pb_jit_rm(j, true, 0x8b, R12, RBP, -8, false);
	pb_jit_bytes(j, 0xc3c9, 2);			/* leave; ret */
}

void pb_jit_prologue(struct pb_jit *j)
{
	struct pb_jit_sub *s = &j->subs[j->sub];
	struct pb_bpf_jit_frame *f;
	int32_t bytes = room(j);

	if (j->prog->subs[j->sub].callback)
		callback_entry(j);
	f = note_frame(j);
	pb_jit_place(j, &s->entry);
	pb_jit_push(j, RBP);
	pb_jit_mov(j, true, RBP, RSP);
	if (bytes)
		pb_jit_group1(j, true, 5, RSP, bytes);
	for (size_t k = 0; k < pb_array_size(kept); k++)
		if (s->saved & kept[k].bit)
			pb_jit_push(j, kept[k].reg);
	f->body = j->at;
	f->saved = s->saved;
	f->room = (uint16_t)bytes;
	if (s->saved & SAVE_RUN)
		pb_jit_mov(j, true, R12, RSI);
}

/* Leaves the frame. After that, rsp points to the return address. */
static void leave(struct pb_jit *j)
{
	for (size_t k = pb_array_size(kept); k--;)
		if (j->subs[j->sub].saved & kept[k].bit)
			pb_jit_pop(j, kept[k].reg);
	pb_jit_bytes(j, room(j) ? 0xc9 : 0x5d, 1);	/* leave, or pop %rbp */
}

void pb_jit_epilogue(struct pb_jit *j)
{
	leave(j);
	pb_jit_bytes(j, 0xc3, 1);
}

static void call_c(struct pb_jit *j, const void *fn)
{
	int64_t rel = (int64_t)((uint64_t)fn - (j->job->base + j->at + 5));

	/* use a relative call if the helper is near. The check has a margin, because the code may
	 * move between passes */
	if (j->job->base && rel > INT32_MIN + (1 << 26) && rel < INT32_MAX - (1 << 26)) {
		pb_jit_bytes(j, 0xe8, 1);
		pb_jit_bytes(j, (uint64_t)rel, 4);
		return;
	}
	pb_jit_mov_imm(j, RAX, (uint64_t)fn);
	pb_jit_bytes(j, 0xd0ff, 2);			/* call *%rax */
}

void pb_jit_call_helper(struct pb_jit *j, pb_bpf_fn *fn)
{
	pb_jit_mov(j, true, R9, R12);
	call_c(j, (const void *)fn);
}

void pb_jit_call_pc(struct pb_jit *j, uint32_t target)
{
	uint32_t s = (uint32_t)pb_bisect(n, 0, j->prog->nr_subs, j->prog->subs[n].start < target);

	pb_jit_bytes(j, 0xe8, 1);
	pb_jit_bytes(j, j->subs[s].entry - (j->at + 4), 4);
	/* set run->prog again, because a tail call in the callee may have changed it */
	if (j->tail_calls) {
		pb_jit_mov_imm(j, R11, (uint64_t)j->prog);
		pb_jit_rm(j, true, 0x89, R11, R12, offsetof(struct pb_bpf_run, prog), false);
	}
}

/* Writes code for a tail call. If there is a target program, the code leaves the frame as on exit,
 * and jumps to the target. The target then runs as if this function's caller had called it. If
 * there is no target, the next instruction follows. */
void pb_jit_tail_call(struct pb_jit *j)
{
	uint32_t stay;

	pb_jit_mov(j, true, RDI, RSI);
	pb_jit_mov(j, false, RSI, RDX);
	pb_jit_mov(j, true, RDX, R12);
	call_c(j, (const void *)pb_bpf_tail_call);
	pb_jit_rr(j, true, 0x85, RAX, RAX);
	stay = pb_jit_skip(j, 0x70 | CC_E);
	pb_jit_rm(j, true, 0x8b, RDI, R12, offsetof(struct pb_bpf_run, ctx), false);
	pb_jit_mov(j, true, RSI, R12);
	leave(j);
	pb_jit_bytes(j, 0xe0ff, 2);			/* jmp *%rax */
	pb_jit_here(j, stay);
}

void pb_jit_func_address(struct pb_jit *j, int reg, uint32_t target)
{
	uint32_t s = (uint32_t)pb_bisect(n, 0, j->prog->nr_subs, j->prog->subs[n].start < target);

	pb_jit_rex(j, true, reg, 0, false);
	pb_jit_bytes(j, 0x8d | (5u | (reg & 7u) << 3) << 8, 2);	/* lea x(%rip), reg */
	pb_jit_bytes(j, j->subs[s].callback - (j->at + 4), 4);
}
