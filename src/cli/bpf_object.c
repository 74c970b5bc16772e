/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Compiled objects: their maps are made and filled, their programs are units. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bpf/map_sys.h"
#include "cli/bpf.h"

static uint32_t processors(void)
{
	long n = sysconf(_SC_NPROCESSORS_CONF);

	return n > 0 ? (uint32_t)n : 1;
}

static int make_map(struct bpf_session *s, const struct pb_bpf_object_map *m)
{
	struct pb_bpf_map_spec spec = {
		.attr = pb_bpf_object_map_attr(m, processors()), .types = m->types,
		.lanes = s->lanes ? s->lanes : processors(),
	};

	if (m->inner)
		spec.inner = pb_bpf_object_map_attr(m->inner, processors());
	strncpy(spec.name, m->name, sizeof(spec.name) - 1);
	return bpf_session_map(s, &spec);
}

/* What is in it from the beginning. */
static int fill_map(struct bpf_session *s, const struct pb_bpf_object_map *m, uint32_t nr)
{
	struct pb_bpf_map *map = s->map[nr];
	uint32_t zero = 0;
	int err = 0;

	if (m->contents)
		err = pb_bpf_map_update_elem(map, &zero, m->contents, BPF_ANY);
	for (uint32_t i = 0; i < m->nr_slots && !err; i++)
		if (!m->slots[i].prog)
			err = pb_bpf_map_update_elem(map, &m->slots[i].index, &m->slots[i].number, BPF_ANY);
	if (!err && (m->kind == PB_BPF_MAP_RODATA || m->kind == PB_BPF_MAP_KCONFIG))
		err = pb_bpf_map_freeze(map);
	return err;
}

static int make_maps(struct bpf_session *s, const struct pb_bpf_object *o)
{
	for (uint32_t i = 0; i < o->nr_maps; i++) {
		const struct pb_bpf_object_map *m = &o->maps[i];
		int err = m->why ? -EINVAL : make_map(s, m);

		if (err) {
			pb_error(s->command, "map %s: %s", m->name, m->why ? m->why : strerror(-err));
			return BPF_REJECTED;
		}
	}
	for (uint32_t i = 0; i < o->nr_maps; i++) {
		int err = fill_map(s, &o->maps[i], i);

		if (err) {
			pb_error(s->command, "map %s: its contents: %s", o->maps[i].name, strerror(-err));
			return BPF_REJECTED;
		}
	}
	return 0;
}

int bpf_open_object(struct bpf_session *s, const char *path, struct pb_bpf_object **object)
{
	struct pb_bpf_object_opts opts = { 0 };
	char why[512] = "";
	int err = pb_bpf_object_open(path, &opts, object, why, sizeof(why)), ret;

	if (err) {
		pb_error(s->command, "%s: %s", path, *why ? why : strerror(-err));
		return BPF_USAGE;
	}
	ret = make_maps(s, *object);
	if (ret)
		pb_bpf_object_close(*object);
	return ret;
}

struct bpf_unit bpf_object_unit(const struct bpf_session *s, const struct pb_bpf_object *o, uint32_t nr)
{
	const struct pb_bpf_object_prog *p = &o->progs[nr];

	return (struct bpf_unit){
		.name = p->name, .type = s->type ? pb_bpf_type_named(s->type) : pb_bpf_type_of(p->type),
		.attach_type = s->attach_type ? s->attach_type : p->attach_type, .insns = p->insns, .nr = p->nr,
		.gpl = o->gpl, .funcs = p->funcs, .nr_funcs = p->nr_funcs, .lines = p->lines, .nr_lines = p->nr_lines,
	};
}
