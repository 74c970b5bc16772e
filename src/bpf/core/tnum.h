/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A tnum (tristate number) describes what is known of a value: each of its bits is 0, 1 or unknown.
 * `mask` has the unknown bits. `value` has the known bits that are 1. Sums and products follow
 * Vishwanathan et al., "Sound, Precise, and Fast Abstract Interpretation with Tristate Numbers",
 * arXiv 2105.05398.
 */
#ifndef PB_BPF_CORE_TNUM_H
#define PB_BPF_CORE_TNUM_H
#include <stdbool.h>
#include <stdint.h>

struct tnum {
	uint64_t value, mask;
};

#define TNUM_UNKNOWN ((struct tnum){ 0, ~0ull })

static inline struct tnum tnum_of(uint64_t value)
{
	return (struct tnum){ value, 0 };
}

static inline bool tnum_is_const(struct tnum a)
{
	return !a.mask;
}

static inline bool tnum_is(struct tnum a, uint64_t value)
{
	return !a.mask && a.value == value;
}

static inline bool tnum_is_unknown(struct tnum a)
{
	return a.mask == ~0ull;
}

static inline uint64_t tnum_max(struct tnum a)
{
	return a.value | a.mask;
}

/* tnum_low() returns the low half. tnum_high() returns the high half, with zeros in the low
 * half. */
static inline struct tnum tnum_low(struct tnum a)
{
	return (struct tnum){ (uint32_t)a.value, (uint32_t)a.mask };
}

static inline struct tnum tnum_high(struct tnum a)
{
	return (struct tnum){ a.value >> 32 << 32, a.mask >> 32 << 32 };
}

/* Returns the low `bytes` bytes, zero-extended. */
static inline struct tnum tnum_cut(struct tnum a, int bytes)
{
	uint64_t keep = bytes < 8 ? (1ull << bytes * 8) - 1 : ~0ull;

	return (struct tnum){ a.value & keep, a.mask & keep };
}

static inline struct tnum tnum_lsh(struct tnum a, unsigned by)
{
	return (struct tnum){ a.value << by, a.mask << by };
}

static inline struct tnum tnum_rsh(struct tnum a, unsigned by)
{
	return (struct tnum){ a.value >> by, a.mask >> by };
}

static inline struct tnum tnum_arsh(struct tnum a, unsigned by, int bits)
{
	if (bits == 32)
		return (struct tnum){ (uint32_t)((int32_t)a.value >> by),
			(uint32_t)((int32_t)a.mask >> by) };
	return (struct tnum){ (uint64_t)((int64_t)a.value >> by),
		(uint64_t)((int64_t)a.mask >> by) };
}

static inline struct tnum tnum_and(struct tnum a, struct tnum b)
{
	uint64_t ones = a.value & b.value;

	return (struct tnum){ ones, tnum_max(a) & tnum_max(b) & ~ones };
}

static inline struct tnum tnum_or(struct tnum a, struct tnum b)
{
	uint64_t ones = a.value | b.value;

	return (struct tnum){ ones, (a.mask | b.mask) & ~ones };
}

static inline struct tnum tnum_xor(struct tnum a, struct tnum b)
{
	uint64_t unknown = a.mask | b.mask;

	return (struct tnum){ (a.value ^ b.value) & ~unknown, unknown };
}

/* A bit of a sum is unknown if an operand's bit at this place is unknown, or if the carry into the
 * bit is unknown. */
static inline struct tnum tnum_add(struct tnum a, struct tnum b)
{
	uint64_t least = a.value + b.value, most = least + a.mask + b.mask;
	uint64_t unknown = (least ^ most) | a.mask | b.mask;

	return (struct tnum){ least & ~unknown, unknown };
}

static inline struct tnum tnum_sub(struct tnum a, struct tnum b)
{
	uint64_t d = a.value - b.value;
	uint64_t unknown = ((d + a.mask) ^ (d - b.mask)) | a.mask | b.mask;

	return (struct tnum){ d & ~unknown, unknown };
}

/* a and b describe the same value. Returns a tnum that has the known bits of both. */
static inline struct tnum tnum_both(struct tnum a, struct tnum b)
{
	uint64_t unknown = a.mask & b.mask;

	return (struct tnum){ (a.value | b.value) & ~unknown, unknown };
}

static inline bool tnum_aligned(struct tnum a, uint64_t size)
{
	return !size || !(tnum_max(a) & (size - 1));
}

/* Returns whether a allows each value that b allows. */
static inline bool tnum_in(struct tnum a, struct tnum b)
{
	return !(b.mask & ~a.mask) && a.value == (b.value & ~a.mask);
}

struct tnum tnum_mul(struct tnum a, struct tnum b);
struct tnum tnum_range(uint64_t min, uint64_t max);
#endif
