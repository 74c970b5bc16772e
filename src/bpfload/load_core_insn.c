/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Computes the value that a CO-RE path yields. Puts this value into the instruction, in place of
 * the compiler's constant. */
#include <errno.h>
#include <string.h>

#include "bpfload/load_core.h"

/* --- values ------------------------------------------------------------------ */

static int element_value(const struct core_path *p, uint32_t kind, struct core_value *v)
{
	const struct core_step *last = &p->steps[p->nr - 1];
	int64_t size = pb_bpf_btf_size(p->btf, last->type);

	if (size < 0 || (kind != BPF_CORE_FIELD_BYTE_OFFSET && kind != BPF_CORE_FIELD_BYTE_SIZE))
		return -EINVAL;
	v->value = kind == BPF_CORE_FIELD_BYTE_OFFSET ? p->bits / 8 : (uint64_t)size;
	v->size = kind == BPF_CORE_FIELD_BYTE_OFFSET ? (uint32_t)size : 0;
	v->type = last->type;
	return 0;
}

struct place {
	uint32_t off, size, bits;	/* off, size: the bytes to load; bits: size of the member in
					 * bits */
};

/* Finds the smallest aligned word of at least `unit` bytes that holds the whole bit field. */
static int bitfield_place(const struct core_path *p, uint32_t unit, struct place *at)
{
	if (!unit || unit > 8 || (unit & (unit - 1)))
		return -EINVAL;
	at->size = unit;
	at->off = p->bits / 8 / unit * unit;
	while (p->bits + at->bits - at->off * 8 > at->size * 8) {
		if (at->size >= 8)
			return -E2BIG;
		at->size *= 2;
		at->off = p->bits / 8 / at->size * at->size;
	}
	return 0;
}

static bool is_signed(const struct btf_type *t)
{
	if (pb_btf_is_enum(t))
		return BTF_INFO_KFLAG(t->info);
	return pb_btf_kind(t) == BTF_KIND_INT && (BTF_INT_ENCODING(pb_btf_int(t)) & BTF_INT_SIGNED);
}

static int member_value(const struct core_path *p, uint32_t kind, struct core_value *v)
{
	const struct core_step *last = &p->steps[p->nr - 1];
	const struct btf_type *t = pb_bpf_btf_type(p->btf, last->type), *m;
	uint32_t type = pb_btf_members(t)[last->index].type;
	struct place at = { .bits = pb_btf_member_bitfield(t, last->index) };
	bool bitfield = at.bits;
	int64_t size;
	int ret = 0;

	m = pb_bpf_btf_skip(p->btf, type, true, &type);
	if (!m)
		return -EINVAL;
	if (bitfield) {
		ret = bitfield_place(p, m->size, &at);
	} else {
		size = pb_bpf_btf_size(p->btf, type);
		at = (struct place){ p->bits / 8, (uint32_t)size, (uint32_t)size * 8 };
		ret = size < 0 ? -EINVAL : 0;
	}
	/* for a bit field, the compiler may have chosen another word than bitfield_place() does. So
	 * core_patch() may check only values that don't depend on the word */
	v->checked = !bitfield || kind == BPF_CORE_FIELD_SIGNED ||
		     kind == BPF_CORE_FIELD_RSHIFT_U64;
	switch (kind) {
	case BPF_CORE_FIELD_BYTE_OFFSET:
		v->value = at.off;
		v->size = bitfield ? 0 : at.size;
		v->type = type;
		return ret;
	case BPF_CORE_FIELD_BYTE_SIZE:
		v->value = at.size;
		return ret;
	case BPF_CORE_FIELD_SIGNED:
		v->value = is_signed(m);
		return ret;
	case BPF_CORE_FIELD_LSHIFT_U64:
		v->value = 64 - (uint64_t)(p->bits + at.bits - at.off * 8);
		return ret;
	case BPF_CORE_FIELD_RSHIFT_U64:
		v->value = 64 - (uint64_t)at.bits;
		return ret;
	default:
		return -EOPNOTSUPP;
	}
}

static int type_value(const struct core_path *p, uint32_t kind, struct core_value *v)
{
	int64_t size;

	v->checked = kind != BPF_CORE_TYPE_ID_TARGET && kind != BPF_CORE_TYPE_ID_LOCAL;
	if (!p)
		return 0;
	switch (kind) {
	case BPF_CORE_TYPE_ID_LOCAL: case BPF_CORE_TYPE_ID_TARGET:
		v->value = p->root;
		return 0;
	case BPF_CORE_TYPE_SIZE:
		size = pb_bpf_btf_size(p->btf, p->root);
		v->value = (uint64_t)size;
		return size < 0 ? -EINVAL : 0;
	default:
		v->value = 1;
		return 0;
	}
}

int core_value_of(const struct core_path *p, uint32_t kind, struct core_value *v)
{
	const char *name;

	*v = (struct core_value){ .checked = true };
	if (core_is_type(kind))
		return type_value(p, kind, v);
	if (kind == BPF_CORE_FIELD_EXISTS || kind == BPF_CORE_ENUMVAL_EXISTS) {
		v->value = p != NULL;
		return 0;
	}
	v->poison = !p;
	if (!p)
		return 0;
	if (kind == BPF_CORE_ENUMVAL_VALUE) {
		const struct btf_type *t = pb_bpf_btf_skip(p->btf, p->root, true, NULL);

		v->value = pb_bpf_btf_enum(p->btf, t, p->raw[0], &name);
		return 0;
	}
	if (kind > BPF_CORE_TYPE_MATCHES)
		return -EOPNOTSUPP;
	return p->steps[p->nr - 1].name ? member_value(p, kind, v) : element_value(p, kind, v);
}

/* --- instructions -------------------------------------------------------------- */

static void poison(struct load_func *f, uint32_t at)
{
	uint32_t n = f->insns[at].code == (BPF_LD | BPF_IMM | BPF_DW) && at + 1 < f->nr ? 2 : 1;

	for (uint32_t i = at; i < at + n; i++)
		f->insns[i] = (struct bpf_insn){ .code = BPF_JMP | BPF_CALL, .imm = PB_BPF_POISON };
}

/* Whether a load or store of the old width may get the new width. */
static bool width_may_change(const struct core_path *from, const struct core_value *old,
			     const struct core_path *to, const struct core_value *v)
{
	const struct btf_type *s, *t;

	if (!to || old->size == v->size || !old->size || !v->size)
		return true;
	s = pb_bpf_btf_skip(from->btf, old->type, true, NULL);
	t = pb_bpf_btf_skip(to->btf, v->type, true, NULL);
	if (!s || !t || pb_btf_kind(s) != pb_btf_kind(t))
		return false;
	return pb_btf_kind(s) == BTF_KIND_PTR ||
	       (pb_btf_kind(s) == BTF_KIND_INT && !is_signed(s) && !is_signed(t));
}

static int patch_memory(struct load_func *f, uint32_t at, const struct core_path *from,
			const struct core_value *old, const struct core_path *to,
			struct core_value *v, const char **why)
{
	static const uint8_t widths[] = { [1] = BPF_B, [2] = BPF_H, [4] = BPF_W, [8] = BPF_DW };
	struct bpf_insn *insn = &f->insns[at];
	uint32_t width = v->size == 1 || v->size == 2 || v->size == 4 || v->size == 8 ? v->size : 0;

	*why = "the instruction's offset isn't the offset that the object's types give";
	if (v->checked && (uint64_t)insn->off != old->value)
		return -EINVAL;
	*why = "the offset is too large for the instruction";
	if (v->value > INT16_MAX)
		return -ERANGE;
	if (!width_may_change(from, old, to, v)) {
		v->poison = true;
		return 0;
	}
	insn->off = (int16_t)v->value;
	if (old->size == v->size || !old->size || !v->size)
		return 0;
	*why = "the instruction has another width than the member";
	if (old->size > 8 || !width || widths[old->size] != BPF_SIZE(insn->code))
		return -EINVAL;
	insn->code = (uint8_t)(BPF_MODE(insn->code) | widths[width] | BPF_CLASS(insn->code));
	return 0;
}

static int patch_imm64(struct load_func *f, uint32_t at, const struct core_value *old,
		       const struct core_value *v, const char **why)
{
	struct bpf_insn *insn = &f->insns[at];

	*why = "CO-RE can't change this instruction";
	if (insn->code != (BPF_LD | BPF_IMM | BPF_DW) || at + 1 >= f->nr || insn->src_reg ||
	    insn->off || insn[1].code || insn[1].dst_reg || insn[1].src_reg || insn[1].off)
		return -EINVAL;
	*why = "the instruction's value isn't the value that the object's types give";
	if (!v->poison && v->checked &&
	    ((uint32_t)insn[0].imm | (uint64_t)(uint32_t)insn[1].imm << 32) != old->value)
		return -EINVAL;
	if (!v->poison) {
		insn[0].imm = (int32_t)(uint32_t)v->value;
		insn[1].imm = (int32_t)(uint32_t)(v->value >> 32);
	}
	return 0;
}

int core_patch(struct load_func *f, uint32_t at, const struct core_path *from,
	       const struct core_value *old, const struct core_path *to, struct core_value *v,
	       const char **why)
{
	struct bpf_insn *insn = &f->insns[at];
	int ret = 0;

	switch (BPF_CLASS(insn->code)) {
	case BPF_ALU: case BPF_ALU64:
		*why = "the instruction has no constant";
		if (BPF_SRC(insn->code) != BPF_K)
			return -EINVAL;
		*why = "the instruction's value isn't the value that the object's types give";
		if (!v->poison && v->checked && (uint64_t)insn->imm != old->value)
			return -EINVAL;
		insn->imm = (int32_t)(uint32_t)v->value;
		break;
	case BPF_LDX: case BPF_ST: case BPF_STX:
		if (!v->poison)
			ret = patch_memory(f, at, from, old, to, v, why);
		break;
	case BPF_LD:
		ret = patch_imm64(f, at, old, v, why);
		break;
	default:
		*why = "CO-RE can't change this instruction";
		return -EINVAL;
	}
	if (!ret && v->poison)
		poison(f, at);
	return ret;
}
