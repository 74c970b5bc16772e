/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Adds maps to an object. Reads from BTF at which offsets a map's values have locks, timers and
 * kernel pointers. */
#include <string.h>

#include "bpfload/load_priv.h"

struct value {
	struct load *l;
	struct pb_bpf_object_map *map;
};

static bool is_struct(const struct load *l, const struct btf_type *t, const char *name,
		      uint32_t size)
{
	return t && pb_btf_kind(t) == BTF_KIND_STRUCT && t->size == size &&
	       !strcmp(pb_bpf_btf_name(l->object.btf, t), name);
}

static bool inside(struct value *v, uint32_t at, uint32_t size)
{
	if (at <= v->map->attr.value_size && v->map->attr.value_size - at >= size)
		return true;
	load_error(v->l, &v->map->why,
		   "map %s: the lock, timer or kernel pointer at byte %u is outside the value",
		   v->map->name, at);
	return false;
}

static void found(struct value *v, int32_t *off, uint32_t at, uint32_t size, const char *what)
{
	uint32_t align = size < 8 ? size : 8;

	if (!inside(v, at, size))
		return;
	if (*off >= 0)
		load_error(v->l, &v->map->why, "map %s has more than one %s in a value",
			   v->map->name, what);
	if (at % align)
		load_error(v->l, &v->map->why, "map %s: its %s isn't aligned", v->map->name, what);
	*off = (int32_t)at;
}

/* Records a kernel pointer, if the type is a pointer with the tag "kptr" or "kptr_ref". Programs
 * may load and store a "kptr". A "kptr_ref" owns a reference to its object, so programs can't store
 * to it. */
static void find_kptr(struct value *v, uint32_t type, uint32_t at)
{
	const struct pb_bpf_btf *b = v->l->object.btf, *target;
	const struct btf_type *t = pb_bpf_btf_type(b, type), *to;
	struct pb_bpf_map_types *types = &v->map->types;
	const char *name;
	uint32_t id;
	bool referenced;

	if (!t || pb_btf_kind(t) != BTF_KIND_PTR || !(t = pb_bpf_btf_type(b, t->type)) ||
	    pb_btf_kind(t) != BTF_KIND_TYPE_TAG)
		return;
	referenced = !strcmp(pb_bpf_btf_name(b, t), "kptr_ref");
	if (!referenced && strcmp(pb_bpf_btf_name(b, t), "kptr"))
		return;
	if (!inside(v, at, 8))
		return;
	to = pb_bpf_btf_skip(b, t->type, false, NULL);
	target = load_target(v->l);
	if (types->nr_kptrs == PB_BPF_MAX_KPTRS || at % 8 || !to ||
	    pb_btf_kind(to) != BTF_KIND_STRUCT || !target) {
		load_error(v->l, &v->map->why, "map %s: a kernel pointer at byte %u can't be used",
			   v->map->name, at);
		return;
	}
	id = pb_bpf_btf_find(target, pb_bpf_btf_name(b, to), BTF_KIND_STRUCT);
	name = id ? load_text(v->l, pb_bpf_btf_name(b, to)) : NULL;
	if (!name) {
		load_error(v->l, &v->map->why, id ? "no memory" :
			   "map %s: struct %s isn't among the target's types", v->map->name,
			   pb_bpf_btf_name(b, to));
		return;
	}
	types->kptrs[types->nr_kptrs++] = (struct pb_bpf_kptr){ .off = at, .btf_id = id,
		.size = pb_bpf_btf_type(target, id)->size, .name = name,
		.referenced = referenced };
}

static void look_at(struct value *v, uint32_t type, uint32_t at)
{
	const struct btf_type *t = pb_bpf_btf_type(v->l->object.btf, type);

	if (is_struct(v->l, t, "bpf_spin_lock", 4))
		found(v, &v->map->types.spin_lock_off, at, 4, "bpf_spin_lock");
	else if (is_struct(v->l, t, "bpf_timer", 16))
		found(v, &v->map->types.timer_off, at, 16, "bpf_timer");
	else
		find_kptr(v, type, at);
}

/* Looks for locks, timers and kernel pointers among the members of the value's structure, or among
 * the variables of the section. Like the kernel, doesn't look inside members or variables. */
void load_map_types(struct load *l, struct pb_bpf_object_map *map)
{
	const struct pb_bpf_btf *b = l->object.btf;
	const struct btf_type *t = map->types.btf_value ?
		pb_bpf_btf_skip(b, map->types.btf_value, true, NULL) : NULL;
	struct value v = { l, map };

	if (!t || !load_work(l, pb_btf_vlen(t), &map->why))
		return;
	if (pb_btf_kind(t) == BTF_KIND_STRUCT) {
		for (uint32_t i = 0; i < pb_btf_vlen(t); i++)
			if (pb_btf_member_bits(t, i) % 8 == 0)
				look_at(&v, pb_btf_members(t)[i].type,
					pb_btf_member_bits(t, i) / 8);
	} else if (pb_btf_kind(t) == BTF_KIND_DATASEC) {
		for (uint32_t i = 0; i < pb_btf_vlen(t); i++) {
			const struct btf_type *var = pb_bpf_btf_type(b, pb_btf_vars(t)[i].type);

			if (var && pb_btf_kind(var) == BTF_KIND_VAR)
				look_at(&v, var->type, pb_btf_vars(t)[i].offset);
		}
	}
}

struct pb_bpf_object_map *load_map_add(struct load *l, uint32_t section, uint64_t off,
				       uint64_t size)
{
	struct pb_bpf_object *o = &l->object;
	uint32_t room = l->room_maps;
	struct map_place *places = load_grow(l, l->places, o->nr_maps, &room, sizeof(*places));
	struct pb_bpf_object_map *map;

	room = l->room_maps;
	map = load_grow(l, o->maps, o->nr_maps, &room, sizeof(*map));
	if (!places || !map)
		return NULL;
	l->room_maps = room;
	l->places = places;
	o->maps = map;
	places[o->nr_maps] = (struct map_place){ section, off, size };
	map += o->nr_maps++;
	*map = (struct pb_bpf_object_map){ .types = { .spin_lock_off = -1, .timer_off = -1 } };
	return map;
}
