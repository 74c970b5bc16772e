/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Reads the path of a CO-RE relocation, finds it in a candidate, and prints it. */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bpfload/load_core.h"

/* Whether the array is a flexible array, which may have any number of elements: it has length 0 and
 * is a structure's last member. */
static bool flexible(const struct core_path *p, const struct btf_type *array)
{
	const struct core_step *last = p->nr ? &p->steps[p->nr - 1] : NULL;
	const struct btf_type *t = last ? pb_bpf_btf_type(p->btf, last->type) : NULL;

	return last && last->name && !pb_btf_array(array)->nelems && t &&
	       last->index + 1 == pb_btf_vlen(t);
}

static int add_bits(struct core_path *p, uint64_t bits)
{
	if (bits > UINT32_MAX || p->bits + bits > UINT32_MAX)
		return -EINVAL;
	p->bits += (uint32_t)bits;
	return 0;
}

static int add_element(struct core_path *p, uint32_t type, uint32_t index, uint32_t element)
{
	int64_t size = pb_bpf_btf_size(p->btf, element);

	if (size < 0 || p->nr == CORE_DEPTH)
		return -EINVAL;
	p->steps[p->nr++] = (struct core_step){ type, index, NULL };
	return add_bits(p, (uint64_t)size * 8 * index);
}

/* --- from a relocation -------------------------------------------------------- */

/* Reads the relocation's string of indices, such as "0:1:2". */
static int read_note(struct core_path *p, const char *note)
{
	do {
		char *end;
		unsigned long v;

		if (*note < '0' || *note > '9' || p->nr_raw == CORE_DEPTH)
			return -EINVAL;
		v = strtoul(note, &end, 10);
		if (v > INT32_MAX || (*end && *end != ':'))
			return -EINVAL;
		p->raw[p->nr_raw++] = (uint32_t)v;
		note = end;
	} while (*note++ == ':');
	return 0;
}

static int read_enumval(struct core_path *p)
{
	const struct btf_type *t = pb_bpf_btf_skip(p->btf, p->root, true, NULL);
	const char *name;

	if (p->nr_raw != 1 || !t || !pb_btf_is_enum(t) || p->raw[0] >= pb_btf_vlen(t))
		return -EINVAL;
	pb_bpf_btf_enum(p->btf, t, p->raw[0], &name);
	p->steps[p->nr++] = (struct core_step){ p->root, p->raw[0], name };
	return 0;
}

static int read_step(struct core_path *p, uint32_t *id, uint32_t index)
{
	const struct btf_type *t = pb_bpf_btf_skip(p->btf, *id, true, id);
	const struct btf_member *m;
	uint32_t element;

	if (t && pb_btf_is_composite(t)) {
		if (index >= pb_btf_vlen(t) || add_bits(p, pb_btf_member_bits(t, index)))
			return -EINVAL;
		m = &pb_btf_members(t)[index];
		if (m->name_off)
			p->steps[p->nr++] = (struct core_step){ *id, index,
				pb_bpf_btf_str(p->btf, m->name_off) };
		*id = m->type;
		return 0;
	}
	if (!t || pb_btf_kind(t) != BTF_KIND_ARRAY ||
	    (index >= pb_btf_array(t)->nelems && !flexible(p, t)) ||
	    !pb_bpf_btf_skip(p->btf, pb_btf_array(t)->type, true, &element) ||
	    add_element(p, element, index, element))
		return -EINVAL;
	*id = element;
	return 0;
}

int core_read_path(const struct pb_bpf_btf *btf, uint32_t type, uint32_t kind, const char *note,
		   struct core_path *p)
{
	uint32_t id = type;

	memset(p, 0, sizeof(*p));
	p->btf = btf;
	p->kind = kind;
	p->root = type;
	if (!pb_bpf_btf_type(btf, type) || read_note(p, note))
		return -EINVAL;
	if (core_is_type(kind))
		return p->nr_raw == 1 && !p->raw[0] ? 0 : -EINVAL;
	if (core_is_enumval(kind))
		return read_enumval(p);
	if (add_element(p, type, p->raw[0], type))
		return -EINVAL;
	for (uint32_t i = 1; i < p->nr_raw; i++)
		if (read_step(p, &id, p->raw[i]))
			return -EINVAL;
	return 0;
}

/* --- in a candidate ------------------------------------------------------------ */

/* Finds the member with the step's name, also inside anonymous members. Sets *id to the member's
 * type. Returns 1, 0 (there is no such member), or -errno. */
static int find_member(struct load *l, const struct core_path *from, const struct core_step *step,
		       struct core_path *to, uint32_t *id)
{
	const struct btf_type *t = pb_bpf_btf_skip(to->btf, *id, true, id);
	const struct btf_type *own = pb_bpf_btf_type(from->btf, step->type);
	uint32_t composite = *id;

	if (!t || !pb_btf_is_composite(t))
		return 0;
	if (to->nr_raw == CORE_DEPTH || to->nr == CORE_DEPTH)
		return -E2BIG;
	for (uint32_t i = 0; i < pb_btf_vlen(t); i++) {
		const struct btf_member *m = &pb_btf_members(t)[i];
		const char *name = pb_bpf_btf_str(to->btf, m->name_off), *spent = NULL;
		uint32_t bits = to->bits;
		int found = 0;

		if (!load_work(l, 1, &spent))
			return -E2BIG;
		if (add_bits(to, pb_btf_member_bits(t, i)))
			return -EINVAL;
		to->raw[to->nr_raw++] = i;
		*id = m->type;
		if (!name[0]) {
			found = find_member(l, from, step, to, id);
		} else if (!strcmp(name, step->name)) {
			to->steps[to->nr++] = (struct core_step){ composite, i, name };
			found = core_member_compatible(l, from->btf,
						       pb_btf_members(own)[step->index].type,
						       to->btf, m->type);
			to->nr -= found <= 0;
			return found;
		}
		if (found)
			return found;
		to->bits = bits;
		to->nr_raw--;
	}
	return 0;
}

static int find_element(const struct core_path *from, uint32_t step, struct core_path *to,
			uint32_t *id)
{
	const struct btf_type *t = pb_bpf_btf_skip(to->btf, *id, true, id);
	uint32_t index = from->steps[step].index;

	if (!t)
		return -EINVAL;
	if (step) {
		if (pb_btf_kind(t) != BTF_KIND_ARRAY ||
		    (index >= pb_btf_array(t)->nelems && !flexible(to, t)))
			return 0;
		if (!pb_bpf_btf_skip(to->btf, pb_btf_array(t)->type, true, id))
			return -EINVAL;
	}
	if (to->nr_raw == CORE_DEPTH || add_element(to, *id, index, *id))
		return -EINVAL;
	to->raw[to->nr_raw++] = index;
	return 1;
}

static int find_enumval(struct load *l, const struct core_path *from, struct core_path *to)
{
	const struct btf_type *t = pb_bpf_btf_skip(to->btf, to->root, true, NULL);
	const char *name, *spent = NULL;

	if (!t || !pb_btf_is_enum(t))
		return 0;
	if (!load_work(l, pb_btf_vlen(t), &spent))
		return -E2BIG;
	for (uint32_t i = 0; i < pb_btf_vlen(t); i++) {
		pb_bpf_btf_enum(to->btf, t, i, &name);
		if (pb_bpf_btf_essential(name) != pb_bpf_btf_essential(from->steps[0].name) ||
		    strncmp(name, from->steps[0].name, pb_bpf_btf_essential(name)))
			continue;
		to->steps[to->nr++] = (struct core_step){ to->root, i, name };
		to->raw[to->nr_raw++] = i;
		return 1;
	}
	return 0;
}

int core_find_path(struct load *l, const struct core_path *from, const struct pb_bpf_btf *btf,
		   uint32_t candidate, struct core_path *to)
{
	uint32_t id = candidate;

	memset(to, 0, sizeof(*to));
	to->btf = btf;
	to->kind = from->kind;
	to->root = candidate;
	if (from->kind == BPF_CORE_TYPE_MATCHES)
		return core_matches(l, from->btf, from->root, btf, candidate, false,
				    PB_BPF_BTF_DEPTH);
	if (core_is_type(from->kind))
		return core_compatible(l, from->btf, from->root, btf, candidate, PB_BPF_BTF_DEPTH);
	if (core_is_enumval(from->kind))
		return find_enumval(l, from, to);
	for (uint32_t i = 0; i < from->nr; i++) {
		int ret = from->steps[i].name ? find_member(l, from, &from->steps[i], to, &id) :
			  find_element(from, i, to, &id);

		if (ret <= 0)
			return ret;
	}
	return 1;
}

/* --- text for messages ----------------------------------------------------------- */

static const char *const kinds[] = {
	[BPF_CORE_FIELD_BYTE_OFFSET] = "byte_off", [BPF_CORE_FIELD_BYTE_SIZE] = "byte_sz",
	[BPF_CORE_FIELD_EXISTS] = "field_exists", [BPF_CORE_FIELD_SIGNED] = "signed",
	[BPF_CORE_FIELD_LSHIFT_U64] = "lshift_u64", [BPF_CORE_FIELD_RSHIFT_U64] = "rshift_u64",
	[BPF_CORE_TYPE_ID_LOCAL] = "local_type_id", [BPF_CORE_TYPE_ID_TARGET] = "target_type_id",
	[BPF_CORE_TYPE_EXISTS] = "type_exists", [BPF_CORE_TYPE_SIZE] = "type_size",
	[BPF_CORE_ENUMVAL_EXISTS] = "enumval_exists", [BPF_CORE_ENUMVAL_VALUE] = "enumval_value",
	[BPF_CORE_TYPE_MATCHES] = "type_matches",
};

static void append(char *buf, size_t size, const char *format,
		   ...) __attribute__((format(printf, 3, 4)));
static void append(char *buf, size_t size, const char *format, ...)
{
	size_t n = strlen(buf);
	va_list ap;

	va_start(ap, format);
	vsnprintf(buf + n, size - n, format, ap);
	va_end(ap);
}

const char *core_path_text(struct load *l, const struct core_path *p)
{
	const struct btf_type *t = pb_bpf_btf_type(p->btf, p->root), *e;
	const char *name;
	char buf[512];

	snprintf(buf, sizeof(buf), "<%s> [%u] %s %.100s",
		 p->kind < sizeof(kinds) / sizeof(kinds[0]) ? kinds[p->kind] : "unknown", p->root,
		 pb_bpf_btf_kind_name(t), t &&
		 pb_bpf_btf_name(p->btf, t)[0] ? pb_bpf_btf_name(p->btf, t) : "<anon>");
	if (core_is_type(p->kind) || !p->nr)
		return load_text(l, buf);
	if (core_is_enumval(p->kind)) {
		e = pb_bpf_btf_skip(p->btf, p->root, true, NULL);
		append(buf, sizeof(buf), "::%.100s = %lld", p->steps[0].name,
		       (long long)pb_bpf_btf_enum(p->btf, e, p->raw[0], &name));
		return load_text(l, buf);
	}
	for (uint32_t i = 0; i < p->nr; i++)
		if (p->steps[i].name)
			append(buf, sizeof(buf), ".%.100s", p->steps[i].name);
		else if (i || p->steps[i].index)
			append(buf, sizeof(buf), "[%u]", p->steps[i].index);
	append(buf, sizeof(buf), " (");
	for (uint32_t i = 0; i < p->nr_raw; i++)
		append(buf, sizeof(buf), "%s%u", i ? ":" : "", p->raw[i]);
	append(buf, sizeof(buf), p->bits % 8 ? " @ offset %u.%u)" : " @ offset %u)", p->bits / 8,
	       p->bits % 8);
	return load_text(l, buf);
}
