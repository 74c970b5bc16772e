/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Reads the maps that section `maps` declares (the legacy form). Adds a map for each section of
 * variables, for example .data. */
#include <ctype.h>
#include <errno.h>
#include <string.h>

#include "bpfload/load_priv.h"

#define PAGE 4096u

/* --- struct bpf_map_def ---------------------------------------------------- */

struct legacy {
	uint32_t type, key_size, value_size, max_entries, flags;
};

static int add_legacy(struct load *l, const Elf64_Sym *s, const uint8_t *p, uint64_t size)
{
	struct pb_bpf_object_map *map = load_map_add(l, s->st_shndx, s->st_value, size);
	struct legacy def = {};

	if (!map)
		return -ENOMEM;
	map->kind = PB_BPF_MAP_LEGACY;
	map->section = "maps";
	map->name = load_text(l, pb_bpf_elf_sym_name(&l->elf, s));
	if (!map->name)
		return -ENOMEM;
	memcpy(&def, p, size < sizeof(def) ? size : sizeof(def));
	map->attr = (struct pb_bpf_map_attr){ def.type, def.key_size, def.value_size,
		def.max_entries, def.flags };
	if (size < 16)
		load_error(l, &map->why, "map %s: its definition is shorter than 16 bytes",
			   map->name);
	for (uint64_t i = sizeof(def); i < size; i++)
		if (p[i])
			load_error(l, &map->why,
				   "map %s: its definition is longer than struct bpf_map_def",
				   map->name);
	return 0;
}

static int load_legacy_maps(struct load *l)
{
	uint32_t section = pb_bpf_elf_find(&l->elf, "maps"), nr = 0;
	size_t size;
	const uint8_t *p = pb_bpf_elf_data(&l->elf, section, &size);
	const char *spent = NULL;
	int ret = 0;

	for (uint32_t i = 1; p && i < l->elf.nr_syms; i++) {
		Elf64_Sym s = pb_bpf_elf_sym(&l->elf, i);

		nr += s.st_shndx == section && ELF64_ST_TYPE(s.st_info) != STT_SECTION;
	}
	for (uint32_t i = 1; nr && i < l->elf.nr_syms && !ret; i++) {
		Elf64_Sym s = pb_bpf_elf_sym(&l->elf, i);

		if (s.st_shndx != section || ELF64_ST_TYPE(s.st_info) == STT_SECTION)
			continue;
		if (!s.st_size)
			s.st_size = size / nr;
		if (s.st_value > size || s.st_size > size - s.st_value)
			return load_refuse(l, "a map extends beyond the section `maps'");
		if (!load_work(l, s.st_size, &spent))	/* the maps may overlap */
			return load_refuse(l, "%s", spent);
		ret = add_legacy(l, &s, p + s.st_value, s.st_size);
	}
	return ret;
}

/* --- variables ------------------------------------------------------------- */

static bool begins(const char *name, const char *section)
{
	size_t n = strlen(section);

	return !strncmp(name, section, n) && (!name[n] || name[n] == '.');
}

/* Returns the kind of variables that a section has; 0: the section has no variables. */
static int kind_of(const struct load *l, uint32_t section)
{
	const char *name = pb_bpf_elf_name(&l->elf, section);
	uint32_t type = l->elf.sh[section].sh_type;

	if (!l->elf.sh[section].sh_size)
		return 0;
	if (type == SHT_PROGBITS && begins(name, ".data"))
		return PB_BPF_MAP_DATA;
	if (type == SHT_PROGBITS && begins(name, ".rodata"))
		return PB_BPF_MAP_RODATA;
	if (type == SHT_NOBITS && begins(name, ".bss"))
		return PB_BPF_MAP_BSS;
	return 0;
}

/* Returns the name of the map for a section of variables. For .rodata, the name is
 * "OBJECT.rodata", cut as libbpf cuts it. For .rodata.NAME, it is the section's name. */
static const char *variables_name(struct load *l, const char *section)
{
	char name[BPF_OBJ_NAME_LEN + 1];
	size_t n = strlen(section), head = strlen(l->object.name), most;

	if (strchr(section + 1, '.'))
		return load_text(l, section);
	most = BPF_OBJ_NAME_LEN - 1 - (n > 7 ? n < BPF_OBJ_NAME_LEN ? n : BPF_OBJ_NAME_LEN - 1 : 7);
	head = head < most ? head : most;
	memcpy(name, l->object.name, head);
	n = n < BPF_OBJ_NAME_LEN - 1 - head ? n : BPF_OBJ_NAME_LEN - 1 - head;
	memcpy(name + head, section, n);
	name[head + n] = 0;
	for (char *p = name; *p; p++)
		if (!isalnum((unsigned char)*p) && *p != '_' && *p != '.')
			*p = '_';
	return load_text(l, name);
}

/* Whether the section has a variable that isn't static. Only then user space must be able to map
 * the section's map. */
static bool has_global(struct load *l, struct pb_bpf_object_map *map)
{
	const struct btf_type *t = map->types.btf_value ?
		pb_bpf_btf_type(l->object.btf, map->types.btf_value) : NULL;

	if (!t || !load_work(l, pb_btf_vlen(t), &map->why))
		return false;
	for (uint32_t i = 0; i < pb_btf_vlen(t); i++) {
		const struct btf_type *v = pb_bpf_btf_type(l->object.btf, pb_btf_vars(t)[i].type);

		if (v && pb_btf_kind(v) == BTF_KIND_VAR && pb_btf_int(v) != BTF_VAR_STATIC)
			return true;
	}
	return false;
}

static int add_variables(struct load *l, uint32_t section, int kind)
{
	const char *name = pb_bpf_elf_name(&l->elf, section);
	uint64_t bytes = l->elf.sh[section].sh_size;
	struct pb_bpf_object_map *map = load_map_add(l, section, 0, bytes);
	size_t size;

	if (!map)
		return -ENOMEM;
	map->kind = (uint8_t)kind;
	map->section = load_text(l, name);
	map->name = variables_name(l, name);
	if (!map->section || !map->name)
		return -ENOMEM;
	map->contents = pb_bpf_elf_data(&l->elf, section, &size);
	if (bytes > INT32_MAX) {
		load_error(l, &map->why, "section %s is too large for a map", name);
		bytes = 0;
	}
	if (l->object.btf && load_compare(l, l->object.btf->nr, name, &map->why))
		map->types.btf_value = pb_bpf_btf_find(l->object.btf, name, BTF_KIND_DATASEC);
	map->attr = (struct pb_bpf_map_attr){ BPF_MAP_TYPE_ARRAY, 4, (uint32_t)bytes, 1,
		(kind == PB_BPF_MAP_RODATA ? BPF_F_RDONLY_PROG : 0) |
		(has_global(l, map) ? BPF_F_MMAPABLE : 0) };
	load_map_types(l, map);
	return 0;
}

static int load_variables(struct load *l)
{
	int ret = 0;

	for (uint32_t i = 1; i < l->elf.nr && !ret; i++) {
		int kind = kind_of(l, i);

		if (kind)
			ret = add_variables(l, i, kind);
	}
	return ret;
}

int load_maps(struct load *l)
{
	uint32_t section = pb_bpf_elf_find(&l->elf, ".maps");
	int ret = section ? load_maps_btf(l, section) : 0;

	if (!ret)
		ret = load_legacy_maps(l);
	if (!ret)
		ret = load_variables(l);
	return ret;
}

struct pb_bpf_map_attr pb_bpf_object_map_attr(const struct pb_bpf_object_map *map, uint32_t cpus)
{
	return pb_bpf_map_attr_settle(map->attr, cpus);
}

struct pb_bpf_map_attr pb_bpf_map_attr_settle(struct pb_bpf_map_attr a, uint32_t cpus)
{
	if (a.type == BPF_MAP_TYPE_PERF_EVENT_ARRAY && !a.max_entries)
		a.max_entries = cpus;
	if (a.type == BPF_MAP_TYPE_RINGBUF && a.max_entries && a.max_entries <= 1u << 31) {
		uint32_t n = PAGE;

		while (n < a.max_entries)
			n *= 2;
		a.max_entries = n;
	}
	return a;
}
