/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Prints a map's elements by their types, like gdb, or as bytes, like bpftool. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "bpf/map/map_sys.h"
#include "cli/bpf/bpf_common.h"
#include "cli/bpf/bpf_typed.h"

bool bpf_map_is_per_cpu(const struct pb_bpf_map *map)
{
	return map->attr.type == BPF_MAP_TYPE_PERCPU_HASH ||
	       map->attr.type == BPF_MAP_TYPE_PERCPU_ARRAY ||
	       map->attr.type == BPF_MAP_TYPE_LRU_PERCPU_HASH;
}

static void show_bytes(const char *what, const uint8_t *p, uint32_t n)
{
	bool lines = n > 16;

	printf("%s:%s", what, lines ? "\n" : "");
	for (uint32_t i = 0; i < n; i++)
		printf("%s%02x", !lines ? " " : i % 16 ? " " : i ? "\n" : "", p[i]);
}

/* Prints a key or a value. Returns whether the text is on one line. */
static bool show_part(const char *what, const struct bpf_words *w, uint32_t type, const uint8_t *p,
		      uint32_t n)
{
	if (!w || !bpf_typed_is(w->btf, type, n)) {
		show_bytes(what, p, n);
		return n <= 16;
	}
	printf("%s: ", what);
	bpf_typed_print(stdout, w->btf, type, p, n);
	return true;
}

static bool is_typed(const struct pb_bpf_map *map, const struct bpf_words *w)
{
	return w && bpf_typed_is(w->btf, map->types.btf_value, map->attr.value_size);
}

static bool is_zero(const uint8_t *p, uint32_t n)
{
	while (n && !p[n - 1])
		n--;
	return !n;
}

/* Prints the value of each per-CPU slot. If values are printed by type, skips slots whose value is
 * zero, since there are more slots than processors. */
static void show_cpu_slots(const struct pb_bpf_map *map, const struct bpf_words *w,
			   const uint8_t *value)
{
	uint32_t size = map->attr.value_size, each = (size + 7) / 8 * 8;
	bool typed = is_typed(map, w);
	char what[32];

	for (uint32_t cpu = 0; cpu < map->cpu_slots; cpu++, value += each) {
		if (typed && is_zero(value, size))
			continue;
		printf(typed ? "  " : "\n");
		snprintf(what, sizeof(what), "value (CPU %02u)", cpu);
		show_part(what, w, map->types.btf_value, value, size);
	}
	putchar('\n');
}

/* Prints a stack, the innermost address first. All further addresses are return addresses. The byte
 * at a return address comes right after a call, and may belong to the next function. So the printed
 * name is that of the byte before the return address. */
static void show_stack(const struct pb_bpf_map *map, const struct bpf_words *w, const uint8_t *key,
		       const uint8_t *value)
{
	char name[256];
	uint64_t ip;
	uint32_t id;

	memcpy(&id, key, sizeof(id));
	printf("key: %u\n", id);
	for (uint32_t i = 0; i < map->attr.value_size / 8; i++) {
		memcpy(&ip, value + i * 8ul, 8);
		if (!ip)
			break;
		w->name(w->arg, ip - (i != 0), name, sizeof(name));
		printf("\t%#lx  %s\n", ip, name);
	}
}

void bpf_map_show_element(const struct pb_bpf_map *map, const uint8_t *key, const uint8_t *value,
			  const struct bpf_words *w)
{
	uint32_t size = map->attr.value_size;
	bool short_key;

	if (w && w->name && map->attr.type == BPF_MAP_TYPE_STACK_TRACE &&
	    !(map->attr.flags & BPF_F_STACK_BUILD_ID)) {
		show_stack(map, w, key, value);
		return;
	}
	if (w && bpf_typed_is_section(w->btf, map->types.btf_value)) {
		bpf_typed_variables(stdout, w->btf, map->types.btf_value, value, size);
		return;
	}
	short_key = show_part("key", w, map->types.btf_key, key, map->attr.key_size);
	if (bpf_map_is_per_cpu(map)) {
		show_cpu_slots(map, w, value);
		return;
	}
	if (!short_key || (size > 16 && !is_typed(map, w)))
		putchar('\n');
	else
		printf("  ");
	show_part("value", w, map->types.btf_value, value, size);
	putchar('\n');
}

/* Prints a queue or stack, which has no keys. Prints only the next element, which stays in the
 * map. */
static int dump_keyless(struct pb_bpf_map *map, uint8_t *value, const struct bpf_words *w)
{
	int err = pb_bpf_map_lookup_elem(map, NULL, value, 0);

	if (!err)
		show_part("value", w, map->types.btf_value, value, map->attr.value_size);
	printf("%sFound %d element%s\n", err ? "" : "\n", !err, err ? "s" : "");
	return err && err != -ENOENT ? pb_error("bpf map", "%s", strerror(-err)) : 0;
}

/* If values are printed by type, elements of an array whose value is still zero are left out.
 * Returns whether this element is left out. */
static bool is_untouched(const struct pb_bpf_map *map, const struct bpf_words *w,
			 const uint8_t *value)
{
	bool array = map->attr.type == BPF_MAP_TYPE_ARRAY ||
		     map->attr.type == BPF_MAP_TYPE_PERCPU_ARRAY;

	return array && is_typed(map, w) && is_zero(value, pb_bpf_map_value_size(map));
}

static void show_number(uint32_t nr, uint32_t zeros)
{
	printf("Found %u element%s", nr, pb_plural(nr));
	if (zeros)
		printf(", %u of them zero", zeros);
	putchar('\n');
}

struct shown {
	const struct bpf_words *w;
	uint32_t nr, zeros;
};

static int show_element(void *arg, const struct pb_bpf_map *map, const uint8_t *key,
			const uint8_t *value, int err)
{
	struct shown *shown = arg;
	const struct bpf_words *w = shown->w;

	if (err) {
		show_part("key", w, map->types.btf_key, key, map->attr.key_size);
		printf("  value: <%s>\n", strerror(-err));
	} else if (is_untouched(map, w, value)) {
		shown->zeros++;
	} else {
		bpf_map_show_element(map, key, value, w);
	}
	shown->nr++;
	return 0;
}

static int show_keyless(struct pb_bpf_map *map, const struct bpf_words *w)
{
	uint8_t *value = calloc(1, pb_bpf_map_value_size(map) + 8);
	int err = value ? dump_keyless(map, value, w) :
		  pb_error("bpf map", "%s: no memory for an element", map->name);

	free(value);
	return err;
}

int bpf_map_show(struct pb_bpf_map *map, const struct bpf_words *w)
{
	struct shown shown = { .w = w };
	int err;

	if (!map->attr.key_size)
		return show_keyless(map, w);
	err = bpf_map_each("bpf map", map, show_element, &shown);
	if (!w || !bpf_typed_is_section(w->btf, map->types.btf_value))
		show_number(shown.nr, shown.zeros);
	return err;
}
