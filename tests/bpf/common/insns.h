/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Macros for instructions, for tests that write their programs in C. The macros have the kernel's
 * names. */
#ifndef PB_TESTS_BPF_INSNS_H
#define PB_TESTS_BPF_INSNS_H
#include <linux/bpf.h>

#define I(c, d, s, o, i) \
	((struct bpf_insn){ .code = (c), .dst_reg = (d), .src_reg = (s), .off = (int16_t)(o), \
			    .imm = (int32_t)(i) })
#define BPF_ALU64_IMM(op, d, imm)	I(BPF_ALU64 | BPF_K | (op), d, 0, 0, imm)
#define BPF_ALU64_REG(op, d, s)		I(BPF_ALU64 | BPF_X | (op), d, s, 0, 0)
#define BPF_ALU32_IMM(op, d, imm)	I(BPF_ALU | BPF_K | (op), d, 0, 0, imm)
#define BPF_ALU32_REG(op, d, s)		I(BPF_ALU | BPF_X | (op), d, s, 0, 0)
#define BPF_MOV64_IMM(d, imm)		BPF_ALU64_IMM(BPF_MOV, d, imm)
#define BPF_MOV64_REG(d, s)		BPF_ALU64_REG(BPF_MOV, d, s)
#define BPF_LD_IMM64_RAW(d, s, v) \
	I(BPF_LD | BPF_DW | BPF_IMM, d, s, 0, (uint32_t)(uint64_t)(v)), \
	I(0, 0, 0, 0, (uint64_t)(v) >> 32)
#define BPF_LDX_MEM(size, d, s, off)	I(BPF_LDX | BPF_MEM | (size), d, s, off, 0)
#define BPF_STX_MEM(size, d, s, off)	I(BPF_STX | BPF_MEM | (size), d, s, off, 0)
#define BPF_ST_MEM(size, d, off, imm)	I(BPF_ST | BPF_MEM | (size), d, 0, off, imm)
#define BPF_ATOMIC_OP(size, op, d, s, off) I(BPF_STX | BPF_ATOMIC | (size), d, s, off, op)
#define BPF_JMP_IMM(op, d, imm, off)	I(BPF_JMP | BPF_K | (op), d, 0, off, imm)
#define BPF_JMP_REG(op, d, s, off)	I(BPF_JMP | BPF_X | (op), d, s, off, 0)
#define BPF_JMP32_IMM(op, d, imm, off)	I(BPF_JMP32 | BPF_K | (op), d, 0, off, imm)
#define BPF_JMP32_REG(op, d, s, off)	I(BPF_JMP32 | BPF_X | (op), d, s, off, 0)
#define BPF_JMP_A(off)			I(BPF_JMP | BPF_JA, 0, 0, off, 0)
#define BPF_CALL_FN(n)			I(BPF_JMP | BPF_CALL, 0, 0, 0, n)
#define BPF_CALL_REL(stack, off)	I(BPF_JMP | BPF_CALL, 0, BPF_PSEUDO_CALL, stack, off)
#define BPF_EXIT_INSN()			I(BPF_JMP | BPF_EXIT, 0, 0, 0, 0)
#endif
