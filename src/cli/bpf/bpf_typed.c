/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Prints a value by its BTF type: numbers, names of enumerations, members, elements. */
#include "cli/bpf/bpf_typed.h"

#include <ctype.h>
#include <string.h>

#define DEPTH	16		/* limit on the nesting of structures and arrays; deeper values are
				 * printed as "..." */
#define PIECES	100000		/* limit on the calls of print() for one value or section, since
				 * nested members of size 0 could make the output almost endless */
#define REPEATS	4		/* if at least this many elements in a row are equal, they are
				 * printed once */

struct printer {
	FILE *to;
	const struct pb_bpf_btf *btf;
	int depth, pieces;
};

static void print(struct printer *p, uint32_t id, const uint8_t *at, uint32_t room);

static uint64_t read_number(const uint8_t *at, uint32_t size)
{
	uint64_t v = 0;

	memcpy(&v, at, size < 8 ? size : 8);
	return v;
}

/* Prints a name from the object. Replaces characters that could control a terminal. */
static void print_name(struct printer *p, const char *name)
{
	for (; *name; name++)
		fputc(isprint((unsigned char)*name) ? *name : '?', p->to);
}

static void print_bytes(struct printer *p, const uint8_t *at, uint32_t size)
{
	for (uint32_t i = 0; i < size; i++)
		fprintf(p->to, "%s%02x", i ? " " : "", at[i]);
}

static void print_number(struct printer *p, const struct btf_type *t, uint64_t v, uint32_t bits)
{
	uint32_t encoding = BTF_INT_ENCODING(pb_btf_int(t));

	if (encoding & BTF_INT_BOOL && v < 2)
		fputs(v ? "true" : "false", p->to);
	else if (encoding & BTF_INT_SIGNED && bits)
		fprintf(p->to, "%ld", (int64_t)(v << (64 - bits)) >> (64 - bits));
	else
		fprintf(p->to, "%lu", v);
}

static void print_enum(struct printer *p, const struct btf_type *t, uint64_t v)
{
	uint64_t mask = t->size >= 8 ? ~0ull : (1ull << 8 * t->size) - 1;
	const char *name;

	for (uint32_t i = 0; i < pb_btf_vlen(t); i++)
		if ((pb_bpf_btf_enum(p->btf, t, i, &name) & mask) == (v & mask)) {
			print_name(p, name);
			return;
		}
	fprintf(p->to, "%lu", v);
}

/* ---- arrays ---------------------------------------------------------------------------- */

static bool is_text(const struct printer *p, const struct btf_type *element)
{
	return element && pb_btf_kind(element) == BTF_KIND_INT && element->size == 1 &&
	       !strcmp(pb_bpf_btf_name(p->btf, element), "char");
}

static void print_text(struct printer *p, const uint8_t *at, uint32_t n)
{
	fputc('"', p->to);
	for (uint32_t i = 0; i < n && at[i]; i++) {
		if (at[i] == '"' || at[i] == '\\')
			fprintf(p->to, "\\%c", at[i]);
		else if (isprint(at[i]))
			fputc(at[i], p->to);
		else
			fprintf(p->to, "\\%03o", at[i]);
	}
	fputc('"', p->to);
}

static void print_array(struct printer *p, const struct btf_array *a, const uint8_t *at,
			uint32_t room)
{
	const struct btf_type *element = pb_bpf_btf_skip(p->btf, a->type, true, NULL);
	int64_t size = pb_bpf_btf_size(p->btf, a->type);
	uint32_t n = size > 0 ? room / (uint32_t)size : 0, same;

	if (n > a->nelems)
		n = a->nelems;
	if (is_text(p, element)) {
		print_text(p, at, n);
		return;
	}
	fputc('{', p->to);
	for (uint32_t i = 0; i < n; i += same) {
		const uint8_t *e = at + i * (uint64_t)size;

		for (same = 1; i + same < n && !memcmp(e, e + same * (uint64_t)size, (size_t)size);
		     same++)
			;
		same = same < REPEATS ? 1 : same;
		fputs(i ? ", " : "", p->to);
		print(p, a->type, e, (uint32_t)size);
		if (same > 1)
			fprintf(p->to, " <repeats %u times>", same);
	}
	fputc('}', p->to);
}

/* ---- structures -------------------------------------------------------------------------- */

static void print_bitfield(struct printer *p, uint32_t id, const uint8_t *at, uint32_t room,
			   uint32_t bit, uint32_t bits)
{
	const struct btf_type *t = pb_bpf_btf_skip(p->btf, id, true, NULL);
	uint32_t byte = bit / 8, shift = bit % 8;
	uint64_t v;

	if (byte >= room || bits > 64 || !t) {
		fputs("...", p->to);
		return;
	}
	/* a bit-field that begins inside a byte may reach into a ninth byte */
	v = read_number(at + byte, room - byte) >> shift;
	if (shift && bits > 64 - shift && room - byte > 8)
		v |= (uint64_t)at[byte + 8] << (64 - shift);
	v &= bits < 64 ? (1ull << bits) - 1 : ~0ull;
	if (pb_btf_is_enum(t))
		print_enum(p, t, v);
	else if (pb_btf_kind(t) == BTF_KIND_INT)
		print_number(p, t, v, bits);
	else
		fprintf(p->to, "%lu", v);
}

static void print_members(struct printer *p, const struct btf_type *t, const uint8_t *at,
			  uint32_t room)
{
	const char *comma = "";

	fputc('{', p->to);
	for (uint32_t i = 0; i < pb_btf_vlen(t); i++) {
		const struct btf_member *m = &pb_btf_members(t)[i];
		uint32_t bit = pb_btf_member_bits(t, i), bits = pb_btf_member_bitfield(t, i);
		const char *name = pb_bpf_btf_str(p->btf, m->name_off);

		fputs(comma, p->to);
		comma = ", ";
		print_name(p, name);
		if (*name)
			fputs(" = ", p->to);
		if (bits)
			print_bitfield(p, m->type, at, room, bit, bits);
		else if (bit / 8 <= room)
			print(p, m->type, at + bit / 8, room - bit / 8);
		else
			fputs("...", p->to);
	}
	fputc('}', p->to);
}

/* Prints a value of at most `room` bytes. If the value's type is larger, prints "...", since sizes
 * in BTF are not trusted. */
static void print(struct printer *p, uint32_t id, const uint8_t *at, uint32_t room)
{
	const struct btf_type *t = pb_bpf_btf_skip(p->btf, id, true, NULL);
	int64_t size = pb_bpf_btf_size(p->btf, id);

	if (!t || size < 0 || size > room || p->depth == DEPTH || p->pieces++ > PIECES) {
		fputs("...", p->to);
		return;
	}
	p->depth++;
	switch (pb_btf_kind(t)) {
	case BTF_KIND_INT:
		if (size > 8)
			print_bytes(p, at, (uint32_t)size);
		else
			print_number(p, t, read_number(at, (uint32_t)size), (uint32_t)size * 8);
		break;
	case BTF_KIND_ENUM: case BTF_KIND_ENUM64:
		print_enum(p, t, read_number(at, (uint32_t)size));
		break;
	case BTF_KIND_PTR:
		fprintf(p->to, "0x%lx", read_number(at, (uint32_t)size));
		break;
	case BTF_KIND_ARRAY:
		print_array(p, pb_btf_array(t), at, (uint32_t)size);
		break;
	case BTF_KIND_STRUCT: case BTF_KIND_UNION:
		print_members(p, t, at, (uint32_t)size);
		break;
	default:
		print_bytes(p, at, (uint32_t)size);
	}
	p->depth--;
}

bool bpf_typed_is(const struct pb_bpf_btf *btf, uint32_t type, uint32_t size)
{
	return btf && type && pb_bpf_btf_size(btf, type) == size;
}

bool bpf_typed_is_section(const struct pb_bpf_btf *btf, uint32_t type)
{
	const struct btf_type *t = btf ? pb_bpf_btf_type(btf, type) : NULL;

	return t && pb_btf_kind(t) == BTF_KIND_DATASEC;
}

void bpf_typed_print(FILE *to, const struct pb_bpf_btf *btf, uint32_t type, const uint8_t *at,
		     uint32_t size)
{
	struct printer p = { .to = to, .btf = btf };

	print(&p, type, at, size);
}

void bpf_typed_variables(FILE *to, const struct pb_bpf_btf *btf, uint32_t section,
			 const uint8_t *at, uint32_t size)
{
	const struct btf_type *t = pb_bpf_btf_type(btf, section);
	struct printer p = { .to = to, .btf = btf };

	for (uint32_t i = 0; i < pb_btf_vlen(t); i++) {
		const struct btf_var_secinfo *s = &pb_btf_vars(t)[i];
		const struct btf_type *var = pb_bpf_btf_type(btf, s->type);

		if (!var || pb_btf_kind(var) != BTF_KIND_VAR || s->offset > size ||
		    s->size > size - s->offset)
			continue;
		print_name(&p, pb_bpf_btf_name(btf, var));
		fputs(" = ", to);
		print(&p, var->type, at + s->offset, s->size);
		fputc('\n', to);
	}
}
