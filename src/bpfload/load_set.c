/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Sets variables of an object before its maps are made. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "bpfload/load_priv.h"

/* The place of a variable, and its type. */
struct variable {
	struct pb_bpf_object_map *map;
	uint32_t off, size;
	const struct btf_type *type;
};

static bool find_in(struct pb_bpf_object *o, struct pb_bpf_object_map *map, const char *name,
		    struct variable *v)
{
	const struct btf_type *t = pb_bpf_btf_type(o->btf, map->types.btf_value);

	if (!t || pb_btf_kind(t) != BTF_KIND_DATASEC || map->kind == PB_BPF_MAP_KCONFIG)
		return false;
	for (uint32_t i = 0; i < pb_btf_vlen(t); i++) {
		const struct btf_var_secinfo *s = &pb_btf_vars(t)[i];
		const struct btf_type *var = pb_bpf_btf_type(o->btf, s->type);

		if (!var || pb_btf_kind(var) != BTF_KIND_VAR ||
		    strcmp(pb_bpf_btf_name(o->btf, var), name))
			continue;
		if (s->offset > map->attr.value_size || s->size > map->attr.value_size - s->offset)
			return false;
		*v = (struct variable){ map, s->offset, s->size,
			pb_bpf_btf_skip(o->btf, var->type, true, NULL) };
		return true;
	}
	return false;
}

static bool is_number(const struct btf_type *t)
{
	return t && (pb_btf_kind(t) == BTF_KIND_INT || pb_btf_is_enum(t));
}

static bool is_text(const struct pb_bpf_btf *b, const struct btf_type *t)
{
	const struct btf_type *e;

	if (!t || pb_btf_kind(t) != BTF_KIND_ARRAY)
		return false;
	e = pb_bpf_btf_skip(b, pb_btf_array(t)->type, true, NULL);
	return e && pb_btf_kind(e) == BTF_KIND_INT && e->size == 1;
}

/* Whether the number fits into `size` bytes, as a signed or as an unsigned number. Whether the
 * variable's type is signed doesn't matter: for example, -1 and 255 both fit into one byte. */
static bool fits(uint64_t n, uint32_t size)
{
	int64_t s = (int64_t)n;

	return size == 8 || n >> 8 * size == 0 || (s < 0 && s >= -(1ll << (8 * size - 1)));
}

static int parse_number(const char *text, uint64_t *n)
{
	char *end;

	if (!strcmp(text, "true") || !strcmp(text, "false")) {
		*n = *text == 't';
		return 0;
	}
	errno = 0;
	*n = strchr(text, '-') ? (uint64_t)strtoll(text, &end, 0) : strtoull(text, &end, 0);
	if (errno == ERANGE)
		return -ERANGE;
	return *text && !*end ? 0 : -EINVAL;
}

static int put(uint8_t *to, const struct variable *v, const struct pb_bpf_btf *b, const char *text)
{
	size_t length = strlen(text);
	uint64_t n;
	int err;

	if (is_text(b, v->type)) {
		if (length >= v->size)
			return -ERANGE;
		memset(to, 0, v->size);
		memcpy(to, text, length);
		return 0;
	}
	if (!is_number(v->type) || !v->size || v->size > 8 || v->size & (v->size - 1))
		return -EINVAL;
	err = parse_number(text, &n);
	if (!err && !fits(n, v->size))
		err = -ERANGE;
	if (!err)
		memcpy(to, &n, v->size);
	return err;
}

int pb_bpf_object_set(struct pb_bpf_object *o, const char *name, const char *value)
{
	struct load *l = (struct load *)o;
	struct variable v = { 0 };
	uint32_t i = 0;

	while (i < o->nr_maps && !(o->btf && find_in(o, &o->maps[i], name, &v)))
		i++;
	if (i == o->nr_maps)
		return -ENOENT;
	/* if the map has contents, they lie in the object's own copy of the file (l->bytes) or in
	 * memory of load_alloc(); both may be changed */
	if (!v.map->contents)
		v.map->contents = load_alloc(l, v.map->attr.value_size);
	return v.map->contents ? put((uint8_t *)v.map->contents + v.off, &v, o->btf, value) :
	       -ENOMEM;
}
