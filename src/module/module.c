/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* From a descriptor of an ELF file to a descriptor of its analysis. */
#include "module/module.h"
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include "abi/analysis_check.h"
#include "base/base.h"
#include "module/module_priv.h"

/* Goes up when the same file gives another analysis: then the old ones are stale. */
#define REVISION	16

#define KEY_DEBUG_FILE	0x80	/* names come from a separate file, too */

static int failed(int err, char *text, size_t len, const char *why)
{
	if (len)
		snprintf(text, len, "%s", why ? why : strerror(-err));
	return err;
}

static bool write_all(int fd, const uint8_t *p, size_t n)
{
	while (n) {
		ssize_t done = write(fd, p, n);

		if (done < 0 && errno == EINTR)
			continue;
		if (done <= 0)
			return false;
		p += done;
		n -= (size_t)done;
	}
	return true;
}

/* Makes the last two parts of a path. What stands before them is the user's to
 * make: a HOME that isn't there stays away. */
static void make_dirs(char *dir)
{
	char *slash = strrchr(dir, '/');

	if (slash && slash != dir) {
		*slash = 0;
		mkdir(dir, 0700);
		*slash = '/';
	}
	mkdir(dir, 0700);
}

static bool cache_dir(const struct pb_module_options *o, char *dir, size_t size)
{
	const char *xdg = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
	int n;

	if (o && o->cache_dir)
		n = snprintf(dir, size, "%s", o->cache_dir);
	else if (xdg && *xdg == '/')
		n = snprintf(dir, size, "%s/patchbay", xdg);
	else if (home && *home == '/')
		n = snprintf(dir, size, "%s/.cache/patchbay", home);
	else
		return false;
	return n > 0 && (size_t)n < size;
}

static uint64_t mix(uint64_t h, uint64_t v)
{
	h = (h ^ v) * 0x9fb21c651e98df25ull;
	return h ^ h >> 32;
}

/* What a file can't claim to be: which file it is, and since when. */
static uint64_t file_identity(const struct stat *st, const char *path)
{
	uint64_t h = mix(mix(0, st->st_dev), st->st_ino);

	h = mix(mix(h, (uint64_t)st->st_size), (uint64_t)st->st_ctim.tv_sec);
	h = mix(h, (uint64_t)st->st_ctim.tv_nsec);
	for (; *path; path++)
		h = mix(h, (uint8_t)*path);
	return h;
}

static bool cache_file(struct pb_elf *e, int fd, const char *path, unsigned flags, char *name,
		       size_t size)
{
	uint64_t vaddr;
	unsigned len = 0;
	const uint8_t *id = pb_elf_build_id(e, &len, &vaddr);
	char hex[2 * PB_BUILD_ID_MAX + 1] = "none";
	struct stat st;
	int n;

	if (fstat(fd, &st))
		return false;
	for (unsigned i = 0; id && i < len && i < PB_BUILD_ID_MAX; i++)
		snprintf(hex + 2 * i, 3, "%02x", id[i]);
	if (pb_debug_file_present(e, path))
		flags |= KEY_DEBUG_FILE;
	n = snprintf(name, size, "%s-%016llx-%x-v%u.%u", hex,
		     (unsigned long long)file_identity(&st, path), flags, PB_ANALYSIS_VERSION,
		     REVISION);
	return n > 0 && (size_t)n < size;
}

/* A descriptor of the cached analysis if it is ours and sound, or -1. */
static int open_cached(int dir, const char *name)
{
	int fd = openat(dir, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	struct stat st;
	void *map;
	int bad;

	if (fd < 0)
		return -1;
	if (fstat(fd, &st) || !S_ISREG(st.st_mode) || st.st_uid != geteuid() ||
	    st.st_mode & 022 || st.st_size < (off_t)sizeof(struct pb_analysis))
		goto no;
	map = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
	if (map == MAP_FAILED)
		goto no;
	bad = pb_analysis_check(map, (size_t)st.st_size);
	munmap(map, (size_t)st.st_size);
	if (!bad)
		return fd;
no:
	close(fd);
	return -1;
}

static int store_cached(int dir, const char *name, const uint8_t *blob, size_t size)
{
	static unsigned serial;
	char temp[NAME_MAX];
	int fd;

	snprintf(temp, sizeof(temp), ".new-%d-%u", getpid(),
		 __atomic_fetch_add(&serial, 1, __ATOMIC_RELAXED));
	unlinkat(dir, temp, 0);
	fd = openat(dir, temp, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd < 0)
		return -1;
	bool ok = write_all(fd, blob, size);

	ok &= !close(fd);
	if (ok && !renameat(dir, temp, dir, name))
		return open_cached(dir, name);
	unlinkat(dir, temp, 0);
	return -1;
}

/* Sealed, and read-only where /proc allows to say so. */
static int make_memfd(const uint8_t *blob, size_t size)
{
	int fd = memfd_create("patchbay-analysis", MFD_CLOEXEC | MFD_ALLOW_SEALING), ro;
	char self[64];

	if (fd < 0)
		return -errno;
	if (!write_all(fd, blob, size)) {
		close(fd);
		return -ENOMEM;
	}
	fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL);
	snprintf(self, sizeof(self), "/proc/self/fd/%d", fd);
	ro = open(self, O_RDONLY | O_CLOEXEC);
	if (ro < 0)
		return fd;
	close(fd);
	return ro;
}

struct cache {
	int dir;		/* -1: no caching */
	char name[NAME_MAX];
};

static void cache_open(struct cache *c, int elf_fd, const char *path,
		       const struct pb_module_options *o)
{
	char dir[PATH_MAX];
	struct pb_elf e;
	const char *why;

	c->dir = -1;
	if ((o && o->flags & PB_MODULE_NO_CACHE) || !cache_dir(o, dir, sizeof(dir)) ||
	    pb_elf_open(&e, elf_fd, false, &why))
		return;
	if (cache_file(&e, elf_fd, path, o ? o->flags & PB_MODULE_ALL_SITES : 0, c->name,
		       sizeof(c->name))) {
		make_dirs(dir);
		c->dir = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	}
	pb_elf_close(&e);
}

int pb_module_open(int elf_fd, const char *path, const struct pb_module_options *o, char *err,
		   size_t errlen)
{
	struct cache c;
	const char *why = NULL;
	uint8_t *blob;
	size_t size;
	int fd = -1, ret;

	cache_open(&c, elf_fd, path, o);
	if (c.dir >= 0)
		fd = open_cached(c.dir, c.name);
	if (fd >= 0) {
		close(c.dir);
		return fd;
	}
	ret = pb_analyse(elf_fd, path, o ? o->flags : 0, &blob, &size, &why);
	if (!ret) {
		if (c.dir >= 0)
			fd = store_cached(c.dir, c.name, blob, size);
		if (fd < 0)
			fd = make_memfd(blob, size);
		if (fd < 0)
			why = "no memory file for the analysis";
		ret = fd;
		free(blob);
	}
	if (c.dir >= 0)
		close(c.dir);
	return ret < 0 ? failed(ret, err, errlen, why) : ret;
}
