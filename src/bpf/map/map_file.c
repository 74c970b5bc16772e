/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Creates and opens files of maps. A process that creates or opens a map's file becomes an owner of
 * the map. */
#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "bpf/map/map_file.h"
#include "bpf/map/map_owner.h"

/* ---- which processes live -------------------------------------------------------------- */

/* Returns whether the descriptor still refers to the map's file. The program may have closed the
 * descriptor, and another file may have got the same number. Then the locks can't be tested, so no
 * process counts as dead. */
static bool same_file(const struct pb_bpf_map *map)
{
	int saved = errno;
	struct stat st;
	bool same = !fstat(map->fd, &st) && st.st_dev == map->dev && st.st_ino == map->ino;

	errno = saved;
	return same;
}

static bool alive(const struct pb_bpf_map *map, uint32_t owner)
{
	short type = F_WRLCK;

	return owner == map->owner || !same_file(map) ||
	       pb_bpf_owner_lock(map->fd, F_OFD_GETLK, &type, owner, 1) || type != F_UNLCK;
}

bool pb_bpf_map_file_used(int fd)
{
	short type = F_WRLCK;

	return pb_bpf_owner_lock(fd, F_OFD_GETLK, &type, 0, PB_BPF_MAX_OWNERS) || type != F_UNLCK;
}

static bool claim(const struct pb_bpf_map *map, uint32_t owner)
{
	short type = F_WRLCK;

	return owner != map->owner && same_file(map) &&
	       !pb_bpf_owner_lock(map->fd, F_OFD_SETLK, &type, owner, 1);
}

static void unclaim(const struct pb_bpf_map *map, uint32_t owner)
{
	short type = F_UNLCK;

	if (owner != map->owner && same_file(map))
		pb_bpf_owner_lock(map->fd, F_OFD_SETLK, &type, owner, 1);
}

static int become_owner(struct pb_bpf_map *map)
{
	map->alive = alive;
	map->claim = claim;
	map->unclaim = unclaim;
	return pb_bpf_become_owner(map, map->fd);
}

/* ---- mappings --------------------------------------------------------------- */

/* Maps the block, which has `size` bytes. The rest of `span` maps the block's end a second time
 * (pb_bpf_map_span()). */
static int map_block(int fd, uint64_t size, uint64_t span, bool writable, void **block)
{
	int prot = PROT_READ | (writable ? PROT_WRITE : 0);
	char *at = mmap(NULL, span, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	uint64_t again = span - size;

	if (at == MAP_FAILED)
		return -errno;
	if (mmap(at, size, prot, MAP_SHARED | MAP_FIXED, fd, 0) == MAP_FAILED ||
	    (again && mmap(at + size, again, prot, MAP_SHARED | MAP_FIXED, fd,
			   (off_t)(size - again)) == MAP_FAILED)) {
		int err = errno;

		munmap(at, span);
		return -err;
	}
	*block = at;
	return 0;
}

/* Opens the mapped block. If this fails, unmaps it. */
static int view(struct pb_bpf_map *map, int fd, void *block, uint64_t size, uint64_t span)
{
	struct stat st;
	int err = pb_bpf_map_open(map, block, size, span);

	if (!err && fstat(fd, &st))
		err = -errno;
	if (err) {
		munmap(block, span);
		return err;
	}
	map->fd = fd;
	map->dev = st.st_dev;
	map->ino = st.st_ino;
	return 0;
}

/* Returns the error of a failed ftruncate(). */
static int no_size(uint64_t size)
{
	int err = errno;
	struct rlimit limit;

	if (err == EFBIG && !getrlimit(RLIMIT_FSIZE, &limit) && limit.rlim_cur < size)
		return -EFBIG;
	return err == EFBIG || err == EINVAL ? -ENOMEM : -err;
}

/* Fills the file with zeros, on file systems without fallocate(). */
static int write_zeros(int fd, uint64_t size)
{
	static const char zeros[1 << 16];

	for (uint64_t at = 0; at < size; ) {
		uint64_t n = size - at < sizeof(zeros) ? size - at : sizeof(zeros);
		ssize_t ret = pwrite(fd, zeros, n, (off_t)at);

		if (ret < 0 && errno != EINTR)
			return -errno;
		if (ret > 0)
			at += (uint64_t)ret;
	}
	return 0;
}

/* Gets room in the file system for all bytes of the file. If a page had no room yet, and the file
 * system were full, the first store to the page would raise SIGBUS, even in a traced program. */
static int take_room(int fd, uint64_t size)
{
	while (fallocate(fd, 0, 0, (off_t)size)) {
		if (errno == EOPNOTSUPP || errno == ENOSYS)
			return write_zeros(fd, size);
		if (errno != EINTR)
			return -errno;
	}
	return 0;
}

/* room: whether to get room in the file system for the whole map. */
static int create_in(struct pb_bpf_map *map, const struct pb_bpf_map_spec *spec, int fd,
		     uint32_t id, bool room)
{
	uint64_t size, span;
	void *block;
	int err;

	size = pb_bpf_map_size(spec, &err);
	if (!size)
		return err;
	span = pb_bpf_map_span(spec, size);
	if (ftruncate(fd, (off_t)size))
		return no_size(size);
	err = room ? take_room(fd, size) : 0;
	if (err)
		return err;
	err = map_block(fd, size, span, true, &block);
	if (err)
		return err;
	err = pb_bpf_map_format(block, spec, id);
	if (err) {
		munmap(block, span);
		return err;
	}
	err = view(map, fd, block, size, span);
	if (err)
		return err;
	map->types = spec->types;
	err = become_owner(map);
	if (err)
		munmap(block, span);
	return err;
}

int pb_bpf_map_create_at(struct pb_bpf_map *map, const struct pb_bpf_map_spec *spec, int fd,
			 uint32_t id)
{
	return create_in(map, spec, fd, id, true);
}

/* The memfd gets its pages when they are used: memfds share a file system without a limit. */
int pb_bpf_map_create(struct pb_bpf_map *map, const struct pb_bpf_map_spec *spec)
{
	static uint32_t ids;
	int fd = memfd_create("bpf-map", MFD_CLOEXEC | MFD_ALLOW_SEALING), err;

	if (fd < 0)
		return -errno;
	err = create_in(map, spec, fd, __atomic_add_fetch(&ids, 1, __ATOMIC_RELAXED), false);
	if (err)
		close(fd);
	else
		fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL);
	return err;
}

int pb_bpf_map_attach(struct pb_bpf_map *map, int fd, uint8_t access)
{
	uint64_t size, span;
	struct stat st;
	void *block;
	int err;

	if (fstat(fd, &st))
		return -errno;
	if (!S_ISREG(st.st_mode) || st.st_size < (off_t)sizeof(struct pb_bpf_map_head))
		return -EINVAL;
	size = (uint64_t)st.st_size;
	err = map_block(fd, sizeof(struct pb_bpf_map_head), sizeof(struct pb_bpf_map_head), false,
			&block);
	if (err)
		return err;
	size = pb_bpf_map_block_size(block, size, &span);
	munmap(block, sizeof(struct pb_bpf_map_head));
	if (!size)
		return -EINVAL;
	/* The pages are writable even if `access` is read-only, because the consumer of a ring
	 * buffer writes its position. map->access has the actual rights. */
	err = map_block(fd, size, span, true, &block);
	if (err)
		return err;
	err = view(map, fd, block, size, span);
	if (err)
		return err;
	map->access &= access;
	err = become_owner(map);
	if (err)
		munmap(block, span);
	return err;
}

void pb_bpf_map_close(struct pb_bpf_map *map)
{
	if (map->owner)
		__atomic_fetch_and(&map->head->owners[map->owner / 32], ~(1u << map->owner % 32),
				   __ATOMIC_RELEASE);
	munmap(map->head, map->mapped);
	close(map->fd);
	map->head = NULL;
	map->fd = -1;
}
