/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Executes a seccomp filter with values that may be unknown: the address of the call, and those
 * arguments that differ from call to call. An operation with an unknown value has an unknown
 * result. If a jump depends on an unknown value, both branches are executed, and the worse result
 * counts. So a call is "allowed" only if the filter allows it for all unknown values.
 *
 * Classic BPF only jumps forward, so each path ends. But the number of paths may double with each
 * jump. A filter that exceeds STEPS or DEPTH counts as fatal. So does anything that isn't an
 * instruction of a seccomp filter.
 */
#include "attach/filter_run.h"
#include <errno.h>
#include <linux/audit.h>
#include <linux/seccomp.h>
#include <stdbool.h>

#define STEPS 200000
#define DEPTH 200		/* limit of nested jumps of which both branches are executed */

struct value {
	uint32_t v;
	bool known;
};

struct machine {
	struct value a, x, memory[BPF_MEMWORDS];
};

struct run {
	const struct sock_filter *filter;
	size_t nr;
	const struct attach_call *call;
	unsigned steps, depth;
};

static const struct value unknown;

static struct value constant(uint32_t v)
{
	return (struct value) { v, true };
}

/* Returns the word of struct seccomp_data at this offset. */
static struct value load(const struct attach_call *c, uint32_t at)
{
	const uint32_t args = offsetof(struct seccomp_data, args);

	if (at == offsetof(struct seccomp_data, nr))
		return constant((uint32_t)c->number);
	if (at == offsetof(struct seccomp_data, arch))
		return constant(AUDIT_ARCH_X86_64);
	if (at < args || at >= sizeof(struct seccomp_data) || !(c->known & 1 << (at - args) / 8))
		return unknown;
	uint64_t word = c->args[(at - args) / 8];

	return constant((uint32_t)(at & 4 ? word >> 32 : word));
}

static bool calculate(uint16_t op, struct value *a, struct value b)
{
	/* a division by zero ends the filter, and kills */
	if (op == BPF_DIV && (!b.known || !b.v))
		return false;
	a->known &= b.known || op == BPF_NEG;
	switch (op) {
	case BPF_ADD: a->v += b.v; break;
	case BPF_SUB: a->v -= b.v; break;
	case BPF_MUL: a->v *= b.v; break;
	case BPF_DIV: a->v /= b.v; break;
	case BPF_OR: a->v |= b.v; break;
	case BPF_AND: a->v &= b.v; break;
	case BPF_XOR: a->v ^= b.v; break;
	case BPF_LSH: a->v <<= b.v & 31; break;
	case BPF_RSH: a->v >>= b.v & 31; break;
	case BPF_NEG: a->v = -a->v; break;
	default: return false;
	}
	return true;
}

static bool holds(uint16_t op, uint32_t a, uint32_t b)
{
	return op == BPF_JEQ ? a == b : op == BPF_JGT ? a > b : op == BPF_JGE ? a >= b : a & b;
}

static enum attach_verdict verdict(struct value ret)
{
	if (!ret.known)
		return ATTACH_FATAL;
	switch (ret.v & SECCOMP_RET_ACTION_FULL) {
	case SECCOMP_RET_ALLOW:
	case SECCOMP_RET_LOG:
		return ATTACH_ALLOWED;
	case SECCOMP_RET_ERRNO:
		return (ret.v & SECCOMP_RET_DATA) == ENOSYS ? ATTACH_ABSENT : ATTACH_FAILS;
	case SECCOMP_RET_TRACE:		/* the injector doesn't ask for these stops, so the kernel
					 * fails the call with ENOSYS */
		return ATTACH_ABSENT;
	default:
		return ATTACH_FATAL;
	}
}

/* Executes an instruction that neither jumps nor returns. False: the filter isn't valid, or may
 * divide by zero. */
static bool execute(const struct sock_filter *i, const struct attach_call *call, struct machine *m)
{
	bool memory = i->k < BPF_MEMWORDS;

	switch (i->code) {
	case BPF_LD | BPF_W | BPF_ABS:
		m->a = load(call, i->k);
		return !(i->k % 4) && i->k < sizeof(struct seccomp_data);
	case BPF_LD | BPF_W | BPF_LEN: m->a = constant(sizeof(struct seccomp_data)); return true;
	case BPF_LDX | BPF_W | BPF_LEN: m->x = constant(sizeof(struct seccomp_data)); return true;
	case BPF_LD | BPF_IMM: m->a = constant(i->k); return true;
	case BPF_LDX | BPF_IMM: m->x = constant(i->k); return true;
	case BPF_MISC | BPF_TAX: m->x = m->a; return true;
	case BPF_MISC | BPF_TXA: m->a = m->x; return true;
	case BPF_LD | BPF_MEM: m->a = memory ? m->memory[i->k] : unknown; return memory;
	case BPF_LDX | BPF_MEM: m->x = memory ? m->memory[i->k] : unknown; return memory;
	case BPF_ST: case BPF_STX:
		if (memory)
			m->memory[i->k] = i->code == BPF_ST ? m->a : m->x;
		return memory;
	}
	return BPF_CLASS(i->code) == BPF_ALU &&
	       calculate(BPF_OP(i->code), &m->a, BPF_SRC(i->code) == BPF_X ? m->x : constant(i->k));
}

/* Executes the filter from the instruction `at` on. m: the machine's state there. */
static enum attach_verdict go(struct run *r, size_t at, struct machine m)
{
	enum attach_verdict worst = ATTACH_ALLOWED, other;

	for (; at < r->nr && r->steps < STEPS; at++) {
		const struct sock_filter *i = &r->filter[at];
		uint16_t op = BPF_OP(i->code);
		struct value b = BPF_SRC(i->code) == BPF_X ? m.x : constant(i->k);

		r->steps++;
		if (BPF_CLASS(i->code) == BPF_RET) {
			other = verdict(BPF_RVAL(i->code) == BPF_A ? m.a : constant(i->k));
			return other > worst ? other : worst;
		}
		if (BPF_CLASS(i->code) != BPF_JMP) {
			if (!execute(i, r->call, &m))
				return ATTACH_FATAL;
			continue;
		}
		if (op == BPF_JA) {
			at += i->k;
		} else if (op != BPF_JEQ && op != BPF_JGT && op != BPF_JGE && op != BPF_JSET) {
			return ATTACH_FATAL;
		} else if (m.a.known && b.known) {
			at += holds(op, m.a.v, b.v) ? i->jt : i->jf;
		} else {
			if (++r->depth > DEPTH)
				return ATTACH_FATAL;
			other = go(r, at + 1 + i->jt, m);
			r->depth--;
			worst = other > worst ? other : worst;
			if (worst == ATTACH_FATAL)
				return worst;
			at += i->jf;
		}
	}
	return ATTACH_FATAL;
}

enum attach_verdict attach_filter_run(const struct sock_filter *filter, size_t nr,
				      const struct attach_call *call)
{
	struct run r = { .filter = filter, .nr = nr, .call = call };

	/* registers and memory are 0 at first */
	struct machine m = { .a = constant(0), .x = constant(0) };

	for (unsigned i = 0; i < BPF_MEMWORDS; i++)
		m.memory[i] = constant(0);
	return go(&r, 0, m);
}
