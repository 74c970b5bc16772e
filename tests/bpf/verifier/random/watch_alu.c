/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The arithmetic of the interpreter of watch.h. It computes the results of instructions and the
 * conditions of jumps from the instructions' codes. */
#include "watch_priv.h"

static uint64_t divide(uint64_t d, uint64_t s, bool wide, bool sign, bool mod)
{
	if (!s)
		return mod ? d : 0;
	if (!sign)
		return mod ? d % s : d / s;
	if (wide)
		return (int64_t)s == -1 ? mod ? 0 : -d :
		       (uint64_t)(mod ? (int64_t)d % (int64_t)s : (int64_t)d / (int64_t)s);
	return (int32_t)s == -1 ? mod ? 0 : -d :
	       (uint64_t)(mod ? (int32_t)d % (int32_t)s : (int32_t)d / (int32_t)s);
}

uint64_t watch_compute(const struct bpf_insn *i, uint64_t d, uint64_t s)
{
	bool wide = BPF_CLASS(i->code) == BPF_ALU64;
	unsigned op = BPF_OP(i->code), by = (unsigned)s & (wide ? 63 : 31);

	if (!wide) {
		d = (uint32_t)d;
		s = (uint32_t)s;
	}
	switch (op) {
	case BPF_ADD: d += s; break;
	case BPF_SUB: d -= s; break;
	case BPF_MUL: d *= s; break;
	case BPF_DIV: case BPF_MOD: d = divide(d, s, wide, i->off, op == BPF_MOD); break;
	case BPF_OR: d |= s; break;
	case BPF_AND: d &= s; break;
	case BPF_XOR: d ^= s; break;
	case BPF_LSH: d <<= by; break;
	case BPF_RSH: d >>= by; break;
	case BPF_ARSH:
		d = wide ? (uint64_t)((int64_t)d >> by) : (uint64_t)((int32_t)d >> by);
		break;
	case BPF_NEG: d = -d; break;
	default: d = s;
	}
	return wide ? d : (uint32_t)d;
}

uint64_t watch_extend(uint64_t v, int bytes)
{
	return (uint64_t)((int64_t)(v << (64 - bytes * 8)) >> (64 - bytes * 8));
}

uint64_t watch_swap(const struct bpf_insn *i, uint64_t v, int bytes)
{
	uint64_t low = bytes < 8 ? v & ((1ull << bytes * 8) - 1) : v;

	if (BPF_CLASS(i->code) == BPF_ALU && !(i->code & BPF_TO_BE))
		return low;
	return __builtin_bswap64(low) >> (64 - bytes * 8);
}

bool watch_holds(unsigned code, uint64_t d, uint64_t s)
{
	int64_t sd = (int64_t)d, ss = (int64_t)s;

	if (BPF_CLASS(code) == BPF_JMP32) {
		d = (uint32_t)d;
		s = (uint32_t)s;
		sd = (int32_t)d;
		ss = (int32_t)s;
	}
	switch (BPF_OP(code)) {
	case BPF_JEQ: return d == s;
	case BPF_JNE: return d != s;
	case BPF_JGT: return d > s;
	case BPF_JGE: return d >= s;
	case BPF_JLT: return d < s;
	case BPF_JLE: return d <= s;
	case BPF_JSGT: return sd > ss;
	case BPF_JSGE: return sd >= ss;
	case BPF_JSLT: return sd < ss;
	case BPF_JSLE: return sd <= ss;
	default: return d & s;
	}
}
