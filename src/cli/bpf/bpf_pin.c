/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The tree of pins: finds the tree, and reads and writes programs as files in the tree. */
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "bpf/map/map_sys.h"
#include "cli/bpf/bpf_pin.h"

struct pb_bpf_pins *bpf_pins(const char *command)
{
	static struct pb_bpf_pins pins = { .root = -1, .ids = -1 };
	int err = pins.root >= 0 ? 0 : pb_bpf_pins_open(&pins, NULL);

	if (!err)
		return &pins;
	pb_error(command, "the directory of pins: %s", strerror(-err));
	errno = -err;
	return NULL;
}

int bpf_pin_place(const char *command, const char *name, char path[BPF_PIN_PATH])
{
	const struct pb_bpf_pins *pins = bpf_pins(command);
	size_t n;

	if (!pins)
		return 1;
	n = strlen(pins->path);
	if (*name == '/' && (strncmp(name, pins->path, n) || name[n] != '/'))
		return pb_error(command, "%s: pins are below %s", name, pins->path);
	if (snprintf(path, BPF_PIN_PATH, "%s%s%s", *name == '/' ? "" : pins->path,
		     *name == '/' ? "" : "/", name) >=
	    BPF_PIN_PATH)
		return pb_error(command, "%s: the path is too long", name);
	return 0;
}

/* ---- looking at files ----------------------------------------------------------------- */

static void *map_file(const char *path, int flags, size_t *size)
{
	int fd = open(path, flags | O_CLOEXEC | O_NOFOLLOW);
	struct stat st;
	void *p = NULL;

	if (fd < 0)
		return NULL;
	if (!fstat(fd, &st) && S_ISREG(st.st_mode) && st.st_size >= 64) {
		*size = (size_t)st.st_size;
		p = mmap(NULL, *size, PROT_READ | (flags & O_RDWR ? PROT_WRITE : 0), MAP_SHARED, fd,
			 0);
	} else {
		errno = EINVAL;
	}
	close(fd);
	return p == MAP_FAILED ? NULL : p;
}

static bool is_prog(const void *p, size_t size)
{
	const struct bpf_pin_prog *f = p;

	return size >= sizeof(*f) && f->magic == BPF_PIN_MAGIC && f->version == 1 &&
	       f->nr_maps <= BPF_MAX_MAPS && f->nr_insns && f->nr_insns <= BPF_MAX_INSNS &&
	       f->nr_funcs <= PB_BPF_MAX_SUBPROGS && size == sizeof(*f) + f->nr_funcs *
	       sizeof(struct bpf_pin_func) + sizeof(struct bpf_insn) * f->nr_insns +
			       4ul * f->nr_maps && memchr(f->name, 0, sizeof(f->name));
}

static bool is_map(const void *p, size_t size)
{
	uint64_t span;

	return size >= sizeof(struct pb_bpf_map_head) && pb_bpf_map_block_size(p, size, &span);
}

static struct {
	int (*fn)(void *arg, const struct bpf_pinned *pin);
	void *arg;
} walk;

static int visit(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	struct bpf_pinned pin = { .path = path };
	size_t size;
	void *p;
	int ret = 0;

	if (type != FTW_F)
		return 0;
	p = map_file(path, O_RDONLY, &size);
	if (!p)
		return 0;
	if (is_prog(p, size))
		pin.prog = p;
	else if (is_map(p, size))
		pin.map = p;
	if (pin.prog || pin.map)
		ret = walk.fn(walk.arg, &pin);
	munmap(p, size);
	return ret;
}

int bpf_pin_each(const char *command, int (*fn)(void *arg, const struct bpf_pinned *pin), void *arg)
{
	const struct pb_bpf_pins *pins = bpf_pins(command);

	if (!pins)
		return 1;
	walk.fn = fn;
	walk.arg = arg;
	return nftw(pins->path, visit, 16, FTW_PHYS);
}

struct search {
	uint32_t id, largest;
	char *path;
};

static int find_largest(void *arg, const struct bpf_pinned *pin)
{
	struct search *s = arg;

	if (pin->prog && pin->prog->id > s->largest)
		s->largest = pin->prog->id;
	return 0;
}

/* Returns a new id. It is larger than the ids of all pinned programs, even if
 * pb_bpf_pins_new_id() has begun again at 1. Returns 0 after a message. */
static uint32_t new_id(const char *command)
{
	struct pb_bpf_pins *pins = bpf_pins(command);
	struct search s = { 0 };
	uint32_t id;
	int err;

	if (!pins)
		return 0;
	id = pb_bpf_pins_new_id(pins, &err);
	if (!id) {
		pb_error(command, "%s: no id for a program: %s", pins->path, strerror(-err));
		return 0;
	}
	bpf_pin_each(command, find_largest, &s);
	return id > s.largest ? id : s.largest + 1;
}

static int find_id(void *arg, const struct bpf_pinned *pin)
{
	struct search *s = arg;

	if (!pin->prog || pin->prog->id != s->id)
		return 0;
	snprintf(s->path, BPF_PIN_PATH, "%s", pin->path);
	return 2;
}

bool bpf_pin_find(const char *command, uint32_t id, char path[BPF_PIN_PATH])
{
	struct search s = { .id = id, .path = path };

	return id && bpf_pin_each(command, find_id, &s) == 2;
}

/* ---- programs ------------------------------------------------------------------------ */

static bool write_all(int fd, const void *p, size_t n)
{
	while (n) {
		ssize_t k = write(fd, p, n);

		if (k < 0)
			return false;
		p = (const char *)p + k;
		n -= (size_t)k;
	}
	return true;
}

static bool write_funcs(int fd, const struct bpf_unit *u)
{
	for (uint32_t i = 0; i < u->nr_funcs; i++) {
		const struct pb_bpf_func *from = &u->funcs[i];
		struct bpf_pin_func f = { .func = *from };

		f.func.name = NULL;
		strncpy(f.name, from->name ? from->name : "", sizeof(f.name) - 1);
		if (!write_all(fd, &f, sizeof(f)))
			return false;
	}
	return true;
}

int bpf_pin_write(const char *command, const char *path, const struct bpf_unit *u,
		  const struct bpf_loaded *l, const uint32_t *maps, uint32_t nr_maps, uint32_t *id)
{
	struct bpf_pin_prog f = {
		.magic = BPF_PIN_MAGIC, .version = 1, .id = new_id(command), .type = u->type->type,
		.attach_type = u->attach_type, .gpl = u->gpl, .nr_insns = u->nr, .nr_maps = nr_maps,
		.nr_funcs = u->nr_funcs,
		.xlated = l->xlated, .jited = l->prog->jited_len, .loaded_at = (uint64_t)time(NULL),
	};
	int fd;
	bool ok;

	strncpy(f.name, u->name, sizeof(f.name) - 1);
	if (!f.id)
		return 1;
	fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (fd < 0)
		return pb_error(command, "%s: %s", path, strerror(errno));
	ok = write_all(fd, &f, sizeof(f)) && write_funcs(fd, u) &&
	     write_all(fd, u->insns, u->nr * sizeof(struct bpf_insn)) &&
	     write_all(fd, maps, 4ul * nr_maps);
	if (ok && !close(fd)) {
		*id = f.id;
		return 0;
	}
	pb_error(command, "%s: %s", path, strerror(errno));
	unlink(path);
	return 1;
}

struct bpf_pin_prog *bpf_pin_read(const char *command, const char *path, size_t *size)
{
	void *p = map_file(path, O_RDWR, size);

	if (p && is_prog(p, *size))
		return p;
	pb_error(command, "%s: %s", path, p ? "no pinned program" : strerror(errno));
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
	int err = open_map(s, path, id, access);
	char number[16];

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

/* Makes functions in the form that the verifier takes. Their names point into the file. */
static struct pb_bpf_func *read_funcs(struct bpf_pin_func *from, uint32_t nr, uint32_t nr_insns)
{
	struct pb_bpf_func *f = calloc(nr + 1ul, sizeof(*f));

	for (uint32_t i = 0; f && i < nr; i++) {
		f[i] = from[i].func;
		from[i].name[sizeof(from[i].name) - 1] = 0;
		f[i].name = from[i].name;
		if (f[i].nr_args > 5 || f[i].insn >= nr_insns ||
		    (i && f[i].insn <= f[i - 1].insn)) {
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

/* ---- what maps refer to -------------------------------------------------------------- */

/* Loads the pinned program with this id. If the program is gone, does nothing: a map element with
 * its id then counts as empty. */
static int load_id(struct bpf_session *s, uint32_t id)
{
	struct bpf_pin_prog *file;
	char path[BPF_PIN_PATH];
	struct bpf_loaded l;
	struct bpf_unit u;

	if (s->objects.find(&s->objects, PB_BPF_OBJECT_PROG, id) ||
	    !bpf_pin_find(s->command, id, path))
		return 0;
	if (s->nr_progs == BPF_MAX_MAPS)
		return pb_error(s->command, "no more than %d programs", BPF_MAX_MAPS);
	if (bpf_pin_unit(s, path, &u, &file))
		return 1;
	if (bpf_session_load(s, &u, &l))
		return pb_error(s->command, "%s: rejected: %s", path, bpf_session_reason(s));
	return 0;
}

static int open_elements(struct bpf_session *s, struct pb_bpf_map *map)
{
	bool progs = map->attr.type == BPF_MAP_TYPE_PROG_ARRAY;
	uint8_t *keys = calloc(2, map->attr.key_size + 1), *next = keys + map->attr.key_size;
	uint32_t id;
	int ret = keys ? 0 : pb_error(s->command, "out of memory");

	for (bool first = true; !ret && !pb_bpf_map_get_next_key(map, first ? NULL : keys, next);
	     first = false) {
		memcpy(keys, next, map->attr.key_size);
		if (pb_bpf_map_lookup_elem(map, keys, &id, 0))
			continue;
		if (progs)
			ret = load_id(s, id);
		else
			bpf_pin_map_id(s, id);
	}
	free(keys);
	return ret;
}

int bpf_pin_elements(struct bpf_session *s)
{
	int ret = 0;

	/* the loop opens further maps; they are added at the end, so the loop reaches them too */
	for (uint32_t i = 0; i < s->nr_maps && !ret; i++) {
		uint32_t type = s->map[i] ? s->map[i]->attr.type : 0;

		if (type == BPF_MAP_TYPE_PROG_ARRAY || type == BPF_MAP_TYPE_ARRAY_OF_MAPS ||
		    type == BPF_MAP_TYPE_HASH_OF_MAPS)
			ret = open_elements(s, s->map[i]);
	}
	return ret;
}
