/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Reads pinned programs into a command's struct bpf_session. The elements of program arrays and of
 * maps of maps are ids. The programs and maps with these ids are loaded, too. */
#include <stdlib.h>
#include <string.h>

#include "bpf/map/map_sys.h"
#include "cli/bpf/bpf_pin.h"

/* Makes functions in the form that the verifier takes. Their names stay in the file's bytes.
 * Returns NULL if the file is damaged or memory is short. */
static struct pb_bpf_func *read_funcs(struct bpf_pin_func *from, uint32_t nr, uint32_t nr_insns)
{
	struct pb_bpf_func *f = calloc(nr + 1ul, sizeof(*f));

	for (uint32_t i = 0; f && i < nr; i++) {
		f[i] = from[i].func;
		from[i].name[sizeof(from[i].name) - 1] = 0;
		f[i].name = from[i].name;
		if (f[i].insn >= nr_insns || (i && f[i].insn <= f[i - 1].insn)) {
			free(f);
			return NULL;
		}
	}
	return f;
}

int bpf_pin_unit(struct bpf_session *s, const char *path, struct bpf_unit *u,
		 struct bpf_pin_prog **file)
{
	struct bpf_pin_func *funcs;
	const uint32_t *ids;
	size_t size;

	*u = (struct bpf_unit){ 0 };
	*file = bpf_pin_read(s->command, path, &size);
	if (!*file)
		return 1;
	funcs = (struct bpf_pin_func *)(*file + 1);
	*u = (struct bpf_unit){
		.name = (*file)->name, .type = pb_bpf_type_of((*file)->type),
		.attach_type = (*file)->attach_type, .gpl = (*file)->gpl,
		.insns = (const struct bpf_insn *)(funcs + (*file)->nr_funcs),
		.nr = (*file)->nr_insns, .nr_funcs = (*file)->nr_funcs,
	};
	u->funcs = read_funcs(funcs, u->nr_funcs, u->nr);
	if (!u->funcs)
		return pb_error(s->command, "%s: damaged", path);
	if (!u->type)
		return pb_error(s->command, "%s: programs of its type aren't supported", path);
	u->id = (*file)->id;
	u->maps = calloc((*file)->nr_maps + 1, sizeof(*u->maps));
	u->nr_maps = (*file)->nr_maps;
	if (!u->maps)
		return pb_error(s->command, "out of memory");
	ids = bpf_pin_map_ids(*file);
	for (uint32_t i = 0; i < u->nr_maps; i++) {
		if (!ids[i])			/* the map wasn't made; the verifier rejects
						 * programs that use it */
			continue;
		u->maps[i] = bpf_session_map_of(s, ids[i]);
		if (u->maps[i])
			continue;
		if (bpf_pin_map(s, NULL, ids[i], PB_BPF_MAP_READ | PB_BPF_MAP_WRITE))
			return 1;
		u->maps[i] = s->map[s->nr_maps - 1];
	}
	return 0;
}

void bpf_pin_unit_free(struct bpf_unit *u)
{
	free((void *)u->funcs);
	free(u->maps);
}

/* ---- maps and programs in maps -------------------------------------------------------- */

/* Loads the pinned program with this id. If the program is gone, does nothing: a map element with
 * its id then counts as empty. */
static int load_id(struct bpf_session *s, uint32_t id)
{
	struct bpf_pin_prog *file;
	char path[BPF_PIN_PATH];
	struct bpf_loaded l;
	struct bpf_unit u;
	int ret;

	if (s->objects.find(&s->objects, PB_BPF_OBJECT_PROG, id) ||
	    !bpf_pin_find(s->command, id, path))
		return 0;
	if (s->nr_progs == BPF_MAX_MAPS)
		return pb_error(s->command, "no more than %d programs", BPF_MAX_MAPS);
	ret = bpf_pin_unit(s, path, &u, &file);
	if (!ret && bpf_session_load(s, &u, &l))
		ret = pb_error(s->command, "%s: rejected: %s", path, bpf_session_reason(s));
	bpf_pin_unit_free(&u);
	return ret;
}

static int open_element(void *arg, const struct pb_bpf_map *map, const uint8_t *key,
			const uint8_t *value, int err)
{
	struct bpf_session *s = arg;
	uint32_t id;

	if (err)
		return 0;
	memcpy(&id, value, sizeof(id));
	if (map->attr.type == BPF_MAP_TYPE_PROG_ARRAY)
		return load_id(s, id);
	bpf_pin_map_id(s, id);
	return 0;
}

int bpf_pin_elements(struct bpf_session *s)
{
	int ret = 0;

	/* the loop opens further maps; they are added at the end, so the loop reaches them too */
	for (uint32_t i = 0; i < s->nr_maps && !ret; i++) {
		uint32_t type = s->map[i] ? s->map[i]->attr.type : 0;

		/* ids in a map that is only for writing can't be read */
		if (type && !(s->map[i]->access & PB_BPF_MAP_READ))
			continue;
		if (type == BPF_MAP_TYPE_PROG_ARRAY || type == BPF_MAP_TYPE_ARRAY_OF_MAPS ||
		    type == BPF_MAP_TYPE_HASH_OF_MAPS)
			ret = bpf_map_each(s->command, s->map[i], open_element, s);
	}
	return ret;
}
