/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Decides whether a type of an object and a type of the target are compatible, or match. "Match" is
 * stricter: it also compares names, members and signs (bpf_core_type_matches()). */
#include <errno.h>
#include <string.h>

#include "bpfload/load_core.h"

static uint32_t kind_of(const struct btf_type *t)
{
	return t ? pb_btf_kind(t) : BTF_KIND_UNKN;
}

static bool enum_kind(uint32_t k)
{
	return k == BTF_KIND_ENUM || k == BTF_KIND_ENUM64;
}

int core_same_kind(const struct btf_type *a, const struct btf_type *b)
{
	return kind_of(a) == kind_of(b) || (enum_kind(kind_of(a)) && enum_kind(kind_of(b)));
}

bool core_same_name(const char *a, const char *b)
{
	size_t n = pb_bpf_btf_essential(a);

	return n == pb_bpf_btf_essential(b) && !strncmp(a, b, n);
}

/* Skips modifiers and typedefs. If *t becomes NULL, the type is void. Returns false if the chain is
 * too long. */
static bool strip(const struct pb_bpf_btf *b, uint32_t id, const struct btf_type **t, uint32_t *to)
{
	*t = pb_bpf_btf_skip(b, id, true, to);
	return *t || !*to;
}

static uint32_t int_offset(const struct btf_type *t)
{
	return BTF_INT_OFFSET(pb_btf_int(t));
}

int core_member_compatible(struct load *l, const struct pb_bpf_btf *a, uint32_t x,
			   const struct pb_bpf_btf *b, uint32_t y)
{
	const struct btf_type *s, *t;

	for (int depth = 0; depth < PB_BPF_BTF_DEPTH; depth++) {
		if (!strip(a, x, &s, &x) || !strip(b, y, &t, &y) || !s || !t)
			return -EINVAL;
		if (pb_btf_is_composite(s) && pb_btf_is_composite(t))
			return 1;
		if (!core_same_kind(s, t))
			return 0;
		switch (pb_btf_kind(s)) {
		case BTF_KIND_PTR: case BTF_KIND_FLOAT:
			return 1;
		case BTF_KIND_FWD: case BTF_KIND_ENUM: case BTF_KIND_ENUM64:
			/* a type without a name is compatible with types of any name */
			return !pb_bpf_btf_name(a, s)[0] || !pb_bpf_btf_name(b, t)[0] ||
			       core_same_name(pb_bpf_btf_name(a, s), pb_bpf_btf_name(b, t));
		case BTF_KIND_INT:
			return !int_offset(s) && !int_offset(t);
		case BTF_KIND_ARRAY:
			x = pb_btf_array(s)->type;
			y = pb_btf_array(t)->type;
			continue;
		default:
			return 0;
		}
	}
	return -EINVAL;
}

/* Compares the parameters of two functions: by core_matches() if `match` is set, otherwise by
 * core_compatible(). */
static int params(struct load *l, const struct pb_bpf_btf *a, const struct btf_type *s,
		  const struct pb_bpf_btf *b, const struct btf_type *t, bool match,
		  bool past_pointer, int depth)
{
	if (pb_btf_vlen(s) != pb_btf_vlen(t))
		return 0;
	for (uint32_t i = 0; i < pb_btf_vlen(s); i++) {
		uint32_t x = pb_btf_params(s)[i].type, y = pb_btf_params(t)[i].type;
		int ret = match ? core_matches(l, a, x, b, y, past_pointer, depth - 1) :
			  core_compatible(l, a, x, b, y, depth - 1);

		if (ret <= 0)
			return ret;
	}
	return 1;
}

int core_compatible(struct load *l, const struct pb_bpf_btf *a, uint32_t x,
		    const struct pb_bpf_btf *b, uint32_t y, int depth)
{
	const char *spent = NULL;

	for (; depth > 0; depth--) {
		const struct btf_type *s, *t;
		int ret;

		if (!strip(a, x, &s, &x) || !strip(b, y, &t, &y) || !load_work(l, 1, &spent))
			return -EINVAL;
		if (!core_same_kind(s, t))
			return 0;
		switch (kind_of(s)) {
		case BTF_KIND_UNKN: case BTF_KIND_STRUCT: case BTF_KIND_UNION: case BTF_KIND_ENUM:
		case BTF_KIND_FWD: case BTF_KIND_ENUM64:
			return 1;
		case BTF_KIND_INT:
			return !int_offset(s) && !int_offset(t);
		case BTF_KIND_PTR:
			x = s->type;
			y = t->type;
			continue;
		case BTF_KIND_ARRAY:
			x = pb_btf_array(s)->type;
			y = pb_btf_array(t)->type;
			continue;
		case BTF_KIND_FUNC_PROTO:
			ret = params(l, a, s, b, t, false, false, depth);
			if (ret <= 0)
				return ret;
			x = s->type;
			y = t->type;
			continue;
		default:
			return 0;
		}
	}
	return -EINVAL;
}

/* --- type_matches ------------------------------------------------------------------ */

static int enums_match(struct load *l, const struct pb_bpf_btf *a, const struct btf_type *s,
		       const struct pb_bpf_btf *b, const struct btf_type *t)
{
	uint32_t n = pb_btf_vlen(s), m = pb_btf_vlen(t), j;
	const char *x, *y, *spent = NULL;

	if (!pb_btf_is_enum(t) || n > m)
		return 0;
	if (!load_work(l, (uint64_t)n * m, &spent))
		return -EINVAL;
	for (uint32_t i = 0; i < n; i++) {
		pb_bpf_btf_enum(a, s, i, &x);
		for (j = 0; j < m; j++) {
			pb_bpf_btf_enum(b, t, j, &y);
			if (core_same_name(x, y))
				break;
		}
		if (j == m)
			return 0;
	}
	return 1;
}

static int composites_match(struct load *l, const struct pb_bpf_btf *a, const struct btf_type *s,
			    const struct pb_bpf_btf *b, const struct btf_type *t, int depth)
{
	uint32_t n = pb_btf_vlen(s), m = pb_btf_vlen(t);
	const char *spent = NULL;

	if (n > m)
		return 0;
	for (uint32_t i = 0; i < n; i++) {
		const struct btf_member *x = &pb_btf_members(s)[i];
		int ret = 0;

		for (uint32_t j = 0; j < m && !ret; j++) {
			const struct btf_member *y = &pb_btf_members(t)[j];

			if (!load_work(l, 1, &spent))
				return -EINVAL;
			if (core_same_name(pb_bpf_btf_str(a, x->name_off),
					   pb_bpf_btf_str(b, y->name_off)))
				ret = core_matches(l, a, x->type, b, y->type, false, depth - 1);
		}
		if (ret <= 0)
			return ret;
	}
	return 1;
}

/* Under a pointer, a forward declaration matches the structure or union that it declares. */
static int composite_or_fwd(const struct btf_type *s, const struct btf_type *t)
{
	uint32_t k = kind_of(s), m = kind_of(t);

	if (k == m)
		return k != BTF_KIND_FWD || BTF_INFO_KFLAG(s->info) == BTF_INFO_KFLAG(t->info);
	if (k == BTF_KIND_FWD)
		return m == (BTF_INFO_KFLAG(s->info) ? BTF_KIND_UNION : BTF_KIND_STRUCT);
	return m == BTF_KIND_FWD && (k == BTF_KIND_UNION) == BTF_INFO_KFLAG(t->info);
}

static int ints_match(const struct btf_type *s, const struct btf_type *t)
{
	uint32_t x = pb_btf_int(s), y = pb_btf_int(t);

	return BTF_INT_BITS(x) == BTF_INT_BITS(y) &&
	       !((BTF_INT_ENCODING(x) ^ BTF_INT_ENCODING(y)) & BTF_INT_SIGNED);
}

/* Does one step of core_matches(). Returns 2 if s and t match so far, but the types that they refer
 * to must match, too. */
static int match_once(struct load *l, const struct pb_bpf_btf *a, const struct btf_type *s,
		      const struct pb_bpf_btf *b, const struct btf_type *t, bool past_pointer,
		      int depth)
{
	uint32_t k = kind_of(s);
	int ret;

	switch (k) {
	case BTF_KIND_UNKN:
		return k == kind_of(t);
	case BTF_KIND_ENUM: case BTF_KIND_ENUM64:
		return enums_match(l, a, s, b, t);
	case BTF_KIND_FWD: case BTF_KIND_STRUCT: case BTF_KIND_UNION:
		if (past_pointer)
			return composite_or_fwd(s, t);
		if (k == BTF_KIND_FWD || k != kind_of(t))
			return k == kind_of(t) && composite_or_fwd(s, t);
		return composites_match(l, a, s, b, t, depth);
	case BTF_KIND_INT:
		return k == kind_of(t) && ints_match(s, t);
	case BTF_KIND_PTR:
		return k == kind_of(t) ? 2 : 0;
	case BTF_KIND_ARRAY:
		return k == kind_of(t) && pb_btf_array(s)->nelems == pb_btf_array(t)->nelems ? 2 :
		       0;
	case BTF_KIND_FUNC_PROTO:
		ret = k == kind_of(t) ? params(l, a, s, b, t, true, past_pointer, depth) : 0;
		return ret == 1 ? 2 : ret;
	default:
		return 0;
	}
}

static const char *name_of(const struct pb_bpf_btf *b, const struct btf_type *t)
{
	return t ? pb_bpf_btf_name(b, t) : "";
}

int core_matches(struct load *l, const struct pb_bpf_btf *a, uint32_t x, const struct pb_bpf_btf *b,
		 uint32_t y, bool past_pointer, int depth)
{
	const char *spent = NULL;

	for (; depth > 0; depth--) {
		const struct btf_type *s, *t;
		int ret;

		if (!strip(a, x, &s, &x) || !strip(b, y, &t, &y) || !load_work(l, 1, &spent))
			return -EINVAL;
		if (!core_same_name(name_of(a, s), name_of(b, t)))
			return 0;
		ret = match_once(l, a, s, b, t, past_pointer, depth);
		if (ret != 2)
			return ret;
		past_pointer |= kind_of(s) == BTF_KIND_PTR;
		x = kind_of(s) == BTF_KIND_ARRAY ? pb_btf_array(s)->type : s->type;
		y = kind_of(t) == BTF_KIND_ARRAY ? pb_btf_array(t)->type : t->type;
	}
	return -EINVAL;
}
