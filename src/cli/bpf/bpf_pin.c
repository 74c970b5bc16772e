/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The tree of pins: finds the tree, and reads and writes programs as files in the tree. */
#include <errno.h>
#include <fcntl.h>
#include <fts.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "bpf/map/map_sys.h"
#include "cli/bpf/bpf_pin.h"
#include "recorder/session_dir.h"

static struct pb_bpf_pins pins = { .root = -1, .ids = -1 };

/* Opens the tree, which is beside the directories of sessions. If another user owns their usual
 * place, both are in the spare place. Returns 0, or -errno after a message. */
static int open_pins(const char *command)
{
	char base[RECORD_BASE], path[RECORD_BASE + sizeof("/bpf")];
	int err = record_session_base(base);

	if (err) {
		pb_error(command, "no directory in /tmp for pins: %s", strerror(-err));
		return err;
	}
	snprintf(path, sizeof(path), "%s/bpf", base);
	err = pb_bpf_pins_open(&pins, path);
	if (err)
		pb_error(command, "%s: %s%s", path, strerror(-err), err == -EPERM ?
			 ": the directory of pins belongs to another user, or others may write to "
			 "it" : "");
	return err;
}

struct pb_bpf_pins *bpf_pins(const char *command)
{
	int err = pins.root >= 0 ? 0 : open_pins(command);

	if (!err)
		return &pins;
	errno = -err;
	return NULL;
}

void bpf_pins_end(void)
{
	if (pins.root >= 0)
		pb_bpf_pins_close(&pins);
}

int bpf_pin_place(const char *command, const char *name, char path[BPF_PIN_PATH])
{
	size_t n;

	if (!bpf_pins(command))
		return 1;
	n = strlen(pins.path);
	if (*name == '/' && (strncmp(name, pins.path, n) || name[n] != '/'))
		return pb_error(command, "%s: pins are below %s", name, pins.path);
	/* The files of programs are opened by their paths, and ".." would lead out of the tree. For
	 * maps, bpf/map/pin.c has the same rule. */
	if (strchr(*name == '/' ? name + n : name, '.'))
		return pb_error(command, "%s: the path of a pin has no dots", name);
	if (snprintf(path, BPF_PIN_PATH, "%s%s%s", *name == '/' ? "" : pins.path,
		     *name == '/' ? "" : "/", name) >=
	    BPF_PIN_PATH)
		return pb_error(command, "%s: the path is too long", name);
	return 0;
}

int bpf_pin_note(struct bpf_session *s, const char *path)
{
	char **list = reallocarray(s->pins, s->nr_pins + 1, sizeof(*list));

	s->pins = list ? list : s->pins;
	if (list)
		list[s->nr_pins] = strdup(path);
	if (list && list[s->nr_pins]) {
		s->nr_pins++;
		return 0;
	}
	unlink(path);
	return -ENOMEM;
}

void bpf_pin_undo(struct bpf_session *s)
{
	while (s->nr_pins) {
		unlink(s->pins[--s->nr_pins]);
		free(s->pins[s->nr_pins]);
	}
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

static int visit(const char *path, int (*fn)(void *arg, const struct bpf_pinned *pin), void *arg)
{
	struct bpf_pinned pin = { .path = path };
	size_t size;
	void *p;
	int ret = 0;

	p = map_file(path, O_RDONLY, &size);
	if (!p)
		return 0;
	if (is_prog(p, size))
		pin.prog = p;
	else if (is_map(p, size))
		pin.map = p;
	if (pin.prog || pin.map)
		ret = fn(arg, &pin);
	munmap(p, size);
	return ret;
}

int bpf_pin_each(const char *command, int (*fn)(void *arg, const struct bpf_pinned *pin), void *arg)
{
	FTSENT *e = NULL;
	int ret = 0;
	FTS *tree;

	if (!bpf_pins(command))
		return 1;
	/* Other processes remove directories at any time, for example a `bpf trace` that ends. The
	 * walk goes on after a directory that is gone. nftw() would end there. */
	tree = fts_open((char *[]){ pins.path, NULL }, FTS_PHYSICAL | FTS_NOCHDIR, NULL);
	while (tree && !ret && (e = fts_read(tree)))
		if (e->fts_info == FTS_F)
			ret = visit(e->fts_path, fn, arg);
	if (!ret && !e && errno)
		ret = pb_error(command, "%s: %s", pins.path, strerror(errno));
	if (tree)
		fts_close(tree);
	return ret;
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
	struct search s = { 0 };
	uint32_t id;
	int err;

	if (!bpf_pins(command))
		return 0;
	id = pb_bpf_pins_new_id(&pins, &err);
	if (!id) {
		pb_error(command, "%s: no id for a program: %s", pins.path, strerror(-err));
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

bool bpf_pin_number(const char *text, uint32_t *id)
{
	unsigned long n;

	*id = 0;
	if (!*text || text[strspn(text, "0123456789")])
		return false;
	n = strtoul(text, NULL, 10);	/* ULONG_MAX if even this type has no room */
	*id = n > UINT32_MAX ? 0 : (uint32_t)n;
	return true;
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
	int fd, err;
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
	err = ok ? 0 : errno;
	if (close(fd) && ok)
		err = errno;
	if (!err) {
		*id = f.id;
		return 0;
	}
	pb_error(command, "%s: %s", path, strerror(err));
	unlink(path);
	return 1;
}

struct bpf_pin_prog *bpf_pin_read(const char *command, const char *path, size_t *size)
{
	void *p = map_file(path, O_RDWR, size);

	if (p && is_prog(p, *size))
		return p;
	pb_error(command, "%s: %s", path, p ? "not the file of a pinned program" : strerror(errno));
	if (p)
		munmap(p, *size);
	return NULL;
}
