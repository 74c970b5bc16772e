/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Decodes those properties of an instruction that the sweep needs. (The sweep is the stage of the
 * analysis that decodes all code once: stages.h.) These are fewer properties than a full decoder
 * returns, so decoding takes a tenth of a full decoder's time. A table decodes the frequent
 * opcodes, and Zydis decodes all other opcodes. A test compares the table with Zydis.
 *
 * Context: any thread.
 */
#ifndef PB_MODULE_INSN_H
#define PB_MODULE_INSN_H
#include <Zydis/Zydis.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum pb_insn_what {
	PB_INSN_OTHER, PB_INSN_CALL, PB_INSN_JMP, PB_INSN_LEA, PB_INSN_RET, PB_INSN_NOP,
	PB_INSN_PUSH, PB_INSN_POP, PB_INSN_ADD, PB_INSN_OR, PB_INSN_INT, PB_INSN_SYSCALL,
	PB_INSN_SYSENTER, PB_INSN_SUB, PB_INSN_TRAP,	/* ud2, hlt, int3 */
};

struct pb_insn {
	uint8_t length;
	uint8_t what;		/* enum pb_insn_what */
	uint8_t opcode;		/* the opcode's last byte */
	bool legacy;		/* the encoding is not VEX, EVEX or XOP */
	bool locked;
	bool has_modrm;
	bool far;		/* a branch to another segment */
	bool relative;		/* the first immediate is an offset from the next instruction */
	bool segment;		/* the operand in memory is relative to fs or gs */
	uint8_t mod, reg, rm;	/* without REX */
	uint8_t rex;		/* bits R, X and B, at their places in the prefix; W is left out */
	uint8_t sib_base, sib_index;
	uint8_t disp_size;	/* the displacement's size in bits */
	uint8_t imm_size[2];	/* the immediates' sizes in bits; 0: there is none */
	int64_t disp;
	uint64_t imm[2];
};

#define PB_INSN_LOCK	0xf0	/* some code jumps over this prefix if its program has
				 * only one thread */
#define PB_INSN_INT3	0xcc
#define PB_INSN_RET_POPS	0xc2	/* ret N */
#define PB_INSN_MOV_FROM_REG	0x89	/* an opcode; ModRM follows it */
#define PB_INSN_MOV_TO_REG	0x8b
#define PB_INSN_REX_R	4
#define PB_INSN_REX_X	2
#define PB_INSN_REX_B	1

/* Decodes the instruction at p, where avail bytes may be read. False if the bytes are no
 * instruction. */
bool pb_insn_decode(const ZydisDecoder *d, const uint8_t *p, size_t avail, struct pb_insn *i);
/* The two parts of pb_insn_decode(), for the test. pb_insn_by_table() returns false if the table
 * can't decode the instruction, or if avail is less than 15. */
bool pb_insn_by_table(const uint8_t *p, size_t avail, struct pb_insn *i);
bool pb_insn_by_zydis(const ZydisDecoder *d, const uint8_t *p, size_t avail, struct pb_insn *i);

#define PB_INSN_NULL_PAGE	4096	/* no program maps the addresses below this one */
/* True if the instruction is a mov from or to a fixed address in the page at 0. Such an instruction
 * always faults. Programs use it to end themselves where a bug shows (`*(char *)1 = 0`). */
bool pb_insn_faults(const struct pb_insn *i);

/* True if the instruction has an operand below rsp (in the red zone), or copies rsp to a register
 * other than rbp, from which it may take such an address. */
bool pb_insn_below_stack(const struct pb_insn *i);

/* True if the operand is an element of an array at a fixed address: it has an index and no base. */
static inline bool pb_insn_indexed(const struct pb_insn *i)
{
	return i->has_modrm && i->mod == 0 && i->rm == 4 && i->sib_base == 5 &&
	       (i->sib_index != 4 || i->rex & PB_INSN_REX_X);
}

static inline bool pb_insn_rip_relative(const struct pb_insn *i)
{
	return i->has_modrm && i->mod == 0 && i->rm == 5 && i->disp_size == 32;
}
#endif
