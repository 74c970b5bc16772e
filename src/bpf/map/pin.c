/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Looks up paths of pins, and creates, opens and removes pins. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "bpf/map/map_file.h"
#include "bpf/map/pin.h"

/* ---- paths --------------------------------------------------------------------- */

static int err_of(int ret)
{
	/* EXDEV: a symbolic link leads out of the tree */
	return ret >= 0 ? ret : errno == EXDEV ? -EPERM : -errno;
}

static int open_beneath(int dir, const char *path, uint64_t flags)
{
	struct open_how how = { .flags = flags | O_CLOEXEC,
		.resolve = RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS };

	return err_of((int)syscall(SYS_openat2, dir, path, &how, sizeof(how)));
}

/* Returns the part of the path below the root, without leading slashes. NULL: the path is outside
 * of the tree. */
static const char *below(const struct pb_bpf_pins *p, const char *path)
{
	size_t n = strlen(p->path);

	if (*path == '/') {
		if (strncmp(path, p->path, n) || path[n] != '/')
			return NULL;
		path += n;
	}
	while (*path == '/')
		path++;
	return path;
}

/* The opened directory of a path, and the last part of the path. */
struct place {
	int dir;
	bool dot;		/* the last part contains a dot */
	char path[PATH_MAX], *name;
};

/* Opens the directory of a path. Checks the parts of the path in order, and returns the first
 * error, as the kernel does. */
static int find_dir(const struct pb_bpf_pins *p, const char *path, struct place *at)
{
	size_t n, dot;

	path = below(p, path);
	if (!path)
		return -EPERM;
	n = strlen(path);
	if (n >= sizeof(at->path))
		return -ENAMETOOLONG;
	memcpy(at->path, path, n + 1);
	while (n && at->path[n - 1] == '/')
		at->path[--n] = 0;
	if (!n)
		return *path ? -EEXIST : -ENOENT;
	/* The name is the last part. But if an earlier part contains a dot, the name begins with
	 * the first such part. The path is then refused below, because the name contains a
	 * slash. */
	dot = strcspn(at->path, ".");
	for (n = dot; n && at->path[n - 1] != '/'; n--)
		;
	at->name = at->path + n;
	at->dot = at->path[dot];
	if (n)
		at->path[n - 1] = 0;
	at->dir = open_beneath(p->root, n ? at->path : ".", O_PATH | O_DIRECTORY);
	if (at->dir < 0)
		return at->dir;
	if (!strchr(at->name, '/'))
		return 0;
	close(at->dir);
	return -EPERM;
}

/* Like find_dir(), but also refuses a path whose last part contains a dot. */
static int find_place(const struct pb_bpf_pins *p, const char *path, struct place *at)
{
	int err = find_dir(p, path, at);

	if (err || !at->dot)
		return err;
	close(at->dir);
	return -EPERM;
}

static int leave(struct place *at, int ret)
{
	int err = err_of(ret);

	close(at->dir);
	return err < 0 ? err : 0;
}

/* ---- the tree ------------------------------------------------------------------- */

static int open_private(const char *path)
{
	struct stat st;
	int fd;

	if (mkdir(path, 0700) && errno != EEXIST)
		return -errno;
	fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	if (fstat(fd, &st) || st.st_uid != geteuid() || st.st_mode & 022) {
		close(fd);
		return -EPERM;
	}
	return fd;
}

/* Removes the id (the link in directory `ids`) of each map that has no pin and is open in no
 * process. */
static void remove_unused(struct pb_bpf_pins *p)
{
	int copy = openat(p->ids, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *d = copy < 0 ? NULL : fdopendir(copy);
	struct dirent *e;

	if (!d) {
		if (copy >= 0)
			close(copy);
		return;
	}
	while ((e = readdir(d))) {
		struct stat st;
		int fd = -1;

		if (*e->d_name != '.')
			fd = openat(p->ids, e->d_name,
				    O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);

		if (fd < 0)
			continue;
		/* The order is important. A process pins a map before it closes the map. So if no
		 * process has the map, fstat() counts all its pins. */
		if (!pb_bpf_map_file_used(fd) && !fstat(fd, &st) && S_ISREG(st.st_mode) &&
		    st.st_nlink == 1)
			unlinkat(p->ids, e->d_name, 0);
		close(fd);
	}
	closedir(d);
}

int pb_bpf_pins_open(struct pb_bpf_pins *p, const char *path)
{
	char ids[PB_BPF_PIN_PATH + 8];

	p->root = p->ids = -1;
	if (snprintf(p->path, sizeof(p->path), "%s", path) >= (int)sizeof(p->path))
		return -ENAMETOOLONG;
	p->root = open_private(p->path);
	if (p->root < 0)
		return p->root;
	snprintf(ids, sizeof(ids), "%s-ids", p->path);
	p->ids = open_private(ids);
	if (p->ids < 0) {
		close(p->root);
		p->root = -1;
		return p->ids;
	}
	remove_unused(p);
	return 0;
}

void pb_bpf_pins_close(struct pb_bpf_pins *p)
{
	remove_unused(p);
	close(p->root);
	close(p->ids);
	p->root = p->ids = -1;
}

/* ---- maps ----------------------------------------------------------------------- */

static int link_fd(int fd, int dir, const char *name)
{
	char self[32];

	snprintf(self, sizeof(self), "/proc/self/fd/%d", fd);
	return linkat(AT_FDCWD, self, dir, name, AT_SYMLINK_FOLLOW);
}

/* A new map or program must not get the id of an earlier map or program, because a map of maps or a
 * prog_array may still hold that id. The file .last has the newest id. Ids are reused only after
 * INT32_MAX. */
uint32_t pb_bpf_pins_new_id(struct pb_bpf_pins *p, int *err)
{
	int fd = openat(p->ids, ".last", O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
	uint32_t id = 0;
	ssize_t written;

	if (fd < 0 || flock(fd, LOCK_EX)) {
		*err = -errno;
		if (fd >= 0)
			close(fd);
		return 0;
	}
	if (pread(fd, &id, sizeof(id), 0) != sizeof(id) || id >= INT32_MAX)
		id = 0;
	id++;
	written = pwrite(fd, &id, sizeof(id), 0);
	*err = written == sizeof(id) ? 0 : written < 0 ? -errno : -EIO;
	close(fd);
	return *err ? 0 : id;
}

static int take_id(struct pb_bpf_pins *p, struct pb_bpf_map *map)
{
	char name[16];
	uint32_t id;
	int err;

	while ((id = pb_bpf_pins_new_id(p, &err))) {
		snprintf(name, sizeof(name), "%u", id);
		if (!faccessat(p->ids, name, F_OK, 0))
			continue;
		map->head->id = map->id = id;
		if (!link_fd(map->fd, p->ids, name))
			return 0;
		if (errno != EEXIST)
			return -errno;
	}
	return err;
}

int pb_bpf_pins_create(struct pb_bpf_pins *p, struct pb_bpf_map *map,
		       const struct pb_bpf_map_spec *spec)
{
	int fd = openat(p->root, ".", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600), err;

	if (fd < 0)
		return -errno;
	err = pb_bpf_map_create_at(map, spec, fd, 0);
	if (err) {
		close(fd);
		return err;
	}
	err = take_id(p, map);
	if (err)
		pb_bpf_map_close(map);
	return err;
}

static int attach(struct pb_bpf_map *map, int fd, uint8_t access)
{
	int err = pb_bpf_map_attach(map, fd, access);

	if (err)
		close(fd);
	return err;
}

int pb_bpf_pins_get_id(struct pb_bpf_pins *p, struct pb_bpf_map *map, uint32_t id, uint8_t access)
{
	char name[16];
	int fd;

	snprintf(name, sizeof(name), "%u", id);
	fd = openat(p->ids, name, O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	return fd < 0 ? -errno : attach(map, fd, access);
}

int pb_bpf_obj_pin(struct pb_bpf_pins *p, const struct pb_bpf_map *map, const char *path)
{
	struct place at = { 0 };
	int err = find_place(p, path, &at);

	if (err)
		return err;
	err = link_fd(map->fd, at.dir, at.name) ? -errno : 0;
	close(at.dir);
	return err;
}

int pb_bpf_obj_get(struct pb_bpf_pins *p, struct pb_bpf_map *map, const char *path, uint32_t flags)
{
	uint8_t access = flags & BPF_F_RDONLY ? PB_BPF_MAP_READ :
			 flags & BPF_F_WRONLY ? PB_BPF_MAP_WRITE :
				 PB_BPF_MAP_READ | PB_BPF_MAP_WRITE;
	struct place at = { 0 };
	int err, fd;

	if (flags & ~(uint32_t)(BPF_F_RDONLY | BPF_F_WRONLY) ||
	    flags == (BPF_F_RDONLY | BPF_F_WRONLY))
		return -EINVAL;
	err = find_place(p, path, &at);
	if (err)
		return err == -EEXIST ? -EACCES : err;
	close(at.dir);
	/* open from the root, not from the path's directory: a symbolic link may lead upwards as
	 * long as it stays in the tree */
	if (at.name != at.path)
		at.name[-1] = '/';
	fd = open_beneath(p->root, at.path, O_RDWR | O_NONBLOCK);
	if (fd < 0)
		return fd == -EISDIR ? -EACCES : fd;
	err = attach(map, fd, access);
	return err == -EINVAL ? -EACCES : err;
}

/* ---- names ---------------------------------------------------------------------- */

int pb_bpf_pins_link(struct pb_bpf_pins *p, const char *from, const char *to)
{
	struct place a = { 0 }, b = { 0 };
	struct stat st;
	int err = find_place(p, from, &a);

	if (err)
		return err;
	err = fstatat(a.dir, a.name, &st, AT_SYMLINK_NOFOLLOW) ? -errno : find_place(p, to, &b);
	if (!err)
		err = leave(&b, linkat(a.dir, a.name, b.dir, b.name, 0));
	close(a.dir);
	return err;
}

int pb_bpf_pins_rename(struct pb_bpf_pins *p, const char *from, const char *to)
{
	struct place a = { 0 }, b = { 0 };
	struct stat st;
	int err = find_dir(p, from, &a);

	if (err)
		return err;
	err = find_dir(p, to, &b);
	if (!err) {
		if (a.dot)
			err = -EPERM;
		else if (fstatat(a.dir, a.name, &st, AT_SYMLINK_NOFOLLOW))
			err = -errno;
		else if (b.dot)
			err = -EPERM;
		else
			err = renameat(a.dir, a.name, b.dir, b.name) ? -errno : 0;
		close(b.dir);
	}
	close(a.dir);
	return err;
}

int pb_bpf_pins_unlink(struct pb_bpf_pins *p, const char *path)
{
	struct place at = { 0 };
	int err = find_place(p, path, &at);

	return err ? err : leave(&at, unlinkat(at.dir, at.name, 0));
}

int pb_bpf_pins_mkdir(struct pb_bpf_pins *p, const char *path)
{
	struct place at = { 0 };
	int err = find_place(p, path, &at);

	return err ? err : leave(&at, mkdirat(at.dir, at.name, 0700));
}

int pb_bpf_pins_rmdir(struct pb_bpf_pins *p, const char *path)
{
	struct place at = { 0 };
	int err = find_place(p, path, &at);

	return err ? err : leave(&at, unlinkat(at.dir, at.name, AT_REMOVEDIR));
}
