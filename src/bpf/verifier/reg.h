/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Describes what the verifier knows of a register, or of eight bytes of stack, on one path.
 *
 * A scalar is described three times: by its known bits (tnum), by the range of all 64 bits, and by
 * the range of the low 32 bits. Each description sharpens the others. The bounds of the low 32 bits
 * are kept as 64-bit numbers, so that the same functions work on both ranges. For a pointer, the
 * three descriptions describe its variable part: the sum of the unknown numbers that were added to
 * it. The sum of the known numbers is in `off`.
 */
#ifndef PB_BPF_REG_H
#define PB_BPF_REG_H
#include "bpf/core/tnum.h"
#include "bpf/map/map.h"

/* Types, in the kernel's order. NOT_INIT must be 0, and the types of sockets (TO_SOCKET ...
 * TO_XDP_SOCK) must be consecutive. Nothing else depends on the order. */
enum reg_type {
	NOT_INIT,
	SCALAR,
	TO_CTX,
	MAP_PTR,
	TO_MAP_VALUE,
	TO_MAP_KEY,
	TO_STACK,
	TO_PACKET_META,
	TO_PACKET,
	TO_PACKET_END,
	TO_FLOW_KEYS,
	TO_SOCKET,
	TO_SOCK_COMMON,
	TO_TCP_SOCK,
	TO_XDP_SOCK,
	TO_BTF,
	TO_MEM,
	TO_BUF,
	TO_FUNC,
	TO_DYNPTR,
	NR_REG_TYPES,
};

/* Properties of a pointer, in addition to its type. */
enum reg_flags {
	MAYBE_NULL = 1,
	RDONLY = 2,
	RESERVED = 4,		/* a record of a ring buffer (ringbuf_ in the log) */
	UNTRUSTED = 8,		/* the object may be gone */
	USER = 16,		/* into user-space memory */
	PERCPU = 32,		/* to a per-CPU object of the kernel */
};

struct range {
	int64_t smin, smax;
	uint64_t umin, umax;
};

enum liveness {
	LIVE_READ = 1,		/* in a kept state: a path from this state reads the value */
	LIVE_WRITTEN = 2,	/* the path has written the value since the last kept state, so
				 * later reads don't see the parent's value */
};

/* Where the parent state has a value: nowhere, in the same place, or, for PLACE(frame, n), in
 * register n of the frame. */
enum place { PLACE_NONE, PLACE_SAME, PLACE_OF };
#define PLACE(frame, n)	((uint16_t)(PLACE_OF + (frame) * 16u + (n)))

enum dynptr_kind { LOCAL_DYNPTR = 1, RINGBUF_DYNPTR = 2 };

/* Negative values of `range`: an earlier comparison has found the packet pointer at or after the
 * packet's end (AT_END), or after the end (AFTER_END). Since then the pointer hasn't moved to a
 * lower address. */
enum { AT_END = -1, AFTER_END = -2 };

struct reg {
	/* the members before `id` are compared as one block (REG_KIND) */
	uint8_t type, flags;
	int32_t off;
	union {
		struct {
			const struct pb_bpf_map *map;
			uint32_t map_uid;	/* identifies an inner map that has a timer;
						 * otherwise 0. For a key: the frame of the
						 * callback that got the key */
		};
		int32_t range;			/* for a packet pointer: this many bytes, counted
						 * from the pointer without `off`, are surely in the
						 * packet */
		struct {
			uint32_t mem_size;
			uint32_t slice_of;	/* for a pointer from bpf_dynptr_data: the dynptr's
						 * id */
		};
		uint32_t subprog;
		struct {
			const char *btf;	/* the structure's name */
			uint32_t btf_size;	/* 0: unknown */
		};
		struct {
			uint8_t dynptr;		/* enum dynptr_kind */
			bool first_slot;	/* this is the dynptr's slot with the lower
						 * address */
			uint32_t dynptr_id;
		};
		struct {
			/* For a scalar with an id: the scalar is `delta` larger, modulo 2^64, than
			 * a scalar with this id and delta 0. `moved`: a constant was added. */
			int32_t delta;
			bool moved;
		};
		struct {			/* for a slot with an iterator; `ref` is the
						 * iterator's reference */
			uint32_t iter, depth;	/* iter: number of the iterator's budget
						 * (iterations.c); depth: count of elements
						 * returned so far */
			bool drained;
		};
		uint64_t raw[2];
	};
	/* If registers must be equal, all members before `frame` are compared (REG_ALL). */
	uint32_t id;		/* registers with the same id hold the same value, apart from
				 * `delta` */
	uint32_t ref;		/* for an acquired object: its reference, which must be released */
	struct tnum var;
	struct range wide, low;
	/* not compared as a block */
	uint32_t frame;		/* for TO_STACK: the frame that the pointer points into */
	uint16_t parent;	/* enum place: the value's place in the parent state */
	uint8_t live;		/* enum liveness */
	bool precise;		/* the program's safety depends on the value (precise.c) */
};
#define REG_KIND	offsetof(struct reg, id)	/* size of the members before `id`, which
							 * describe the kind of value */
#define REG_ALL		offsetof(struct reg, frame)

/* ---- ranges: bits is 64 or 32 -------------------------------------------------- */

static inline int64_t sign_extend(uint64_t v, int bits)
{
	return bits == 64 ? (int64_t)v : (int32_t)v;
}

static inline uint64_t cut_to(uint64_t v, int bits)
{
	return bits == 64 ? v : (uint32_t)v;
}

#define ALL_SIGNED	.smin = INT64_MIN, .smax = INT64_MAX
#define ALL_UNSIGNED	.umin = 0, .umax = UINT64_MAX

static inline struct range range_all(int bits)
{
	if (bits == 64)
		return (struct range){ INT64_MIN, INT64_MAX, 0, UINT64_MAX };
	return (struct range){ INT32_MIN, INT32_MAX, 0, UINT32_MAX };
}

static inline struct range range_of(uint64_t v, int bits)
{
	int64_t s = sign_extend(v, bits);

	return (struct range){ s, s, cut_to(v, bits), cut_to(v, bits) };
}

static inline bool range_broken(const struct range *r)
{
	return r->smin > r->smax || r->umin > r->umax;
}

/* Whether a contains b. */
static inline bool range_in(const struct range *a, const struct range *b)
{
	return a->umin <= b->umin && a->umax >= b->umax && a->smin <= b->smin && a->smax >= b->smax;
}

/* In deduce.c. Narrows the range by the known bits. Returns whether the range has become
 * narrower. */
bool pbv_range_learn_bits(struct range *r, struct tnum bits_known, int bits);

/* ---- registers ------------------------------------------------------------------ */

/* In deduce.c. Uses each of a value's three descriptions to sharpen the others. */
void pbv_reg_sync(struct reg *r);
/* Uses the known bits to sharpen the ranges. Returns whether a range has become narrower. */
bool pbv_reg_learn_bits(struct reg *r);
/* Sets the value, and keeps type, id and offset. */
static inline void pbv_reg_known_value(struct reg *r, uint64_t v)
{
	r->var = tnum_of(v);
	r->wide = range_of(v, 64);
	r->low = range_of(v, 32);
}

/* Like pbv_reg_known_value(), but for the low 32 bits. */
void pbv_reg_known_low(struct reg *r, uint32_t v);
/* Resets both ranges, but not the known bits. */
void pbv_reg_any_value(struct reg *r);
/* Sets the register's type and flags. Keeps `frame` and the members after `frame`. Sets the value
 * and all other members to 0. */
void pbv_reg_make(struct reg *r, enum reg_type type, unsigned flags);
void pbv_reg_make_scalar(struct reg *r, bool precise);
void pbv_reg_make_const(struct reg *r, uint64_t v);
void pbv_reg_make_none(struct reg *r, bool precise);
/* Copies src, except for parent and liveness. */
void pbv_reg_copy(struct reg *dst, const struct reg *src);

/* Zeroes the upper half, as an operation on 32 bits does. */
void pbv_reg_zero_extend(struct reg *r);
/* These two functions keep the low `bytes` bytes of the value. pbv_reg_cut() zero-extends the
 * bytes, pbv_reg_sign_extend() sign-extends them. */
void pbv_reg_cut(struct reg *r, int bytes);
void pbv_reg_sign_extend(struct reg *r, int bytes);
/* Whether the descriptions contradict each other. If they do, the path can't be taken. */
bool pbv_reg_contradicts(const struct reg *r);

/* Ends the register's link to scalars of the same id. */
static inline void reg_unlink(struct reg *r)
{
	r->id = 0;
	r->delta = 0;
	r->moved = false;
}

static inline bool reg_is_null(const struct reg *r)
{
	return r->type == SCALAR && tnum_is(r->var, 0);
}

static inline bool reg_is_const(const struct reg *r)
{
	return r->type == SCALAR && tnum_is_const(r->var);
}

static inline bool reg_is_packet(const struct reg *r)
{
	return r->type == TO_PACKET || r->type == TO_PACKET_META;
}

static inline bool reg_is_packet_or_end(const struct reg *r)
{
	return reg_is_packet(r) || r->type == TO_PACKET_END;
}

static inline bool reg_is_sock(const struct reg *r)
{
	return r->type >= TO_SOCKET && r->type <= TO_XDP_SOCK && !r->flags;
}

static inline bool reg_is(const struct reg *r, enum reg_type type)
{
	return r->type == type && !r->flags;
}

/* Whether nothing is known of the value. */
bool pbv_reg_unbounded(const struct reg *r);
/* Whether the register is a pointer that may be spilled. A pointer is always spilled as a whole. */
bool pbv_reg_spillable(const struct reg *r);
#endif
