/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Writes the processor's instructions that the JIT needs. */
#include "bpf/jit/jit_priv.h"

const uint8_t pb_jit_regs[12] = { RAX, RDI, RSI, RDX, RCX, R8, RBX, R13, R14, R15, RBP, R10 };

static void byte(struct pb_jit *j, unsigned b)
{
	if (j->out && j->at < j->size)
		j->out[j->at] = (uint8_t)b;
	j->at++;
}

void pb_jit_bytes(struct pb_jit *j, uint64_t v, int n)
{
	for (; n--; v >>= 8)
		byte(j, (uint8_t)v);
}

void pb_jit_rex(struct pb_jit *j, bool wide, int reg, int rm, bool always)
{
	unsigned r = 0x40 | (wide ? 8 : 0) | (reg & 8 ? 4 : 0) | (rm & 8 ? 1 : 0);

	if (r != 0x40 || always)
		byte(j, r);
}

static void opcode(struct pb_jit *j, unsigned op)
{
	if (op > 0xff)
		byte(j, op >> 8);
	byte(j, op & 0xff);
}

void pb_jit_modrm(struct pb_jit *j, int reg, int rm)
{
	byte(j, 0xc0u | (reg & 7u) << 3 | (rm & 7u));
}

void pb_jit_rr(struct pb_jit *j, bool wide, unsigned op, int reg, int rm)
{
	pb_jit_rex(j, wide, reg, rm, false);
	opcode(j, op);
	pb_jit_modrm(j, reg, rm);
}

static void modrm_mem(struct pb_jit *j, int reg, int base, int32_t off)
{
	bool small = off == (int8_t)off, none = !off && (base & 7) != RBP;

	byte(j, (none ? 0 : small ? 0x40u : 0x80u) | (reg & 7u) << 3 | (base & 7u));
	if ((base & 7) == RSP)
		byte(j, 0x24);
	if (!none)
		pb_jit_bytes(j, (uint32_t)off, small ? 1 : 4);
}

void pb_jit_rm(struct pb_jit *j, bool wide, unsigned op, int reg, int base, int32_t off,
	       bool byte_reg)
{
	pb_jit_rex(j, wide, reg, base, byte_reg && (reg & 15) >= RSP && reg < R8);
	opcode(j, op);
	modrm_mem(j, reg, base, off);
}

void pb_jit_mov(struct pb_jit *j, bool wide, int to, int from)
{
	if (to != from || !wide)
		pb_jit_rr(j, wide, 0x89, from, to);
}

void pb_jit_mov_imm(struct pb_jit *j, int to, uint64_t v)
{
	if (!v) {
		pb_jit_rr(j, false, 0x31, to, to);
	} else if (v == (uint32_t)v) {
		pb_jit_rex(j, false, 0, to, false);
		byte(j, 0xb8u | (to & 7u));
		pb_jit_bytes(j, v, 4);
	} else if (v == (uint64_t)(int64_t)(int32_t)v) {
		pb_jit_rex(j, true, 0, to, false);
		byte(j, 0xc7);
		pb_jit_modrm(j, 0, to);
		pb_jit_bytes(j, v, 4);
	} else {
		pb_jit_rex(j, true, 0, to, false);
		byte(j, 0xb8u | (to & 7u));
		pb_jit_bytes(j, v, 8);
	}
}

void pb_jit_group1(struct pb_jit *j, bool wide, int ext, int reg, int32_t imm)
{
	bool small = imm == (int8_t)imm;

	pb_jit_rex(j, wide, 0, reg, false);
	if (!small && reg == RAX) {
		byte(j, 5u | (unsigned)ext << 3);
	} else {
		byte(j, small ? 0x83 : 0x81);
		pb_jit_modrm(j, ext, reg);
	}
	pb_jit_bytes(j, (uint32_t)imm, small ? 1 : 4);
}

void pb_jit_group3(struct pb_jit *j, bool wide, int ext, int reg)
{
	pb_jit_rex(j, wide, 0, reg, false);
	byte(j, 0xf7);
	pb_jit_modrm(j, ext, reg);
}

void pb_jit_push(struct pb_jit *j, int reg)
{
	pb_jit_rex(j, false, 0, reg, false);
	byte(j, 0x50u | (reg & 7u));
}

void pb_jit_pop(struct pb_jit *j, int reg)
{
	pb_jit_rex(j, false, 0, reg, false);
	byte(j, 0x58u | (reg & 7u));
}

uint32_t pb_jit_skip(struct pb_jit *j, unsigned op)
{
	byte(j, op);
	byte(j, 0);
	return j->at - 1;
}

void pb_jit_here(struct pb_jit *j, uint32_t from)
{
	if (j->out && from < j->size)
		j->out[from] = (uint8_t)(j->at - from - 1);
}

void pb_jit_jump(struct pb_jit *j, int cc, uint32_t to)
{
	int64_t rel = (int64_t)to - (j->at + 2);
	uint8_t *note = &j->job->notes[j->i];

	if (rel == (int8_t)rel && !(j->settled && *note & PB_JIT_FAR)) {
		*note &= (uint8_t)~PB_JIT_FAR;
		byte(j, cc < 0 ? 0xeb : 0x70u | (unsigned)cc);
		byte(j, (uint8_t)rel);
	} else {
		*note |= PB_JIT_FAR;
		pb_jit_jump_far(j, cc, to);
	}
}

void pb_jit_jump_far(struct pb_jit *j, int cc, uint32_t to)
{
	if (cc < 0) {
		byte(j, 0xe9);
	} else {
		byte(j, 0x0f);
		byte(j, 0x80u | (unsigned)cc);
	}
	pb_jit_bytes(j, (uint64_t)((int64_t)to - (j->at + 4)), 4);
}

void pb_jit_place(struct pb_jit *j, uint32_t *place)
{
	j->moved |= *place != j->at;
	*place = j->at;
}

/* Returns a different number for each constant, but the same numbers in each pass. */
static uint64_t random_word(struct pb_jit *j)
{
	uint64_t h = j->job->seed + ((uint64_t)j->i << 8 | j->hidden++) * 0x9e3779b97f4a7c15ull;

	h = (h ^ h >> 30) * 0xbf58476d1ce4e5b9ull;
	h = (h ^ h >> 27) * 0x94d049bb133111ebull;
	return h ^ h >> 31;
}

void pb_jit_hide_imm(struct pb_jit *j, bool wide, int reg, uint64_t v)
{
	uint64_t key = random_word(j);

	/* if v fits into 32 bits, v ^ key does, too, because v and key are both sign-extended */
	if (wide && v == (uint64_t)(int64_t)(int32_t)v) {
		key = (uint64_t)(int64_t)(int32_t)key;
		pb_jit_rex(j, true, 0, reg, false);
		byte(j, 0xc7);
		pb_jit_modrm(j, 0, reg);
		pb_jit_bytes(j, v ^ key, 4);
		pb_jit_rex(j, true, 0, reg, false);
	} else if (!wide) {
		pb_jit_rex(j, false, 0, reg, false);
		byte(j, 0xb8u | (reg & 7u));
		pb_jit_bytes(j, v ^ key, 4);
		pb_jit_rex(j, false, 0, reg, false);
	} else {
		int other = reg == R11 ? R9 : R11;

		pb_jit_rex(j, true, 0, reg, false);
		byte(j, 0xb8u | (reg & 7u));
		pb_jit_bytes(j, v ^ key, 8);
		pb_jit_rex(j, true, 0, other, false);
		byte(j, 0xb8u | (other & 7u));
		pb_jit_bytes(j, key, 8);
		pb_jit_rr(j, true, 0x31, other, reg);
		return;
	}
	byte(j, 0x81);
	pb_jit_modrm(j, 6, reg);
	pb_jit_bytes(j, key, 4);
}
