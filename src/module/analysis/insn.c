/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Decodes instructions for the sweep (insn.h): a table decodes the frequent opcodes, and Zydis
 * decodes the rest. The table has one entry for each opcode, so that decoding is one look-up and a
 * few tests.
 */
#include "module/analysis/insn.h"
#include <string.h>

/*
 * A table entry has a bit for each of the prefixes 66, f3 and f2 with which the opcode can be
 * decoded. The bit N is for the opcode without any of them. Other bits say what comes after the
 * opcode. The decoder ignores some bits of an instruction. An opcode may be in a table only if
 * every value of these bits gives a valid instruction.
 */
#define N	1		/* without a prefix */
#define P66	2
#define PF3	4
#define PF2	8
#define M	0x10		/* ModRM */
#define I8	0x20
#define I32	0x40		/* an immediate of 32 bits. With prefix 66, which would make it 16
				 * bits, the table isn't used */
#define REL	0x80		/* the immediate is a relative target */
#define GROUP	0x100		/* ModRM.reg or REX changes the meaning: look_at_group() */
#define ZEXT	0x200		/* the immediate isn't sign-extended */
#define MEM	0x400		/* ModRM must name memory */
#define IS(x)	((uint16_t)(PB_INSN_##x << 12))

#define NP	(N | P66)
#define ALL	(N | P66 | PF3 | PF2)

#define ALU(op, is)								\
	[(op)] = NP | M | (is), [(op) + 1] = NP | M | (is), [(op) + 2] = NP | M | (is),	\
	[(op) + 3] = NP | M | (is), [(op) + 4] = N | I8 | (is), [(op) + 5] = N | I32 | (is)

static const uint16_t one_byte[256] = {
	ALU(0x00, IS(ADD)), ALU(0x08, IS(OR)), ALU(0x10, 0), ALU(0x18, 0),
	ALU(0x20, 0), ALU(0x28, IS(SUB)), ALU(0x30, 0), ALU(0x38, 0),
	[0x50 ... 0x57] = N | IS(PUSH),
	[0x58 ... 0x5f] = N | IS(POP),
	[0x63] = N | M,
	[0x68] = N | I32 | IS(PUSH), [0x6a] = N | I8 | IS(PUSH),
	[0x69] = N | M | I32, [0x6b] = NP | M | I8,
	[0x70 ... 0x7f] = N | I8 | REL,
	[0x80] = N | M | I8 | GROUP, [0x81] = N | M | I32 | GROUP, [0x83] = NP | M | I8 | GROUP,
	[0x84 ... 0x8b] = NP | M,
	[0x8d] = NP | M | MEM | IS(LEA),
	[0x90] = N | GROUP,
	[0x98 ... 0x99] = N,
	[0xa8] = N | I8, [0xa9] = N | I32,
	[0xb0 ... 0xb7] = N | I8,
	[0xb8 ... 0xbf] = N | I32 | GROUP,
	[0xc0 ... 0xc1] = NP | M | I8 | ZEXT | GROUP,
	[0xc3] = N | IS(RET),
	[0xc6] = N | M | I8 | GROUP, [0xc7] = N | M | I32 | GROUP,
	[0xc9] = N, [0xcc] = N | IS(TRAP),
	[0xd0 ... 0xd3] = NP | M | GROUP,
	[0xe8] = N | I32 | REL | IS(CALL),
	[0xe9] = N | I32 | REL | IS(JMP), [0xeb] = N | I8 | REL | IS(JMP),
	[0xf6 ... 0xf7] = N | M | GROUP,
	[0xfe ... 0xff] = N | M | GROUP,
};

/* After 0f. */
static const uint16_t two_byte[256] = {
	[0x05] = N | IS(SYSCALL),
	[0x0b] = N | IS(TRAP),
	[0x10 ... 0x11] = ALL | M,
	[0x14 ... 0x15] = NP | M,
	[0x1f] = NP | M | GROUP | IS(NOP),
	[0x28 ... 0x29] = NP | M,
	[0x2a] = PF3 | PF2 | M, [0x2c ... 0x2d] = PF3 | PF2 | M,
	[0x2e ... 0x2f] = NP | M,
	[0x40 ... 0x4f] = NP | M,
	[0x51] = ALL | M,
	[0x54 ... 0x57] = NP | M,
	[0x58 ... 0x5a] = ALL | M, [0x5c ... 0x5f] = ALL | M,
	[0x60 ... 0x6d] = P66 | M,
	[0x6e] = P66 | M, [0x6f] = P66 | PF3 | M,
	[0x70] = P66 | PF3 | PF2 | M | I8 | ZEXT,
	[0x74 ... 0x76] = P66 | M,
	[0x7e] = P66 | PF3 | M, [0x7f] = P66 | PF3 | M,
	[0x80 ... 0x8f] = N | I32 | REL,
	[0x90 ... 0x9f] = N | M,
	[0xa2] = N,
	[0xa3] = NP | M, [0xa4] = NP | M | I8 | ZEXT, [0xa5] = NP | M,
	[0xab] = NP | M, [0xac] = NP | M | I8 | ZEXT, [0xad] = NP | M, [0xaf] = NP | M,
	[0xb0 ... 0xb1] = NP | M, [0xb3] = NP | M,
	[0xb6 ... 0xb7] = NP | M, [0xbb] = NP | M, [0xbe ... 0xbf] = NP | M,
	[0xba] = NP | M | I8 | ZEXT | GROUP,
	[0xbc ... 0xbd] = NP | PF3 | M,
	[0xc0 ... 0xc1] = NP | M,
	[0xc6] = NP | M | I8 | ZEXT,
	[0xc8 ... 0xcf] = N,
	[0xd1 ... 0xd6] = P66 | M, [0xd8 ... 0xe6] = P66 | M,
	[0xe8 ... 0xef] = P66 | M, [0xf1 ... 0xf6] = P66 | M, [0xf8 ... 0xfe] = P66 | M,
};

/* Reads the operand's ModRM, SIB and displacement at p. They have at most six bytes. Returns the
 * address of the first byte after them. */
static const uint8_t *read_operand(struct pb_insn *i, const uint8_t *p)
{
	i->has_modrm = true;
	i->mod = *p >> 6;
	i->reg = *p >> 3 & 7;
	i->rm = *p & 7;
	p++;
	if (i->mod == 3)
		return p;
	if (i->rm == 4) {
		i->sib_base = *p & 7;
		i->sib_index = *p >> 3 & 7;
		p++;
	}
	if (i->mod == 1) {
		i->disp_size = 8;
		i->disp = (int8_t)*p++;
	} else if (i->mod == 2 ||
		   (i->mod == 0 && (i->rm == 5 || (i->rm == 4 && i->sib_base == 5)))) {
		int32_t disp;

		memcpy(&disp, p, 4);
		i->disp_size = 32;
		i->disp = disp;
		p += 4;
	}
	return p;
}

/* Handles opcodes whose meaning depends on ModRM.reg or on REX. False if the table can't decode the
 * instruction. */
static bool look_at_group(struct pb_insn *i, uint8_t op, uint8_t rex, uint16_t *e)
{
	switch (op) {
	case 0x80: case 0x81: case 0x83:
		i->what = i->reg == 0 ? PB_INSN_ADD : i->reg == 1 ? PB_INSN_OR :
			  i->reg == 5 ? PB_INSN_SUB : PB_INSN_OTHER;
		return true;
	case 0x90:
		i->what = PB_INSN_NOP;
		return !rex;
	case 0xc0: case 0xc1: case 0xd0: case 0xd1: case 0xd2: case 0xd3:
		return i->reg != 6;
	case 0xc6: case 0xc7:
		return i->reg == 0;
	case 0xf6: case 0xf7:
		if (i->reg == 0)
			*e |= op == 0xf6 ? I8 : I32;
		return i->reg != 1;
	case 0xfe:
		return i->reg < 2;
	case 0xff:
		i->what = i->reg == 2 ? PB_INSN_CALL : i->reg == 4 ? PB_INSN_JMP :
			  i->reg == 6 ? PB_INSN_PUSH : PB_INSN_OTHER;
		return i->reg < 2 || i->what;
	default:	/* mov r, imm has an immediate of 64 bits with REX.W */
		return !(rex & 8);
	}
}

static bool look_at_group_0f(const struct pb_insn *i, uint8_t op)
{
	return op == 0xba ? i->reg >= 4 : i->reg == 0;
}

static const uint8_t *read_immediate(struct pb_insn *i, const uint8_t *p, uint16_t e)
{
	if (e & I8) {
		i->imm_size[0] = 8;
		i->imm[0] = e & ZEXT ? *p : (uint64_t)(int8_t)*p;
		return p + 1;
	}
	if (e & I32) {
		int32_t v;

		memcpy(&v, p, 4);
		i->imm_size[0] = 32;
		i->imm[0] = e & ZEXT ? (uint32_t)v : (uint64_t)v;
		return p + 4;
	}
	return p;
}

bool pb_insn_by_table(const uint8_t *p, size_t avail, struct pb_insn *i)
{
	const uint8_t *start = p;
	uint16_t e, prefix = N;
	uint8_t rex = 0, op;
	bool second = false;

	/* all instructions that the table accepts are at most 15 bytes long */
	if (avail < 15)
		return false;
	memset(i, 0, sizeof(*i));
	i->segment = *p == 0x64;
	if (i->segment)
		p++;
	if (*p == 0x66 || *p == 0xf2 || *p == 0xf3)
		prefix = *p == 0x66 ? P66 : *p == 0xf3 ? PF3 : PF2, p++;
	if ((*p & 0xf0) == 0x40)
		rex = *p++;
	op = *p++;
	if (op == 0x0f) {
		second = true;
		op = *p++;
	}
	e = second ? two_byte[op] : one_byte[op];
	if (!(e & prefix) || (prefix == P66 && e & I32))
		return false;
	i->what = (uint8_t)(e >> 12);
	i->opcode = op;
	i->rex = rex & 7;
	i->legacy = true;
	if (e & M)
		p = read_operand(i, p);
	if (e & MEM && i->mod == 3)
		return false;
	if (e & GROUP && !(second ? look_at_group_0f(i, op) : look_at_group(i, op, rex, &e)))
		return false;
	p = read_immediate(i, p, e);
	i->relative = e & REL;
	i->length = (uint8_t)(p - start);
	return true;
}

static uint8_t what_is(ZydisMnemonic m)
{
	switch (m) {
	case ZYDIS_MNEMONIC_CALL:
		return PB_INSN_CALL;
	case ZYDIS_MNEMONIC_JMP:
		return PB_INSN_JMP;
	case ZYDIS_MNEMONIC_LEA:
		return PB_INSN_LEA;
	case ZYDIS_MNEMONIC_RET: case ZYDIS_MNEMONIC_IRET: case ZYDIS_MNEMONIC_IRETD:
	case ZYDIS_MNEMONIC_IRETQ: case ZYDIS_MNEMONIC_UIRET:
		return PB_INSN_RET;
	case ZYDIS_MNEMONIC_NOP:
		return PB_INSN_NOP;
	case ZYDIS_MNEMONIC_PUSH:
		return PB_INSN_PUSH;
	case ZYDIS_MNEMONIC_POP:
		return PB_INSN_POP;
	case ZYDIS_MNEMONIC_ADD:
		return PB_INSN_ADD;
	case ZYDIS_MNEMONIC_OR:
		return PB_INSN_OR;
	case ZYDIS_MNEMONIC_SUB:
		return PB_INSN_SUB;
	case ZYDIS_MNEMONIC_UD2: case ZYDIS_MNEMONIC_HLT: case ZYDIS_MNEMONIC_INT3:
		return PB_INSN_TRAP;
	case ZYDIS_MNEMONIC_INT:
		return PB_INSN_INT;
	case ZYDIS_MNEMONIC_SYSCALL:
		return PB_INSN_SYSCALL;
	case ZYDIS_MNEMONIC_SYSENTER:
		return PB_INSN_SYSENTER;
	default:
		return PB_INSN_OTHER;
	}
}

static bool is_far_return(ZydisMnemonic m)
{
	return m == ZYDIS_MNEMONIC_IRET || m == ZYDIS_MNEMONIC_IRETD || m == ZYDIS_MNEMONIC_IRETQ ||
	       m == ZYDIS_MNEMONIC_UIRET;
}

bool pb_insn_by_zydis(const ZydisDecoder *d, const uint8_t *p, size_t avail, struct pb_insn *i)
{
	ZydisDecodedInstruction z;

	if (!ZYAN_SUCCESS(ZydisDecoderDecodeInstruction(d, NULL, p, avail, &z)))
		return false;
	memset(i, 0, sizeof(*i));
	i->length = z.length;
	i->what = what_is(z.mnemonic);
	i->opcode = z.opcode;
	i->legacy = z.encoding == ZYDIS_INSTRUCTION_ENCODING_LEGACY;
	for (uint8_t k = 0; k < z.raw.prefix_count; k++) {
		i->locked |= z.raw.prefixes[k].value == 0xf0;
		i->segment |= (z.raw.prefixes[k].value & 0xfe) == 0x64;
	}
	i->has_modrm = z.raw.modrm.offset;
	i->mod = z.raw.modrm.mod;
	i->reg = z.raw.modrm.reg;
	i->rm = z.raw.modrm.rm;
	i->rex = (uint8_t)(z.raw.rex.R << 2 | z.raw.rex.X << 1 | z.raw.rex.B);
	i->sib_base = z.raw.sib.base;
	i->sib_index = z.raw.sib.index;
	i->disp_size = z.raw.disp.size;
	i->disp = z.raw.disp.value;
	i->far = z.meta.branch_type == ZYDIS_BRANCH_TYPE_FAR || is_far_return(z.mnemonic);
	i->relative = z.raw.imm[0].is_relative;
	for (unsigned k = 0; k < 2; k++) {
		i->imm_size[k] = z.raw.imm[k].size;
		i->imm[k] = z.raw.imm[k].value.u;
	}
	return true;
}

bool pb_insn_decode(const ZydisDecoder *d, const uint8_t *p, size_t avail, struct pb_insn *i)
{
	return pb_insn_by_table(p, avail, i) || pb_insn_by_zydis(d, p, avail, i);
}

bool pb_insn_faults(const struct pb_insn *i)
{
	bool mov = (i->opcode >= 0x88 && i->opcode <= PB_INSN_MOV_TO_REG) ||
		   i->opcode == 0xc6 || i->opcode == 0xc7;
	/* an operand with neither a base nor an index */
	bool fixed = i->has_modrm && i->mod == 0 && i->rm == 4 && i->sib_base == 5 &&
		     i->sib_index == 4 && !(i->rex & PB_INSN_REX_X) && !i->segment;

	return i->legacy && mov && fixed && i->disp >= 0 && i->disp < PB_INSN_NULL_PAGE;
}

bool pb_insn_below_stack(const struct pb_insn *i)
{
	enum { RSP = 4, RBP = 5 };
	bool from = i->opcode == PB_INSN_MOV_FROM_REG, to = i->opcode == PB_INSN_MOV_TO_REG;
	bool reg_rsp = i->reg == RSP && !(i->rex & PB_INSN_REX_R);
	bool rm_rsp = i->rm == RSP && !(i->rex & PB_INSN_REX_B);

	if (!i->has_modrm || i->what == PB_INSN_NOP)
		return false;
	if (i->mod == 3)
		return i->legacy && ((from && reg_rsp && i->rm != RBP) ||
				     (to && rm_rsp && i->reg != RBP));
	return i->rm == RSP && i->sib_base == RSP && !(i->rex & PB_INSN_REX_B) && i->disp < 0 &&
	       !(i->what == PB_INSN_LEA && reg_rsp);
}
