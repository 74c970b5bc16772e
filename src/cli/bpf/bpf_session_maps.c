/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The maps of a session: finds them by their ids, and opens pinned maps. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "bpf/map/map_sys.h"
#include "cli/bpf/bpf_pin.h"

struct pb_bpf_map *bpf_session_map_of(const struct bpf_session *s, uint32_t id)
{
	for (uint32_t i = 0; i < s->nr_maps; i++)
		if (s->map[i] && s->map[i]->id == id)
			return s->map[i];
	for (uint32_t i = 0; s->made && i < s->object->nr_maps; i++)
		if (s->made->maps[i].map && s->made->maps[i].map->id == id)
			return s->made->maps[i].map;
	return NULL;
}

static int open_map(struct bpf_session *s, const char *path, uint32_t id, uint8_t access)
{
	struct pb_bpf_pins *pins = bpf_pins(s->command);
	struct pb_bpf_map *map = &s->maps[s->nr_maps];
	int err;

	if (!pins)
		return -errno;
	if (s->nr_maps == BPF_MAX_MAPS)
		return -E2BIG;
	err = path ? pb_bpf_obj_get(pins, map, path, access & PB_BPF_MAP_WRITE ? 0 : BPF_F_RDONLY)
		   : pb_bpf_pins_get_id(pins, map, id, access);
	if (err)
		return err;
	map->objects = &s->objects;
	s->map[s->nr_maps++] = map;
	return 0;
}

int bpf_pin_map(struct bpf_session *s, const char *path, uint32_t id, uint8_t access)
{
	char number[16];
	int err;

	if (!bpf_pins(s->command))
		return 1;
	err = open_map(s, path, id, access);
	if (err == -E2BIG)
		return pb_error(s->command, "no more than %d maps", BPF_MAX_MAPS);
	snprintf(number, sizeof(number), "map %u", id);
	return !err ? 0 : pb_error(s->command, "%s: %s", path ? path : number,
				   err == -EACCES ? "no map" : strerror(-err));
}

struct pb_bpf_map *bpf_pin_map_id(struct bpf_session *s, uint32_t id)
{
	struct pb_bpf_map *map = bpf_session_map_of(s, id);

	return map || open_map(s, NULL, id, PB_BPF_MAP_READ | PB_BPF_MAP_WRITE) ? map :
	       s->map[s->nr_maps - 1];
}
