/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A table of the eBPF instructions: those of RFC 9669 (conformance groups base32, base64, divmul32,
 * divmul64, atomic32, atomic64 and packet), and may_goto, which is not in the RFC. Verifier,
 * interpreter, JIT and disassembler all identify instructions by this table.
 *
 * The opcode byte of an instruction determines its operation. If several operations share an opcode
 * byte, the value of another field distinguishes them. enum pb_bpf_op numbers the operations.
 * pb_bpf_decode() finds the operation of an instruction. An instruction without an operation in the
 * table is invalid.
 *
 * Context: any; no state.
 */
#ifndef PB_BPF_CORE_OPCODES_H
#define PB_BPF_CORE_OPCODES_H
#include <linux/bpf.h>
#include <stdbool.h>
#include <stdint.h>

/* constants of instruction set v4 that older headers lack */
#ifndef BPF_MEMSX
#define BPF_MEMSX	0x80
#endif
#ifndef BPF_JCOND
#define BPF_JCOND	0xe0	/* a jump; `src` selects its condition. The only condition is 0
				 * (may_goto) */
#endif

#define PB_BPF_MAX_ITERATIONS	(8 << 20)	/* the most iterations of one iterator of numbers,
						 * or of all may_gotos of one frame together */

/* What an operation does with its fields. dst and src are registers. In a valid instruction, a
 * field that the form's comment doesn't name is 0, with two exceptions. The field that
 * distinguishes operations of the same opcode has the value of the table's row. In an exit, `off`
 * may have any value, because the kernel ignores it. */
enum pb_bpf_form {
	PB_BPF_NO_INSN,
	PB_BPF_ALU_K,		/* dst = dst OP imm; a move doesn't read dst */
	PB_BPF_ALU_X,		/* dst = dst OP src */
	PB_BPF_NEG,		/* dst = -dst */
	PB_BPF_MOVSX,		/* dst = src, sign-extended from `width` bytes */
	PB_BPF_END,		/* brings dst's low `width` bytes into the byte order that the
				 * opcode names; the rest becomes 0 */
	PB_BPF_LD64,		/* dst = imm | next instruction's imm << 32; src is the kind of
				 * value */
	PB_BPF_LD_ABS,		/* r0 = packet[imm], network byte order; r6 is the context */
	PB_BPF_LD_IND,		/* r0 = packet[src + imm] */
	PB_BPF_LDX,		/* dst = *(src + off) */
	PB_BPF_LDSX,		/* like LDX, but sign-extended */
	PB_BPF_ST,		/* *(dst + off) = imm */
	PB_BPF_STX,		/* *(dst + off) = src */
	PB_BPF_ATOMIC,		/* *(dst + off) OP= src */
	PB_BPF_FETCH,		/* like ATOMIC, and src = the old value */
	PB_BPF_XCHANGE,		/* exchanges *(dst + off) and src */
	PB_BPF_COMPARE,		/* if *(dst + off) == r0, *(dst + off) = src; r0 = the old value */
	PB_BPF_GOTO,		/* pc += off */
	PB_BPF_GOTOL,		/* pc += imm */
	PB_BPF_MAY_GOTO,	/* if the frame's may_gotos have already allowed
				 * PB_BPF_MAX_ITERATIONS iterations, pc += off */
	PB_BPF_IF_K,		/* if dst OP imm, pc += off */
	PB_BPF_IF_X,		/* if dst OP src, pc += off */
	PB_BPF_CALL_HELPER,	/* r0 = helper imm (r1 ... r5) */
	PB_BPF_CALL_PC,		/* r0 = subprogram at pc + imm (r1 ... r5) */
	PB_BPF_CALL_KFUNC,	/* r0 = kfunc imm (r1 ... r5); `off`: the number of a BTF, of
				 * which the verifier accepts only 0 */
	PB_BPF_RETURN,		/* exit */
};

/*
 * X(name, form, opcode, value, width, symbol). value: the content of the field that distinguishes
 * operations of the same opcode. This field is `off` for arithmetic, `imm` for byte order and
 * atomics, and `src` for calls and may_goto. The value is 0 if no other operation has the opcode.
 * width: bytes of an operand. For moves with sign extension, and for byte order: bytes of the
 * register that are used. symbol: the operator in bpftool's output.
 */
#define PB_BPF_ALU4(X, name, op, symbol) \
	X(name##64_K, ALU_K, BPF_ALU64 | BPF_K | (op), 0, 8, symbol) \
	X(name##64_X, ALU_X, BPF_ALU64 | BPF_X | (op), 0, 8, symbol) \
	X(name##32_K, ALU_K, BPF_ALU | BPF_K | (op), 0, 4, symbol) \
	X(name##32_X, ALU_X, BPF_ALU | BPF_X | (op), 0, 4, symbol)

#define PB_BPF_SDIV4(X, name, op, symbol) \
	X(name##64_K, ALU_K, BPF_ALU64 | BPF_K | (op), 1, 8, symbol) \
	X(name##64_X, ALU_X, BPF_ALU64 | BPF_X | (op), 1, 8, symbol) \
	X(name##32_K, ALU_K, BPF_ALU | BPF_K | (op), 1, 4, symbol) \
	X(name##32_X, ALU_X, BPF_ALU | BPF_X | (op), 1, 4, symbol)

#define PB_BPF_IF4(X, name, op, symbol) \
	X(name##64_K, IF_K, BPF_JMP | BPF_K | (op), 0, 8, symbol) \
	X(name##64_X, IF_X, BPF_JMP | BPF_X | (op), 0, 8, symbol) \
	X(name##32_K, IF_K, BPF_JMP32 | BPF_K | (op), 0, 4, symbol) \
	X(name##32_X, IF_X, BPF_JMP32 | BPF_X | (op), 0, 4, symbol)

#define PB_BPF_SIZES3(X, name, form, code) \
	X(name##_W, form, (code) | BPF_W, 0, 4, "") \
	X(name##_H, form, (code) | BPF_H, 0, 2, "") \
	X(name##_B, form, (code) | BPF_B, 0, 1, "")
#define PB_BPF_SIZES4(X, name, form, code) \
	PB_BPF_SIZES3(X, name, form, code) \
	X(name##_DW, form, (code) | BPF_DW, 0, 8, "")

#define PB_BPF_END3(X, name, code, symbol) \
	X(name##16, END, code, 16, 2, symbol) \
	X(name##32, END, code, 32, 4, symbol) \
	X(name##64, END, code, 64, 8, symbol)

#define PB_BPF_ATOMIC2(X, name, form, op, symbol) \
	X(name##_W, form, BPF_STX | BPF_ATOMIC | BPF_W, op, 4, symbol) \
	X(name##_DW, form, BPF_STX | BPF_ATOMIC | BPF_DW, op, 8, symbol)

#define PB_BPF_OPS(X) \
	PB_BPF_ALU4(X, ADD, BPF_ADD, "+=") \
	PB_BPF_ALU4(X, SUB, BPF_SUB, "-=") \
	PB_BPF_ALU4(X, MUL, BPF_MUL, "*=") \
	PB_BPF_ALU4(X, DIV, BPF_DIV, "/=") \
	PB_BPF_SDIV4(X, SDIV, BPF_DIV, "s/=") \
	PB_BPF_ALU4(X, OR, BPF_OR, "|=") \
	PB_BPF_ALU4(X, AND, BPF_AND, "&=") \
	PB_BPF_ALU4(X, LSH, BPF_LSH, "<<=") \
	PB_BPF_ALU4(X, RSH, BPF_RSH, ">>=") \
	PB_BPF_ALU4(X, MOD, BPF_MOD, "%=") \
	PB_BPF_SDIV4(X, SMOD, BPF_MOD, "s%=") \
	PB_BPF_ALU4(X, XOR, BPF_XOR, "^=") \
	PB_BPF_ALU4(X, ARSH, BPF_ARSH, "s>>=") \
	PB_BPF_ALU4(X, MOV, BPF_MOV, "=") \
	X(MOVSX64_8, MOVSX, BPF_ALU64 | BPF_X | BPF_MOV, 8, 1, "s8") \
	X(MOVSX64_16, MOVSX, BPF_ALU64 | BPF_X | BPF_MOV, 16, 2, "s16") \
	X(MOVSX64_32, MOVSX, BPF_ALU64 | BPF_X | BPF_MOV, 32, 4, "s32") \
	X(MOVSX32_8, MOVSX, BPF_ALU | BPF_X | BPF_MOV, 8, 1, "s8") \
	X(MOVSX32_16, MOVSX, BPF_ALU | BPF_X | BPF_MOV, 16, 2, "s16") \
	X(NEG64, NEG, BPF_ALU64 | BPF_NEG, 0, 8, "-") \
	X(NEG32, NEG, BPF_ALU | BPF_NEG, 0, 4, "-") \
	PB_BPF_END3(X, LE, BPF_ALU | BPF_TO_LE | BPF_END, "le") \
	PB_BPF_END3(X, BE, BPF_ALU | BPF_TO_BE | BPF_END, "be") \
	PB_BPF_END3(X, BSWAP, BPF_ALU64 | BPF_TO_LE | BPF_END, "bswap") \
	X(LD_IMM64, LD64, BPF_LD | BPF_IMM | BPF_DW, 0, 8, "=") \
	PB_BPF_SIZES3(X, LD_ABS, LD_ABS, BPF_LD | BPF_ABS) \
	PB_BPF_SIZES3(X, LD_IND, LD_IND, BPF_LD | BPF_IND) \
	PB_BPF_SIZES4(X, LDX, LDX, BPF_LDX | BPF_MEM) \
	PB_BPF_SIZES3(X, LDSX, LDSX, BPF_LDX | BPF_MEMSX) \
	PB_BPF_SIZES4(X, ST, ST, BPF_ST | BPF_MEM) \
	PB_BPF_SIZES4(X, STX, STX, BPF_STX | BPF_MEM) \
	PB_BPF_ATOMIC2(X, ATOMIC_ADD, ATOMIC, BPF_ADD, "+=") \
	PB_BPF_ATOMIC2(X, ATOMIC_OR, ATOMIC, BPF_OR, "|=") \
	PB_BPF_ATOMIC2(X, ATOMIC_AND, ATOMIC, BPF_AND, "&=") \
	PB_BPF_ATOMIC2(X, ATOMIC_XOR, ATOMIC, BPF_XOR, "^=") \
	PB_BPF_ATOMIC2(X, FETCH_ADD, FETCH, BPF_ADD | BPF_FETCH, "add") \
	PB_BPF_ATOMIC2(X, FETCH_OR, FETCH, BPF_OR | BPF_FETCH, "or") \
	PB_BPF_ATOMIC2(X, FETCH_AND, FETCH, BPF_AND | BPF_FETCH, "and") \
	PB_BPF_ATOMIC2(X, FETCH_XOR, FETCH, BPF_XOR | BPF_FETCH, "xor") \
	PB_BPF_ATOMIC2(X, XCHG, XCHANGE, BPF_XCHG, "xchg") \
	PB_BPF_ATOMIC2(X, CMPXCHG, COMPARE, BPF_CMPXCHG, "cmpxchg") \
	X(JA, GOTO, BPF_JMP | BPF_JA, 0, 8, "") \
	X(JAL, GOTOL, BPF_JMP32 | BPF_JA, 0, 8, "") \
	X(MAY_GOTO, MAY_GOTO, BPF_JMP | BPF_JCOND, 0, 8, "") \
	PB_BPF_IF4(X, JEQ, BPF_JEQ, "==") \
	PB_BPF_IF4(X, JGT, BPF_JGT, ">") \
	PB_BPF_IF4(X, JGE, BPF_JGE, ">=") \
	PB_BPF_IF4(X, JSET, BPF_JSET, "&") \
	PB_BPF_IF4(X, JNE, BPF_JNE, "!=") \
	PB_BPF_IF4(X, JSGT, BPF_JSGT, "s>") \
	PB_BPF_IF4(X, JSGE, BPF_JSGE, "s>=") \
	PB_BPF_IF4(X, JLT, BPF_JLT, "<") \
	PB_BPF_IF4(X, JLE, BPF_JLE, "<=") \
	PB_BPF_IF4(X, JSLT, BPF_JSLT, "s<") \
	PB_BPF_IF4(X, JSLE, BPF_JSLE, "s<=") \
	X(CALL, CALL_HELPER, BPF_JMP | BPF_CALL, 0, 8, "call") \
	X(CALL_PC, CALL_PC, BPF_JMP | BPF_CALL, BPF_PSEUDO_CALL, 8, "call") \
	X(CALL_KFUNC, CALL_KFUNC, BPF_JMP | BPF_CALL, BPF_PSEUDO_KFUNC_CALL, 8, "call") \
	X(EXIT, RETURN, BPF_JMP | BPF_EXIT, 0, 8, "exit")

enum pb_bpf_op {
	PB_BPF_OP_NONE,
#define PB_BPF_X_OP(name, form, code, value, width, symbol) PB_BPF_OP_##name,
	PB_BPF_OPS(PB_BPF_X_OP)
#undef PB_BPF_X_OP
	PB_BPF_NR_OPS
};

struct pb_bpf_opinfo {
	uint8_t code, form, width;
	int16_t value;
	char symbol[8];
};
extern const struct pb_bpf_opinfo pb_bpf_ops[PB_BPF_NR_OPS];

/* Returns the operation. Looks only at the opcode and at the field that distinguishes operations of
 * the same opcode. */
enum pb_bpf_op pb_bpf_decode(const struct bpf_insn *insn);

/* Returns whether all fields that the operation's form doesn't use are 0 (see enum pb_bpf_form).
 * Every valid instruction meets this condition. `off` of an exit counts as used. */
bool pb_bpf_unused_are_zero(const struct bpf_insn *insn, enum pb_bpf_op op);
#endif
