/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The JIT's parts. jit_emit.c writes instructions of the processor. jit_alu.c, jit_mem.c and
 * jit_call.c use jit_emit.c to translate eBPF instructions. jit_fuse.c translates several eBPF
 * instructions into one instruction of the processor. jit_x86_64.c lays out the code.
 *
 * Registers are assigned as in the kernel, so that a helper's arguments are already in the
 * registers where C code expects them:
 *
 *   r0 rax   r1 rdi   r2 rsi   r3 rdx   r4 rcx   r5 r8   r6 rbx   r7 r13   r8 r14
 *   r9 r15   r10 rbp   AX r10
 *
 * The processor's r12 holds the run. The processor's r9 and r11 are scratch, and so are the 128
 * bytes below rsp (the ABI's red zone). If an operand is a blinded constant, the code computes it
 * in r11.
 */
#ifndef PB_BPF_JIT_JIT_PRIV_H
#define PB_BPF_JIT_JIT_PRIV_H
#include "base/base.h"
#include "bpf/jit/jit.h"

enum { RAX, RCX, RDX, RBX, RSP, RBP, RSI, RDI, R8, R9, R10, R11, R12, R13, R14, R15 };
enum { CC_B = 2, CC_AE, CC_E, CC_NE, CC_BE, CC_A, CC_S, CC_L = 12, CC_GE, CC_LE, CC_G };

extern const uint8_t pb_jit_regs[12];
#define REG(n) ((int)pb_jit_regs[n])

/* The native function of a subprogram. */
struct pb_jit_sub {
	uint32_t entry;		/* latest known offset of the entry for calls from native code */
	uint32_t callback;	/* offset of the entry for calls from C */
	uint8_t saved;		/* registers that the function changes and therefore saves: SAVE_
				 * bits */
};
enum { SAVE_R6 = 1, SAVE_R7 = 2, SAVE_R8 = 4, SAVE_R9 = 8, SAVE_RUN = 16 };

struct pb_jit {
	struct pb_bpf_jit *job;
	const struct pb_bpf_prog *prog;
	uint8_t *out;		/* NULL: only lengths are computed */
	uint32_t size, at;	/* size: bytes of `out`; at: offset of the next byte */
	uint32_t *addr;		/* offset of each instruction's code, from this pass or the previous
				 * one */
	uint32_t i;		/* index of the current instruction */
	uint32_t sub;		/* index of the current instruction's subprogram */
	uint32_t faults;	/* number of loads so far that may fault */
	uint32_t hidden;	/* number of constants of the current instruction that were blinded
				 * so far */
	uint8_t zero_flag;	/* the eBPF register that the processor's zero flag describes, or
				 * PB_JIT_NO_FLAG */
#define PB_JIT_NO_FLAG	255
	bool zero_wide;		/* the zero flag describes all 64 bits */
	bool tail_calls;	/* the program has tail calls */
	bool settled;		/* a jump in the long form keeps this form, even if its target gets
				 * near (jit_x86_64.c) */
	bool moved;		/* some address differs from that of the previous pass */
	struct pb_bpf_jit_frame nowhere;	/* receives each frame if the caller passes no `out`
						 * or no `frames` */
	struct pb_jit_sub subs[PB_BPF_MAX_SUBPROGS];
};

/* ---- jit_emit.c: the processor's instructions ----------------------------- */

/* Writes the n low bytes of v, the lowest first. */
void pb_jit_bytes(struct pb_jit *j, uint64_t v, int n);
void pb_jit_rex(struct pb_jit *j, bool wide, int reg, int rm, bool always);
void pb_jit_modrm(struct pb_jit *j, int reg, int rm);
/* op reg, rm. An op of two bytes is passed as 0x0fXX */
void pb_jit_rr(struct pb_jit *j, bool wide, unsigned op, int reg, int rm);
/* op reg, off(base). If byte_reg is set, reg is an 8-bit register */
void pb_jit_rm(struct pb_jit *j, bool wide, unsigned op, int reg, int base, int32_t off,
	       bool byte_reg);
void pb_jit_mov(struct pb_jit *j, bool wide, int to, int from);
void pb_jit_mov_imm(struct pb_jit *j, int to, uint64_t v);
/* op /ext imm, reg. ext: 0 add, 1 or, 4 and, 5 sub, 6 xor, 7 cmp */
void pb_jit_group1(struct pb_jit *j, bool wide, int ext, int reg, int32_t imm);
/* op /ext reg. ext: 0 test (the caller writes the immediate operand), 2 not, 3 neg, 4 mul, 6 div,
 * 7 idiv */
void pb_jit_group3(struct pb_jit *j, bool wide, int ext, int reg);
void pb_jit_push(struct pb_jit *j, int reg);
void pb_jit_pop(struct pb_jit *j, int reg);
/* Writes a short forward jump (opcode 0x70 | cc, or 0xeb). pb_jit_here() sets the jump's target.
 * The result is the argument `from` of pb_jit_here(). */
uint32_t pb_jit_skip(struct pb_jit *j, unsigned op);
void pb_jit_here(struct pb_jit *j, uint32_t from);
/* Writes the jump of the current eBPF instruction, to an offset in the code. cc: the condition, a
 * CC_ constant; -1: the jump is unconditional. */
void pb_jit_jump(struct pb_jit *j, int cc, uint32_t to);
/* Writes a jump in the long form. The jump need not belong to an eBPF jump instruction. */
void pb_jit_jump_far(struct pb_jit *j, int cc, uint32_t to);
/* Sets *place to the current offset. Notes whether this offset differs from that of the previous
 * pass. */
void pb_jit_place(struct pb_jit *j, uint32_t *place);
/* reg = v. The value is blinded: the code computes v from two other constants, and doesn't contain
 * v itself. Changes the flags. */
void pb_jit_hide_imm(struct pb_jit *j, bool wide, int reg, uint64_t v);

/* ---- jit_fuse.c: several instructions as one --------------------------------- */

/* Bits of an instruction's note. TARGET: a jump leads to the instruction. FAR: the instruction is a
 * jump, and has the long form. */
enum { PB_JIT_TARGET = 1, PB_JIT_FAR = 2 };
void pb_jit_find_targets(struct pb_jit *j);
/* Writes this instruction and the next one or two as one instruction, if possible. Returns the
 * number of eBPF instructions that were written, or 0. */
unsigned pb_jit_fused(struct pb_jit *j, const struct bpf_insn *i, uint8_t op);
/* Called after an instruction was translated. Notes which register the zero flag describes. */
void pb_jit_note_flags(struct pb_jit *j, const struct bpf_insn *i, uint8_t op);
/* Returns whether the previous instruction has set the flags as this comparison with a constant
 * would set them. */
bool pb_jit_flags_are_of(const struct pb_jit *j, const struct bpf_insn *i, bool wide);

/* ---- eBPF instructions, by kind ---------------------------------------------- */

void pb_jit_alu(struct pb_jit *j, const struct bpf_insn *i, bool wide, bool by_reg);
void pb_jit_movsx(struct pb_jit *j, const struct bpf_insn *i, bool wide, unsigned width);
void pb_jit_swap(struct pb_jit *j, int reg, unsigned width, bool swap);
void pb_jit_load64(struct pb_jit *j, const struct bpf_insn *i);
void pb_jit_load(struct pb_jit *j, const struct bpf_insn *i, unsigned width, bool sx);
void pb_jit_probe(struct pb_jit *j, const struct bpf_insn *i, unsigned width, bool sx);
void pb_jit_store(struct pb_jit *j, const struct bpf_insn *i, unsigned width, bool imm);
void pb_jit_atomic(struct pb_jit *j, const struct bpf_insn *i, enum pb_bpf_op op);
/* Called after the last instruction. Writes the code at which the thread continues after a load has
 * faulted. */
void pb_jit_fixups(struct pb_jit *j);
void pb_jit_find_saved(struct pb_jit *j);
void pb_jit_prologue(struct pb_jit *j);
void pb_jit_epilogue(struct pb_jit *j);
void pb_jit_call_helper(struct pb_jit *j, pb_bpf_fn *fn);
void pb_jit_call_pc(struct pb_jit *j, uint32_t target);
void pb_jit_tail_call(struct pb_jit *j);
void pb_jit_func_address(struct pb_jit *j, int reg, uint32_t target);
#endif
