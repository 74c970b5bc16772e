/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Reads the maps in section .maps. Each variable in the section declares a map. The variable's type
 * is a structure, whose members are the map's attributes. If an attribute is a number, the member
 * is a pointer to an array of that length (__uint). If an attribute is a type, the member is a
 * pointer to that type (__type). __array(values, ...) has the type of the maps or programs that the
 * map holds, and the map's initial elements.
 */
#include <errno.h>
#include <string.h>

#include "bpfload/load_priv.h"

struct def {
	uint32_t type, key_size, value_size, max_entries, map_flags, numa_node, pinning, map_extra;
	uint32_t key, value;		/* BTF ids of the types of key and value */
	bool has_type, has_key, has_value;
};

static const struct {
	const char *name;
	size_t off;
} numbers[] = {
	{ "type", offsetof(struct def, type) },
	{ "key_size", offsetof(struct def, key_size) },
	{ "value_size", offsetof(struct def, value_size) },
	{ "max_entries", offsetof(struct def, max_entries) },
	{ "map_flags", offsetof(struct def, map_flags) },
	{ "numa_node", offsetof(struct def, numa_node) },
	{ "pinning", offsetof(struct def, pinning) },
	{ "map_extra", offsetof(struct def, map_extra) },
};

static const struct btf_type *pointee(const struct pb_bpf_btf *b, uint32_t type, uint32_t *id)
{
	const struct btf_type *t = pb_bpf_btf_skip(b, type, false, NULL);

	if (!t || pb_btf_kind(t) != BTF_KIND_PTR)
		return NULL;
	*id = t->type;
	return pb_bpf_btf_type(b, t->type);
}

static bool read_number(struct load *l, const struct btf_member *m, const char *name, struct def *d)
{
	uint32_t id;
	const struct btf_type *t = pointee(l->object.btf, m->type, &id);

	if (!t || pb_btf_kind(t) != BTF_KIND_ARRAY)
		return false;
	for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
		if (!strcmp(name, numbers[i].name)) {
			memcpy((char *)d + numbers[i].off, &pb_btf_array(t)->nelems, 4);
			return true;
		}
	return false;
}

/* Sets a size. If the size was set before, both values must be the same. */
static bool set_size(uint32_t *size, int64_t bytes)
{
	if (bytes <= 0 || (*size && *size != (uint64_t)bytes))
		return false;
	*size = (uint32_t)bytes;
	return true;
}

static bool read_type(struct load *l, const struct btf_member *m, bool key, struct def *d)
{
	uint32_t id = 0;

	return pointee(l->object.btf, m->type, &id) && set_size(key ? &d->key_size : &d->value_size,
		pb_bpf_btf_size(l->object.btf, id)) &&
		((key ? (d->key = id) : (d->value = id)), true);
}

static void read_def(struct load *l, const struct btf_type *t, struct pb_bpf_object_map *map,
		     bool inner);

/* Reads __array(values, ...), an array whose elements point to a map's structure or to
 * functions. */
static bool read_values(struct load *l, const struct btf_type *t, uint32_t i,
			struct pb_bpf_object_map *map, uint32_t type)
{
	const struct pb_bpf_btf *b = l->object.btf;
	const struct btf_type *a = pb_bpf_btf_skip(b, pb_btf_members(t)[i].type, false, NULL), *p;
	struct pb_bpf_object_map *inner;
	uint32_t id;

	if (i + 1 != pb_btf_vlen(t) || !a || pb_btf_kind(a) != BTF_KIND_ARRAY ||
	    pb_btf_array(a)->nelems)
		return false;
	p = pointee(b, pb_btf_array(a)->type, &id);
	p = p ? pb_bpf_btf_skip(b, id, true, NULL) : NULL;
	if (type == BPF_MAP_TYPE_PROG_ARRAY)
		return p && pb_btf_kind(p) == BTF_KIND_FUNC_PROTO;
	if (!p || pb_btf_kind(p) != BTF_KIND_STRUCT)
		return false;
	inner = load_alloc(l, sizeof(*inner));
	if (!inner)
		return false;
	inner->kind = PB_BPF_MAP_INNER;
	inner->section = map->section;
	inner->name = load_printf(l, "%s.inner", map->name);
	inner->types.spin_lock_off = inner->types.timer_off = -1;
	map->inner = inner;
	if (!inner->name)
		return false;
	read_def(l, p, inner, true);
	return true;
}

static bool is_map_of_maps(uint32_t type)
{
	return type == BPF_MAP_TYPE_ARRAY_OF_MAPS || type == BPF_MAP_TYPE_HASH_OF_MAPS;
}

static bool read_member(struct load *l, const struct btf_type *t, uint32_t i,
			struct pb_bpf_object_map *map, struct def *d, bool inner)
{
	const struct btf_member *m = &pb_btf_members(t)[i];
	const char *name = pb_bpf_btf_str(l->object.btf, m->name_off);

	if (!strcmp(name, "key") || !strcmp(name, "value"))
		return read_type(l, m, name[0] == 'k', d);
	if (strcmp(name, "values"))
		return read_number(l, m, name, d);
	if (inner || !(is_map_of_maps(d->type) || d->type == BPF_MAP_TYPE_PROG_ARRAY))
		return false;
	if (!d->value_size)
		d->value_size = 4;
	return d->value_size == 4 && read_values(l, t, i, map, d->type);
}

static void read_def(struct load *l, const struct btf_type *t, struct pb_bpf_object_map *map,
		     bool inner)
{
	struct def d = {};

	for (uint32_t i = 0; i < pb_btf_vlen(t) && !map->why; i++) {
		const char *name = pb_bpf_btf_str(l->object.btf, pb_btf_members(t)[i].name_off);

		if (!load_compare(l, 1, name, &map->why) || !read_member(l, t, i, map, &d, inner))
			load_error(l, &map->why, "map %s: attribute %s isn't understood", map->name,
				   name);
	}
	if (!d.type)
		load_error(l, &map->why, "map %s has no type", map->name);
	if (d.pinning > 1 || (inner && d.pinning))
		load_error(l, &map->why, "map %s: pinning %u isn't known", map->name, d.pinning);
	if (map->inner && map->inner->why)
		load_error(l, &map->why, "%s", map->inner->why);
	map->attr = (struct pb_bpf_map_attr){ d.type, d.key_size, d.value_size, d.max_entries,
		d.map_flags };
	map->numa_node = d.numa_node;
	map->extra = d.map_extra;
	map->pin_by_name = d.pinning == 1;
	map->types.btf_key = d.key;
	map->types.btf_value = d.value;
	load_map_types(l, map);
}

/* Returns the map's offset in the section, from the map's symbol. If the map has no symbol, returns
 * `off`, which is from BTF. The symbol's offset takes precedence, because bpftool's linker may
 * write a wrong offset, 0, to BTF. */
static uint64_t offset_of(const struct load *l, uint32_t section, const char *name, uint64_t off)
{
	for (uint32_t i = 1; i < l->elf.nr_syms; i++) {
		Elf64_Sym s = pb_bpf_elf_sym(&l->elf, i);

		if (s.st_shndx == section && ELF64_ST_BIND(s.st_info) != STB_LOCAL &&
		    pb_bpf_elf_sym_is(&l->elf, &s, name))
			return s.st_value;
	}
	return off;
}

static int add_map(struct load *l, uint32_t section, const struct btf_var_secinfo *v)
{
	const struct pb_bpf_btf *b = l->object.btf;
	const struct btf_type *var = pb_bpf_btf_type(b, v->type), *t;
	uint64_t size = l->elf.sh[section].sh_size, off;
	struct pb_bpf_object_map *map;
	const char *spent = NULL;

	if (!var || pb_btf_kind(var) != BTF_KIND_VAR)
		return load_refuse(l, "BTF lists an entry of section .maps that isn't a variable");
	if (!load_compare(l, l->elf.nr_syms, pb_bpf_btf_name(b, var), &spent))
		return load_refuse(l, "%s", spent);
	off = offset_of(l, section, pb_bpf_btf_name(b, var), v->offset);
	if (off > size || v->size > size - off)
		return load_refuse(l, "map %s is outside section .maps", pb_bpf_btf_name(b, var));
	map = load_map_add(l, section, off, v->size);
	if (!map)
		return -ENOMEM;
	map->kind = PB_BPF_MAP_DECLARED;
	map->section = ".maps";
	map->name = load_text(l, pb_bpf_btf_name(b, var));
	if (!map->name)
		return -ENOMEM;
	t = pb_bpf_btf_skip(b, var->type, true, NULL);
	if (t && pb_btf_kind(t) == BTF_KIND_STRUCT)
		read_def(l, t, map, false);
	else
		load_error(l, &map->why, "map %s isn't declared by a structure", map->name);
	return 0;
}

int load_maps_btf(struct load *l, uint32_t section)
{
	const struct pb_bpf_btf *b = l->object.btf;
	uint32_t id = b ? pb_bpf_btf_find(b, ".maps", BTF_KIND_DATASEC) : 0;
	const struct btf_type *t = id ? pb_bpf_btf_type(b, id) : NULL;
	int ret = 0;

	if (!t)
		return load_refuse(l, "the object has no BTF for its section .maps");
	l->maps_btf = id;
	for (uint32_t i = 0; i < pb_btf_vlen(t) && !ret; i++)
		ret = add_map(l, section, &pb_btf_vars(t)[i]);
	return ret;
}

/* --- initial elements of maps ----------------------------------------------- */

/* Returns the offset of `values` in the map's variable; 0: the variable has no `values`. */
static uint64_t values_at(const struct load *l, uint32_t number)
{
	const struct pb_bpf_btf *b = l->object.btf;
	const struct btf_type *sec = pb_bpf_btf_type(b, l->maps_btf);
	const struct btf_type *var = pb_bpf_btf_type(b, pb_btf_vars(sec)[number].type);
	const struct btf_type *t = pb_bpf_btf_skip(b, var->type, true, NULL);
	uint32_t n = t && pb_btf_is_composite(t) ? pb_btf_vlen(t) : 0;

	if (!n || strcmp(pb_bpf_btf_str(b, pb_btf_members(t)[n - 1].name_off), "values"))
		return 0;
	return pb_btf_member_bits(t, n - 1) / 8;
}

/* Returns the number of the map whose bytes contain this offset of the section. UINT32_MAX: there
 * is no such map. */
static uint32_t map_over(const struct load *l, uint32_t section, uint64_t off)
{
	for (uint32_t i = 0; i < l->object.nr_maps; i++)
		if (l->places[i].section == section && off >= l->places[i].off &&
		    off - l->places[i].off < l->places[i].size)
			return i;
	return UINT32_MAX;
}

/* Finds the map or the program that symbol s names, and stores its number in *slot. */
static bool slot_of(struct load *l, const Elf64_Sym *s, bool prog, struct pb_bpf_object_slot *slot)
{
	const struct load_func *f;

	slot->prog = prog;
	if (!prog) {
		slot->number = map_over(l, s->st_shndx, s->st_value);
		return slot->number != UINT32_MAX && l->places[slot->number].off == s->st_value;
	}
	f = load_func_at(l, s->st_shndx, s->st_value / 8);
	if (!f || !f->entry)
		return false;
	slot->number = f->number;
	return true;
}

static int add_slot(struct load *l, uint32_t section, const Elf64_Rel *rel)
{
	Elf64_Sym s = pb_bpf_elf_sym(&l->elf, ELF64_R_SYM(rel->r_info));
	uint32_t number = map_over(l, section, rel->r_offset);
	struct pb_bpf_object_map *map = number == UINT32_MAX ? NULL : &l->object.maps[number];
	uint64_t at, values = map && map->kind == PB_BPF_MAP_DECLARED ? values_at(l, number) : 0;
	struct pb_bpf_object_slot slot = {}, *slots;
	const char *spent = NULL;
	uint32_t room;

	if (!load_work(l, 2ull * l->object.nr_maps, &spent))	/* for map_over() */
		return load_refuse(l, "%s", spent);
	if (!values)
		return load_refuse(l, "a relocation of .maps belongs to no map's values");
	if (map->attr.key_size > sizeof(slot.index)) {
		load_error(l, &map->why, "map %s: keys of initial elements have 4 bytes, not %u",
			   map->name, map->attr.key_size);
		return 0;
	}
	at = rel->r_offset - l->places[number].off;
	if (at < values || (at - values) % 8 ||
	    !slot_of(l, &s, map->attr.type == BPF_MAP_TYPE_PROG_ARRAY, &slot)) {
		load_error(l, &map->why, "map %s can't hold %s", map->name,
			   pb_bpf_elf_sym_name(&l->elf, &s));
		return 0;
	}
	slot.index = (uint32_t)((at - values) / 8);
	/* Compute the room that the array `slots` has, because the map doesn't store it:
	 * load_grow() begins with room for 4 elements, and doubles it. */
	for (room = 4; room < map->nr_slots; room *= 2)
		;
	room = map->nr_slots ? room : 0;
	slots = load_grow(l, (void *)map->slots, map->nr_slots, &room, sizeof(*slots));
	if (!slots)
		return -ENOMEM;
	slots[map->nr_slots++] = slot;
	map->slots = slots;
	return 0;
}

int load_map_slots(struct load *l)
{
	uint32_t section = pb_bpf_elf_find(&l->elf, ".maps");

	return section ? load_each_rel(l, section, add_slot) : 0;
}
