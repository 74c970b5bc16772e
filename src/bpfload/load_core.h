/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * CO-RE: "compile once, run everywhere". An instruction's constant, for example an offset, may
 * depend on a type that differs between targets. For such a constant, the compiler writes a
 * relocation that names the type and the path to a member. The loader looks the path up in the
 * target's types, whose layout is valid where the eBPF program runs, and changes the constant. The
 * rules of compatibility are libbpf's.
 *
 *   load_core.c       lists the candidates: the types with the right name. All candidates
 *                     that match must give the same value
 *   load_core_path.c  reads a path from the relocation, finds it in a candidate, prints it
 *   load_core_same.c  decides whether types are compatible, or match
 *   load_core_insn.c  finds the value of a path, and puts it into the instruction
 */
#ifndef PB_BPFLOAD_LOAD_CORE_H
#define PB_BPFLOAD_LOAD_CORE_H
#include "bpfload/load_priv.h"

#define CORE_DEPTH 64

struct core_step {
	uint32_t type, index;		/* type: a structure or an element's type; index: number of
					 * the member or element */
	const char *name;		/* NULL: an array's element */
};

/* A relocation's path to a member, a type or an enumeration's value. */
struct core_path {
	const struct pb_bpf_btf *btf;
	uint32_t kind, root;		/* kind: enum bpf_core_relo_kind; root: number of the root
					 * type */
	struct core_step steps[CORE_DEPTH];	/* members and elements, without anonymous
						 * structures */
	uint32_t nr;
	uint32_t raw[CORE_DEPTH];	/* indices, including those of anonymous structures */
	uint32_t nr_raw;
	uint32_t bits;			/* the path's offset from the root type, in bits */
};

/* The value that a path yields for an instruction. */
struct core_value {
	uint64_t value;
	bool checked;			/* before the instruction is patched, check that it has the
					 * old value */
	bool poison;			/* replace the instruction by a call that verifiers reject.
					 * Set if no candidate has the path (unless the relocation
					 * only asks whether the path exists), or if the types don't
					 * allow the width that a load or store would need */
	uint32_t size, type;		/* if `value` is the offset of a member or element: the size
					 * in bytes and the type of that member or element. size 0:
					 * `value` is the offset of a bit field, or isn't an
					 * offset */
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

/* Reads the path of a relocation. `note` is its string of indices. Returns 0, or -EINVAL. */
int core_read_path(const struct pb_bpf_btf *btf, uint32_t type, uint32_t kind, const char *note,
		   struct core_path *path);
/* Returns 1 if the candidate has the same path, which is then in *to. Returns 0 if the candidate
 * doesn't have the path, or -errno. */
int core_find_path(struct load *l, const struct core_path *from, const struct pb_bpf_btf *btf,
		   uint32_t candidate, struct core_path *to);
const char *core_path_text(struct load *l, const struct core_path *path);

/* The next four functions return 1 (yes) or 0 (no). All but core_same_kind() return -EINVAL if a
 * chain of types is too long. core_compatible() and core_matches() also return -EINVAL if
 * load_work() has no steps left. depth: the limit on the number of types in a chain. */
int core_same_kind(const struct btf_type *a, const struct btf_type *b);
int core_compatible(struct load *l, const struct pb_bpf_btf *a, uint32_t x,
		    const struct pb_bpf_btf *b, uint32_t y, int depth);
int core_matches(struct load *l, const struct pb_bpf_btf *a, uint32_t x, const struct pb_bpf_btf *b,
		 uint32_t y, bool past_pointer, int depth);
int core_member_compatible(struct load *l, const struct pb_bpf_btf *a, uint32_t x,
			   const struct pb_bpf_btf *b, uint32_t y);
bool core_same_name(const char *a, const char *b);

/* Computes the value that the path yields. path NULL: no candidate has the path. Returns 0 or
 * -errno. */
int core_value_of(const struct core_path *path, uint32_t kind, struct core_value *v);
/* Puts the value into the instruction. If a load or store would need another width, but the types
 * don't allow this, sets v->poison. If v->poison is set, makes the instruction a call that any
 * verifier rejects. Returns 0 or -errno. After an error, *why says what is wrong with the
 * instruction. */
int core_patch(struct load_func *f, uint32_t at, const struct core_path *from,
	       const struct core_value *old, const struct core_path *to, struct core_value *v,
	       const char **why);
#endif
