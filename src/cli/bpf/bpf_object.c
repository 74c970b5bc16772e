/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Opens compiled objects. Makes their maps: pinned if there is a directory for pins, else only in
 * memory. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "bpf/map/map_file.h"
#include "cli/bpf/bpf_pin.h"
#include "control/resolve.h"

#define NEAR	512	/* bytes for up to 3 names that are like a name */

bool bpf_object_pin_path(const char *dir, const char *name, char *path, size_t size)
{
	size_t n = strlen(dir);

	if (snprintf(path, size, "%s/%s", dir, name) >= (int)size)
		return false;
	/* names of pins have no dots; libbpf replaces dots in the same way. A slash, which no name
	 * of C has, would lead to another directory. */
	for (char *p = path + n + 1; *p; p++)
		if (*p == '.' || *p == '/')
			*p = '_';
	return true;
}

bool bpf_object_map_path(const struct bpf_session *s, const char *name, char *path, size_t size)
{
	return bpf_object_pin_path(s->map_dir, name, path, size);
}

static int pin_new(struct bpf_session *s, struct pb_bpf_pins *pins,
		   const struct pb_bpf_map_spec *spec, const char *path, struct pb_bpf_map *map)
{
	int err = pb_bpf_pins_create(pins, map, spec);

	if (err)
		return err;
	err = pb_bpf_obj_pin(pins, map, path);
	if (!err)
		err = bpf_pin_note(s, path);
	if (err)
		pb_bpf_map_close(map);
	return err;
}

int bpf_object_pin(struct bpf_session *s, const char *name, const struct pb_bpf_map_spec *spec,
		   struct pb_bpf_map *map)
{
	struct pb_bpf_pins *pins = bpf_pins(s->command);
	char path[BPF_PIN_PATH];
	int err;

	if (!pins)
		err = -errno;
	else if (!bpf_object_map_path(s, name, path, sizeof(path)))
		err = -ENAMETOOLONG;
	else
		err = pin_new(s, pins, spec, path, map);
	/* -ENOENT is replaced, because pb_bpf_make() would take it for "no map is pinned" and make
	 * the map in memory */
	return err == -ENOENT ? -ENOTDIR : err;
}

/* If there is a directory for pins, makes a new map and pins it. Otherwise returns -ENOENT, so that
 * pb_bpf_make() makes the map in memory. */
static int make_pinned(void *arg, const struct pb_bpf_object_map *o,
		       const struct pb_bpf_map_spec *spec, struct pb_bpf_map *map)
{
	struct bpf_session *s = arg;
	int err = s->map_dir ? bpf_object_pin(s, o->name, spec, map) : -ENOENT;

	return err ? err : PB_BPF_MAP_IS_NEW;
}

static int say_unusable(const struct bpf_session *s, const char *path, int err, const char *why)
{
	pb_error(s->command, "%s: %s", path, *why ? why : strerror(-err));
	return BPF_USAGE;
}

int bpf_read_object(struct bpf_session *s, const char *path)
{
	const struct pb_bpf_type *type = s->type ? bpf_type_of(s->type) : NULL;
	struct pb_bpf_object_opts opts = { .type = type ? type->type : 0, .types = s->btf };
	char why[512] = "";
	int err;

	if (s->type && !type) {
		pb_error(s->command, "-t %s: no such type", s->type);
		return BPF_USAGE;
	}
	err = pb_bpf_object_open(path, &opts, &s->object, why, sizeof(why));
	if (err)
		return say_unusable(s, path, err, why);
	if (bpf_sizes_check(&s->sizes, s->command, s->object, path) || bpf_globals_set(s, path))
		return BPF_USAGE;
	return 0;
}

int bpf_make_object(struct bpf_session *s, const char *path)
{
	const struct pb_bpf_type *type = s->type ? bpf_type_of(s->type) : NULL;
	struct pb_bpf_make_opts make = {
		.caps = s->caps, .flags = s->flags, .cpu_slots = s->cpu_slots, .find = make_pinned,
		.arg = s, .sizes = s->sizes.list, .nr_sizes = s->sizes.nr,
	};
	int err = pb_bpf_make(s->object, &make, &s->made);

	if (err)
		return say_unusable(s, path, err, "");
	for (uint32_t i = 0; i < s->object->nr_maps; i++)
		if (s->made->maps[i].why)
			pb_error(s->command, "%s", s->made->maps[i].why);
	for (uint32_t i = 0; type && i < s->object->nr_progs; i++)
		s->object->progs[i].type = type->type;
	for (uint32_t i = 0; s->attach_type && i < s->object->nr_progs; i++)
		s->object->progs[i].attach_type = s->attach_type;
	return 0;
}

int bpf_open_object(struct bpf_session *s, const char *path)
{
	int ret = bpf_read_object(s, path);

	return ret ? ret : bpf_make_object(s, path);
}

static int make(struct bpf_session *s, uint32_t nr, struct bpf_loaded *out, const char **why,
		int (*how)(struct pb_bpf_made *made, uint32_t number, struct pb_bpf_text *log,
			   uint32_t level))
{
	struct pb_bpf_text log = bpf_session_log(s);
	int err = how(s->made, nr, &log, (uint32_t)s->log_level);

	s->log_gone = log.gone;
	*why = s->made->progs[nr].why;
	*out = (struct bpf_loaded){ .prog = s->made->progs[nr].prog,
		.verified = s->made->progs[nr].verified };
	if (!err)
		out->xlated = out->prog->nr * (uint32_t)sizeof(struct bpf_insn);
	return err;
}

int bpf_object_verify(struct bpf_session *s, uint32_t nr, struct bpf_loaded *out, const char **why)
{
	return make(s, nr, out, why, pb_bpf_make_prog);
}

int bpf_object_load(struct bpf_session *s, uint32_t nr, struct bpf_loaded *out, const char **why)
{
	return make(s, nr, out, why, pb_bpf_make_chain);
}

bool bpf_object_wants(const struct bpf_session *s, uint32_t nr, char **names, int nr_names)
{
	for (int i = 0; i < nr_names; i++)
		if (!strcmp(s->object->progs[nr].name, names[i]))
			return true;
	return !nr_names && s->object->progs[nr].autoload;
}

/* Finds the names of programs that are like this name. */
static void nearest(const struct pb_bpf_object *o, const char *name, char near[NEAR])
{
	char *all = NULL;
	size_t size;
	FILE *f = open_memstream(&all, &size);

	*near = 0;
	for (uint32_t i = 0; f && i < o->nr_progs; i++)
		fprintf(f, "%s\n", o->progs[i].name);
	if (f && !fclose(f))
		pb_control_nearest_name(all, name, near, NEAR);
	free(all);
}

bool bpf_object_lacks(const struct bpf_session *s, const char *path, char **names, int nr_names)
{
	bool lacks = false, any = nr_names;
	char near[NEAR];

	for (int i = 0; i < nr_names; i++) {
		if (pb_bpf_object_prog(s->object, names[i]) >= 0)
			continue;
		nearest(s->object, names[i], near);
		pb_error(s->command, "%s: %s has no such program%s%s%s", names[i], path,
			 *near ? "; did you mean " : "", near, *near ? "?" : "");
		lacks = true;
	}
	for (uint32_t i = 0; i < s->object->nr_progs && !any; i++)
		any = s->object->progs[i].autoload;
	if (!any)
		pb_error(s->command, "%s: no program in it is loaded automatically%s", path,
			 s->object->nr_progs ? "; name a program" : "");
	return lacks || !any;
}
