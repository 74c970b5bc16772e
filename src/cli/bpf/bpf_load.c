/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* `patchbay bpf load`, `prog list`, `stats` and `pin`. */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "bpf/map/map_sys.h"
#include "cli/bpf/bpf_pin.h"

/* ---- load ------------------------------------------------------------------------------ */

static error_t bpf_load_parse(int key, char *arg, struct argp_state *state)
{
	if (key == ARGP_KEY_INIT) {
		state->child_inputs[0] = state->input;
		return 0;
	}
	return ARGP_ERR_UNKNOWN;
}

static const struct argp_child children[] = { { &bpf_session_argp }, { 0 } };
static const struct argp load_argp = {
	NULL, bpf_load_parse, "OBJECT PATH [PROGRAM...]",
	"Verifies an object's programs and pins them as PATH/PROGRAM, in Patchbay's own directory "
	"of pins (not in /sys/fs/bpf). Also pins their maps, as PATH/maps/MAP. If a program is "
	"rejected, pins nothing.", children
};

static int load_prog(struct bpf_session *s, uint32_t nr)
{
	struct bpf_loaded l;
	const char *why;

	if (!bpf_object_load(s, nr, &l, &why))
		return 0;
	if (!s->quiet)
		bpf_session_show_log(s);
	return pb_error(s->command, "%s: rejected: %s", s->object->progs[nr].name, why);
}

static int pin_loaded(struct bpf_session *s, uint32_t nr, const char *dir, uint32_t *id)
{
	const struct pb_bpf_object_prog *p = &s->object->progs[nr];
	struct bpf_unit u = {
		.name = p->name, .type = pb_bpf_type_of(p->type), .attach_type = p->attach_type,
		.insns = p->insns, .nr = p->nr, .gpl = s->object->gpl, .funcs = p->funcs,
		.nr_funcs = p->nr_funcs,
	};
	const struct bpf_loaded l = {
		.prog = s->made->progs[nr].prog, .verified = s->made->progs[nr].verified,
		.xlated = s->made->progs[nr].prog->nr * (uint32_t)sizeof(struct bpf_insn),
	};
	char path[2 * BPF_PIN_PATH];
	uint32_t ids[BPF_MAX_MAPS];

	for (uint32_t i = 0; i < s->object->nr_maps; i++)
		ids[i] = s->made->maps[i].map ? s->made->maps[i].map->id : 0;
	if (!bpf_object_pin_path(dir, p->name, path, sizeof(path)))
		return pb_error(s->command, "%s/%s: the path is too long", dir, p->name);
	if (bpf_pin_write(s->command, path, &u, &l, ids, s->object->nr_maps, id))
		return 1;
	return bpf_pin_note(s, path) ? pb_error(s->command, "out of memory") : 0;
}

/* Puts the map's initial elements into the map. Each element is the id of a program or map, since
 * other processes find programs and maps by their ids. */
static int fill_map(struct bpf_session *s, uint32_t nr, const uint32_t *prog_ids)
{
	const struct pb_bpf_object_map *o = &s->object->maps[nr];
	struct pb_bpf_map *map = s->made->maps[nr].map;
	int err = 0;

	map->objects = &s->objects;
	for (uint32_t i = 0; i < o->nr_slots && !err; i++) {
		const struct pb_bpf_object_slot *slot = &o->slots[i];
		const struct pb_bpf_map *inner = slot->prog ? NULL :
						 s->made->maps[slot->number].map;
		uint32_t id = slot->prog ? prog_ids[slot->number] : inner ? inner->id : 0;

		if (id)
			err = pb_bpf_map_update_elem(map, &slot->index, &id, BPF_ANY);
		if (err == -E2BIG)	/* the map is too small for the element.
					 * pb_bpf_make_chain() refuses programs that use such a
					 * map, so no loaded program uses it */
			err = 0;
	}
	return err ? pb_error(s->command, "map %s: %s", o->name, strerror(-err)) : 0;
}

/* Pins the object's programs. Then fills its maps, whose initial elements may be ids of these
 * programs. */
static int pin_object(struct bpf_session *s, const char *dir)
{
	uint32_t *ids = calloc(s->object->nr_progs + 1, sizeof(*ids));
	int ret = 0;

	if (!ids)
		return pb_error(s->command, "out of memory");
	for (uint32_t i = 0; i < s->object->nr_progs; i++)
		if (s->made->progs[i].prog)
			ret |= pin_loaded(s, i, dir, &ids[i]);
	for (uint32_t i = 0; i < s->object->nr_maps; i++)
		if (s->made->maps[i].map && s->object->maps[i].nr_slots)
			ret |= fill_map(s, i, ids);
	free(ids);
	return ret;
}

/* Looks for pins that have the names of the object's maps, or of the programs that are wanted. */
static int check_free(const struct bpf_session *s, const char *dir, char **names, int nr_names)
{
	char path[2 * BPF_PIN_PATH];
	bool taken = false;

	for (uint32_t i = 0; i < s->object->nr_maps && !taken; i++)
		taken = bpf_object_map_path(s, s->object->maps[i].name, path, sizeof(path)) &&
			!access(path, F_OK);
	for (uint32_t i = 0; i < s->object->nr_progs && !taken; i++)
		taken = bpf_object_wants(s, i, names, nr_names) &&
			bpf_object_pin_path(dir, s->object->progs[i].name, path, sizeof(path)) &&
			!access(path, F_OK);
	return taken ? pb_error(s->command, "%s is pinned already; remove %s, or choose another "
				"path", path, dir) : 0;
}

/* The directories of the pins. */
struct place {
	char dir[BPF_PIN_PATH], maps[BPF_PIN_PATH + 8];
	bool made_dir, made_maps;	/* the directory didn't exist before */
};

static int make_place(const struct bpf_session *s, struct place *p)
{
	struct pb_bpf_pins *pins = bpf_pins(s->command);
	int err = pb_bpf_pins_mkdir(pins, p->dir);

	p->made_dir = !err;
	if (!err || err == -EEXIST) {
		err = pb_bpf_pins_mkdir(pins, p->maps);
		p->made_maps = !err;
	}
	return err && err != -EEXIST ? pb_error(s->command, "%s: %s", p->dir, strerror(-err)) : 0;
}

/* Removes the pins and the directories that the command has made. */
static void remove_place(struct bpf_session *s, const struct place *p)
{
	struct pb_bpf_pins *pins = bpf_pins(s->command);

	bpf_pin_undo(s);
	if (p->made_maps)
		pb_bpf_pins_rmdir(pins, p->maps);
	if (p->made_dir)
		pb_bpf_pins_rmdir(pins, p->dir);
}

static int load_progs(struct bpf_session *s, char **names, int nr_names)
{
	int ret = 0;

	for (uint32_t i = 0; i < s->object->nr_progs; i++)
		s->object->progs[i].autoload = bpf_object_wants(s, i, names, nr_names) ||
					       s->object->progs[i].autoload;
	for (uint32_t i = 0; i < s->object->nr_progs; i++)
		if (bpf_object_wants(s, i, names, nr_names))
			ret |= load_prog(s, i);
	return ret;
}

/* Pins all programs that are wanted, or nothing. */
static int load_object(struct bpf_session *s, const char *path, char **names, int nr_names)
{
	struct place p = { 0 };
	int ret;

	if (!bpf_pins(s->command) || bpf_pin_place(s->command, s->args[1], p.dir))
		return 1;
	snprintf(p.maps, sizeof(p.maps), "%s/maps", p.dir);
	s->map_dir = p.maps;
	if (bpf_read_object(s, path) || bpf_object_lacks(s, path, names, nr_names) ||
	    check_free(s, p.dir, names, nr_names))
		return 1;
	if (s->object->nr_maps > BPF_MAX_MAPS)
		return pb_error(s->command, "no more than %d maps", BPF_MAX_MAPS);
	ret = make_place(s, &p) || bpf_make_object(s, path) || load_progs(s, names, nr_names) ||
	      pin_object(s, p.dir);
	if (ret)
		remove_place(s, &p);
	return ret;
}

static int bpf_load_run(int argc, char **argv)
{
	static struct bpf_session s;
	int ret;

	bpf_session_init(&s, "bpf load");
	if (bpf_session_parse(&s, &load_argp, argc, argv, &s))
		return 2;
	if (s.nr_args < 2) {
		pb_error(s.command, "which object, and where to? patchbay bpf load OBJECT PATH");
		return 2;
	}
	signal(SIGXFSZ, SIG_IGN);	/* writes beyond the limit of file sizes fail with EFBIG */
	ret = load_object(&s, s.args[0], s.args + 2, s.nr_args - 2);
	bpf_session_end(&s);
	return ret;
}

const struct pb_command bpf_command_load = {
	.name = "load", .summary = "Verify an object's programs and pin them", .argp = &load_argp,
	.run = bpf_load_run,
};

/* ---- prog list ---------------------------------------------------------------------------- */

static const struct argp list_argp = {
	.args_doc = "list", .doc = "Lists pinned programs, as bpftool does.",
};

static int list_prog(void *arg, const struct bpf_pinned *pin)
{
	const struct bpf_pin_prog *p = pin->prog;
	const struct pb_bpf_type *type = p ? pb_bpf_type_of(p->type) : NULL;
	time_t at = p ? (time_t)p->loaded_at : 0;
	const uint32_t *ids;
	char when[64];

	if (!p)
		return 0;
	printf("%u: %s  name %s%s", p->id, type ? type->name : "unknown", p->name,
	       p->gpl ? "  gpl" : "");
	if (p->runs)
		printf(" run_time_ns %lu run_cnt %lu", p->ns, p->runs);
	strftime(when, sizeof(when), "%Y-%m-%dT%H:%M:%S%z", localtime(&at));
	printf("\n\tloaded_at %s  uid %u\n\txlated %uB  jited %uB", when, (unsigned)geteuid(),
	       p->xlated, p->jited);
	ids = bpf_pin_map_ids(p);
	for (uint32_t i = 0; i < p->nr_maps; i++)
		printf("%s%u", i ? "," : "  map_ids ", ids[i]);
	printf("\n\tpinned %s\n", pin->path);
	return 0;
}

static int bpf_prog_run(int argc, char **argv)
{
	int at = 0;

	if (argp_parse(&list_argp, argc, argv, ARGP_NO_ARGS | ARGP_IN_ORDER, &at, NULL))
		return 2;
	if (at < argc && strcmp(argv[at], "list") && strcmp(argv[at], "show")) {
		pb_error("bpf prog", "%s: no such command; use patchbay bpf prog list", argv[at]);
		return 2;
	}
	if (at + 1 < argc) {
		pb_error("bpf prog", "%s: the command ends before this word", argv[at + 1]);
		return 2;
	}
	return bpf_pin_each("bpf prog", list_prog, NULL) || fflush(stdout);
}

const struct pb_command bpf_command_prog = {
	.name = "prog", .summary = "List pinned programs", .argp = &list_argp, .run = bpf_prog_run,
};

/* ---- stats ------------------------------------------------------------------------------ */

static const struct argp stats_argp = {
	.doc = "Shows how often pinned programs ran, and their total and average times.",
};

static int show_stats(void *arg, const struct bpf_pinned *pin)
{
	const struct bpf_pin_prog *p = pin->prog;

	if (p)
		printf("%6u %-16s %12lu %16lu %10lu\n", p->id, p->name, p->runs, p->ns,
		       p->runs ? p->ns / p->runs : 0);
	return 0;
}

static int bpf_stats_run(int argc, char **argv)
{
	if (argp_parse(&stats_argp, argc, argv, 0, NULL, NULL))
		return 2;
	printf("%6s %-16s %12s %16s %10s\n", "id", "name", "run_cnt", "run_time_ns", "avg_ns");
	return bpf_pin_each("bpf stats", show_stats, NULL) || fflush(stdout);
}

const struct pb_command bpf_command_stats = {
	.name = "stats", .summary = "How often and how long programs ran", .argp = &stats_argp,
	.run = bpf_stats_run,
};

/* ---- pin --------------------------------------------------------------------------------- */

static const struct argp pin_argp = {
	.args_doc = "prog|map ID|PATH NEWPATH",
	.doc = "Gives a pinned program or map a second name. Removing one name leaves the other.",
};

/* Pins a map again, at the path `to`. The map is given by its id or, if id is NULL, by its path
 * `from`. */
static int pin_map(const char *from, const uint32_t *id, const char *to)
{
	static struct bpf_session s = { .command = "bpf pin" };
	struct pb_bpf_pins *pins = bpf_pins(s.command);
	int ret = !pins || (id && bpf_pin_map(&s, NULL, *id, PB_BPF_MAP_READ)), err;

	if (!ret) {
		err = id ? pb_bpf_obj_pin(pins, s.map[0], to) : pb_bpf_pins_link(pins, from, to);
		ret = err ? pb_error(s.command, "%s: %s", to, strerror(-err)) : 0;
	}
	bpf_session_end(&s);
	return ret;
}

static int pin_prog(const char *what, const uint32_t *id, const char *name)
{
	char from[BPF_PIN_PATH], to[BPF_PIN_PATH];

	if (id && !bpf_pin_find("bpf pin", *id, from))
		return pb_error("bpf pin", "%u: no pinned program has that id", *id);
	if ((!id && bpf_pin_place("bpf pin", what, from)) || bpf_pin_place("bpf pin", name, to))
		return 1;
	return link(from, to) ? pb_error("bpf pin", "%s: %s", to, strerror(errno)) : 0;
}

static int bpf_pin_run(int argc, char **argv)
{
	bool number;
	uint32_t id;
	int at = 0;

	if (argp_parse(&pin_argp, argc, argv, ARGP_NO_ARGS | ARGP_IN_ORDER, &at, NULL))
		return 2;
	if (argc - at != 3 || (strcmp(argv[at], "prog") && strcmp(argv[at], "map"))) {
		pb_error("bpf pin",
			 "what, and where to? patchbay bpf pin prog|map ID|PATH NEWPATH");
		return 2;
	}
	number = bpf_pin_number(argv[at + 1], &id);
	if (number && !id) {
		pb_error("bpf pin", "%s: not an id of a %s", argv[at + 1],
			 !strcmp(argv[at], "map") ? "map" : "program");
		return 2;
	}
	return (!strcmp(argv[at], "map") ? pin_map : pin_prog)(argv[at + 1], number ? &id : NULL,
							       argv[at + 2]);
}

const struct pb_command bpf_command_pin = {
	.name = "pin", .summary = "Give a pinned program or map another name", .argp = &pin_argp,
	.run = bpf_pin_run,
};
