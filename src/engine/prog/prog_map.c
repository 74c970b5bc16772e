/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Maps the files of eBPF maps that another process made. The descriptor is closed at once, so that
 * the program doesn't find a descriptor of the agent in its table. The mapping keeps the file open,
 * and so also keeps the file's lock. This lock shows other processes that this process lives. The
 * agent doesn't check whether other processes live, because that takes system calls. Processes
 * outside of the program clean up after dead processes.
 *
 * The verifier trusts the values of constant maps (frozen, and read-only for programs). If such a
 * map were shared, a stray write of the traced program could change a value after the
 * verification. So a constant map is a private copy, which is read-only before programs are
 * verified. It needs no owner, because nothing writes to it.
 *
 * A forked child has its parent's mappings, and its lock is the parent's: as long as the child has
 * the mappings, a dead parent counts as living. So right after a fork by libc, the child maps the
 * files again, without owner numbers. Its first run maps them once more, and gets owner numbers. A
 * child that isn't traced maps zeros in place of the files.
 */
#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include "base/mem.h"
#include "base/pages.h"
#include "base/sys.h"
#include "bpf/map/map_owner.h"
#include "engine/prog/prog.h"

/* Maps the file at addresses that are reserved for it. The end of the file may be mapped twice, see
 * pb_bpf_map_span(). */
static long map_at(long at, int fd, uint64_t size, uint64_t span)
{
	long p = pb_pages_map(at, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, 0);

	if (!pb_sys_failed(p) && span > size)
		p = pb_pages_map(at + (long)size, span - size, PROT_READ | PROT_WRITE,
				 MAP_SHARED | MAP_FIXED, fd, size - (span - size));
	return p;
}

/* Reads the file into a private mapping at addresses that are reserved for it. */
static long copy_at(long at, int fd, uint64_t size, uint64_t span)
{
	long p = pb_pages_map(at, span, PROT_READ | PROT_WRITE,
			      MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);

	for (uint64_t n = 0; n < size && !pb_sys_failed(p); n += (uint64_t)p) {
		p = pb_sys(SYS_pread64, fd, at + (long)n, size - n, n);
		if (!p)
			return -EINVAL;
	}
	return p;
}

static int map_block(int fd, uint64_t size, uint64_t span, bool copy, void **block)
{
	long p, at = pb_pages_map(0, span, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
				  -1, 0);

	if (pb_sys_failed(at))
		return (int)at;
	p = (copy ? copy_at : map_at)(at, fd, size, span);
	if (pb_sys_failed(p)) {
		pb_pages_unmap((uint64_t)at, span);
		return (int)p;
	}
	*block = (void *)at;
	return 0;
}

/* Returns whether the verifier trusts the map's values. No program writes to them: the map has no
 * locks, timers or kernel pointers either. */
static bool is_constant(const struct pb_bpf_map_spec *s, bool frozen)
{
	return s->attr.type == BPF_MAP_TYPE_ARRAY && s->attr.flags & BPF_F_RDONLY_PROG && frozen &&
	       s->types.spin_lock_off < 0 && s->types.timer_off < 0 && !s->types.nr_kptrs;
}

static int make_owner(struct pb_bpf_map *map, int fd, const struct stat *st)
{
	map->dev = st->st_dev;
	map->ino = st->st_ino;
	return pb_bpf_become_owner(map, fd);
}

/* Leaves the map's dev and ino 0, so that pb_prog_map_again() leaves the copy alone. */
static int make_constant(struct pb_bpf_map *map)
{
	if (!is_constant(&map->head->spec, map->frozen))
		return -EINVAL;		/* the file has changed */
	return (int)pb_sys(SYS_mprotect, map->head, map->mapped, PROT_READ);
}

static int attach(struct pb_bpf_map *map, int fd)
{
	uint64_t size, span;
	bool copy;
	struct stat st;
	void *block;
	long head;
	int err = (int)pb_sys(SYS_fstat, fd, &st);

	if (err)
		return err;
	if (!S_ISREG(st.st_mode) || st.st_size < (off_t)sizeof(struct pb_bpf_map_head))
		return -EINVAL;
	head = pb_pages_map(0, sizeof(struct pb_bpf_map_head), PROT_READ, MAP_SHARED, fd, 0);
	if (pb_sys_failed(head))
		return (int)head;
	size = pb_bpf_map_block_size((void *)head, (uint64_t)st.st_size, &span);
	copy = is_constant(&((struct pb_bpf_map_head *)head)->spec,
			   ((struct pb_bpf_map_head *)head)->frozen);
	pb_pages_unmap((uint64_t)head, sizeof(struct pb_bpf_map_head));
	if (!size)
		return -EINVAL;
	err = map_block(fd, size, span, copy, &block);
	if (err)
		return err;
	err = pb_bpf_map_open(map, block, size, span);
	if (!err)
		err = copy ? make_constant(map) : make_owner(map, fd, &st);
	if (err)
		pb_pages_unmap((uint64_t)block, span);
	return err;
}

int pb_prog_map(struct pb_bpf_map *map, const char *path)
{
	long fd = pb_sys(SYS_openat, AT_FDCWD, path, O_RDWR | O_CLOEXEC, 0);
	int err;

	if (pb_sys_failed(fd))
		return (int)fd;
	err = attach(map, (int)fd);
	pb_sys(SYS_close, fd);
	return err;
}

void pb_prog_map_again(struct pb_bpf_map *map, const char *path, bool owner)
{
	struct stat st;
	long fd;

	if (!map->ino)			/* a copy */
		return;
	fd = pb_sys(SYS_openat, AT_FDCWD, path, O_RDWR | O_CLOEXEC, 0);
	if (pb_sys_failed(fd))
		return;
	/* If the child gets no number of its own, it has none (0), and doesn't keep its parent's.
	 * Its new mappings don't keep the parent's lock. So if the parent died, a child with the
	 * parent's number would count as dead. */
	if (!pb_sys(SYS_fstat, fd, &st) && st.st_dev == map->dev && st.st_ino == map->ino &&
	    !pb_sys_failed(map_at((long)map->head, (int)fd, map->size, map->mapped)) &&
	    (!owner || pb_bpf_become_owner(map, (int)fd)))
		map->owner = 0;
	pb_sys(SYS_close, fd);
}

void pb_prog_map_zeros(struct pb_bpf_map *map)
{
	if (map->ino)
		pb_pages_map((uint64_t)map->head, map->mapped, PROT_READ | PROT_WRITE,
			     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
}
