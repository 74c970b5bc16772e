/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * CO-RE: "compile once, run everywhere". The compiler notes which member of which
 * type an instruction's constant comes from; here it is looked up in the types that
 * the program will really meet. What is compatible with what is libbpf's rule.
 *
 *   load_core.c       a note becomes a path in the object's types; candidates by
 *                     name; all that match must agree
 *   load_core_path.c  paths: read from the note, found again in a candidate, shown
 *   load_core_same.c  whether types are compatible, or match
 *   load_core_insn.c  the value that a path has, and the instruction that takes it
 */
#ifndef PB_BPFLOAD_LOAD_CORE_H
#define PB_BPFLOAD_LOAD_CORE_H
#include "bpfload/load_priv.h"

#define CORE_DEPTH 64

struct core_step {
	uint32_t type, index;		/* of the structure, or element of an array */
	const char *name;		/* NULL: an array's element */
};

/* A member, a type or an enumeration's value. */
struct core_path {
	const struct pb_bpf_btf *btf;
	uint32_t kind, root;		/* enum bpf_core_relo_kind; type */
	struct core_step steps[CORE_DEPTH];	/* without anonymous structures */
	uint32_t nr;
	uint32_t raw[CORE_DEPTH];	/* with them */
	uint32_t nr_raw;
	uint32_t bits;			/* offset */
};

/* What a path is worth in an instruction. */
struct core_value {
	uint64_t value;
	bool checked;			/* an instruction must have held the old value */
	bool poison;			/* nothing matches */
	uint32_t size, type;		/* of a member whose offset it is; 0: no such */
};

static inline bool core_is_type(uint32_t kind)
{
	return kind == BPF_CORE_TYPE_ID_LOCAL || kind == BPF_CORE_TYPE_ID_TARGET ||
	       kind == BPF_CORE_TYPE_EXISTS || kind == BPF_CORE_TYPE_SIZE ||
	       kind == BPF_CORE_TYPE_MATCHES;
}
static inline bool core_is_enumval(uint32_t kind)
{
	return kind == BPF_CORE_ENUMVAL_EXISTS || kind == BPF_CORE_ENUMVAL_VALUE;
}

/* 0, or -EINVAL. */
int core_read_path(const struct pb_bpf_btf *btf, uint32_t type, uint32_t kind, const char *note,
		   struct core_path *path);
/* 1: `to` is the same in the candidate; 0: it has no such thing; or -errno. */
int core_find_path(struct load *l, const struct core_path *from, const struct pb_bpf_btf *btf,
		   uint32_t candidate, struct core_path *to);
const char *core_path_text(struct load *l, const struct core_path *path);

/* 1, 0, or -EINVAL for types that don't end. */
int core_same_kind(const struct btf_type *a, const struct btf_type *b);
int core_compatible(struct load *l, const struct pb_bpf_btf *a, uint32_t x,
		    const struct pb_bpf_btf *b, uint32_t y, int depth);
int core_matches(struct load *l, const struct pb_bpf_btf *a, uint32_t x, const struct pb_bpf_btf *b,
		 uint32_t y, bool behind_pointer, int depth);
int core_member_compatible(struct load *l, const struct pb_bpf_btf *a, uint32_t x,
			   const struct pb_bpf_btf *b, uint32_t y);
bool core_same_name(const char *a, const char *b);

/* to NULL: nothing matches. 0, or -errno. */
int core_value_of(const struct core_path *path, uint32_t kind, struct core_value *v);
/* 0, or -errno: *why says what is wrong with the instruction. */
int core_patch(struct load_func *f, uint32_t at, const struct core_path *from,
	       const struct core_value *old, const struct core_path *to, struct core_value *v,
	       const char **why);
#endif
