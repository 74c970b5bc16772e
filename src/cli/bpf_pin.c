/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "bpf/map_file.h"
#include "cli/bpf_pin.h"
#include "cli/record.h"

int bpf_pin_root(const char *command, char path[BPF_PIN_PATH])
{
	char base[160];
	int err = record_session_base(base, sizeof(base));

	snprintf(path, BPF_PIN_PATH, "%s/bpf", base);
	if (!err && mkdir(path, 0700) && errno != EEXIST)
		err = -errno;
	return err ? pb_error(command, "%s: %s", path, strerror(-err)) : 0;
}

int bpf_pin_place(const char *command, const char *name, char path[BPF_PIN_PATH])
{
	char root[BPF_PIN_PATH];
	int n;

	if (strchr(name, '/')) {
		n = snprintf(path, BPF_PIN_PATH, "%s", name);
	} else {
		if (bpf_pin_root(command, root))
			return 1;
		n = snprintf(path, BPF_PIN_PATH, "%s/%s", root, name);
	}
	return n >= BPF_PIN_PATH ? pb_error(command, "%s: the path is too long", name) : 0;
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
		p = mmap(NULL, *size, PROT_READ | (flags & O_RDWR ? PROT_WRITE : 0), MAP_SHARED, fd, 0);
	} else {
		errno = EINVAL;
	}
	close(fd);
	return p == MAP_FAILED ? NULL : p;
}

static bool is_prog(const void *p, size_t size)
{
	const struct bpf_pin_prog *f = p;

	return size >= sizeof(*f) && f->magic == BPF_PIN_MAGIC && f->version == 1 && f->nr_maps <= BPF_MAX_MAPS &&
	       f->nr_insns && f->nr_insns <= BPF_MAX_INSNS && f->nr_funcs <= PB_BPF_MAX_SUBPROGS &&
	       size == sizeof(*f) + f->nr_funcs * sizeof(struct bpf_pin_func) + sizeof(struct bpf_insn) * f->nr_insns +
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
	char root[BPF_PIN_PATH];

	if (bpf_pin_root(command, root))
		return 1;
	walk.fn = fn;
	walk.arg = arg;
	return nftw(root, visit, 16, FTW_PHYS);
}

struct search {
	bool map;
	uint32_t id, largest;
	char *path;
};

static uint32_t id_of(const struct bpf_pinned *pin, bool map)
{
	return map ? pin->map ? pin->map->id : 0 : pin->prog ? pin->prog->id : 0;
}

static int find_largest(void *arg, const struct bpf_pinned *pin)
{
	struct search *s = arg;
	uint32_t id = id_of(pin, s->map);

	if (id > s->largest)
		s->largest = id;
	return 0;
}

uint32_t bpf_pin_new_id(const char *command, bool map)
{
	struct search s = { .map = map };

	bpf_pin_each(command, find_largest, &s);
	return s.largest + 1;
}

static int find_id(void *arg, const struct bpf_pinned *pin)
{
	struct search *s = arg;

	if (id_of(pin, s->map) != s->id)
		return 0;
	snprintf(s->path, BPF_PIN_PATH, "%s", pin->path);
	return 2;
}

bool bpf_pin_find(const char *command, bool map, uint32_t id, char path[BPF_PIN_PATH])
{
	struct search s = { .map = map, .id = id, .path = path };

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

int bpf_pin_write(const char *command, const char *path, const struct bpf_unit *u, const struct bpf_loaded *l,
		  const uint32_t *maps, uint32_t nr_maps)
{
	struct bpf_pin_prog f = {
		.magic = BPF_PIN_MAGIC, .version = 1, .id = bpf_pin_new_id(command, false), .type = u->type->type,
		.attach_type = u->attach_type, .gpl = u->gpl, .nr_insns = u->nr, .nr_maps = nr_maps,
		.nr_funcs = u->nr_funcs,
		.xlated = l->xlated, .jited = l->prog->jited_len, .loaded_at = (uint64_t)time(NULL),
	};
	int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	bool ok;

	strncpy(f.name, u->name, sizeof(f.name) - 1);
	if (fd < 0)
		return pb_error(command, "%s: %s", path, strerror(errno));
	ok = write_all(fd, &f, sizeof(f)) && write_funcs(fd, u) &&
	     write_all(fd, u->insns, u->nr * sizeof(struct bpf_insn)) && write_all(fd, maps, 4ul * nr_maps);
	if (ok && !close(fd))
		return 0;
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

int bpf_pin_map(struct bpf_session *s, const char *path, uint8_t access)
{
	struct pb_bpf_map *map = &s->maps[s->nr_maps];
	int fd, err;

	if (s->nr_maps == BPF_MAX_MAPS)
		return pb_error(s->command, "no more than %d maps", BPF_MAX_MAPS);
	/* even who only reads tells the others that he is there */
	fd = open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW);
	err = fd < 0 ? -errno : pb_bpf_map_attach(map, fd, access);
	if (err) {
		if (fd >= 0)
			close(fd);
		return pb_error(s->command, "%s: %s", path, err == -EINVAL ? "no map" : strerror(-err));
	}
	map->objects = &s->objects;
	s->map[s->nr_maps++] = map;
	return 0;
}

/* Functions as the verifier takes them; their names are in the file. */
static struct pb_bpf_func *read_funcs(struct bpf_pin_func *from, uint32_t nr, uint32_t nr_insns)
{
	struct pb_bpf_func *f = calloc(nr + 1ul, sizeof(*f));

	for (uint32_t i = 0; f && i < nr; i++) {
		f[i] = from[i].func;
		from[i].name[sizeof(from[i].name) - 1] = 0;
		f[i].name = from[i].name;
		if (f[i].nr_args > 5 || f[i].insn >= nr_insns || (i && f[i].insn <= f[i - 1].insn)) {
			free(f);
			return NULL;
		}
	}
	return f;
}

int bpf_pin_unit(struct bpf_session *s, const char *path, struct bpf_unit *u, struct bpf_pin_prog **file)
{
	struct bpf_pin_func *funcs;
	char map[BPF_PIN_PATH];
	const uint32_t *ids;
	size_t size;

	*file = bpf_pin_read(s->command, path, &size);
	if (!*file)
		return 1;
	funcs = (struct bpf_pin_func *)(*file + 1);
	*u = (struct bpf_unit){
		.name = (*file)->name, .type = pb_bpf_type_of((*file)->type), .attach_type = (*file)->attach_type,
		.gpl = (*file)->gpl, .insns = (const struct bpf_insn *)(funcs + (*file)->nr_funcs),
		.nr = (*file)->nr_insns, .nr_funcs = (*file)->nr_funcs,
	};
	u->funcs = read_funcs(funcs, u->nr_funcs, u->nr);
	if (!u->funcs)
		return pb_error(s->command, "%s: damaged", path);
	if (!u->type)
		return pb_error(s->command, "%s: of no type that is here", path);
	ids = bpf_pin_map_ids(*file);
	for (uint32_t i = 0; i < (*file)->nr_maps; i++) {
		if (!ids[i]) {			/* it wasn't made; no verifier passes its use */
			s->map[s->nr_maps++] = NULL;
			continue;
		}
		if (!bpf_pin_find(s->command, true, ids[i], map))
			return pb_error(s->command, "%s: its map %u is gone", path, ids[i]);
		if (bpf_pin_map(s, map, PB_BPF_MAP_READ | PB_BPF_MAP_WRITE))
			return 1;
	}
	return 0;
}
