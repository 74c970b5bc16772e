/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Finds, checks, writes and removes the files of the cache (cache.h). A cached file is not trusted:
 * its owner and mode are checked. Its content must pass the same checks that the agent makes.
 */
#include "module/cache.h"
#include <ctype.h>
#include <dirent.h>
#include <fcntl.h>
#include <errno.h>
#include <pwd.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include "abi/analysis_check.h"
#include "module/analysis/debug_file.h"
#include "module/analysis/flags.h"
#include "module/elf/vec.h"
#include "module/stubs/stub_image.h"

/* Raise this number with any change after which the same ELF file gives a different analysis. */
#define REVISION	43
/* Raise this number with any change after which the same analysis gives a different file of stubs.
 * arch/x86_64/stub.c, stub_image.c and stub_rows.c write that file. */
#define STUBS_REVISION	7

#define KEY_DEBUG_FILE	0x80	/* a bit of FLAGS in the file's name: there is a separate debug
				 * file, which gives further symbols */

#define LIMIT		(512ull << 20)	/* in bytes; PATCHBAY_CACHE can set another limit */
#define USED_AGAIN	3600	/* in seconds; a file's last use is noted at most once in this
				 * time */
#define ABANDONED	3600	/* in seconds; if a temporary file is older than this, its writer is
				 * gone */
/* the tick of a file system's clock: two changes within one tick get the same time */
#define TICK_NS		20000000
#define COARSE_NS	2000000000	/* the tick of a file system that keeps no nanoseconds */

/* ---- the directory --------------------------------------------------------- */

/* Reads PATCHBAY_CACHE: "off" or "0", or a size in bytes, which may end in K, M or G. Other text
 * leaves *limit unchanged. Returns false for "off" and "0". */
static bool read_setting(uint64_t *limit)
{
	static const char units[] = "KMG";
	const char *text = getenv("PATCHBAY_CACHE"), *unit;
	char *end;
	unsigned long long n;

	if (!text || !*text)
		return true;
	if (!strcmp(text, "off") || !strcmp(text, "0"))
		return false;
	if (*text < '0' || *text > '9')
		return true;
	n = strtoull(text, &end, 10);
	unit = *end ? strchr(units, toupper((unsigned char)*end)) : NULL;
	if (*end && (!unit || end[1]))
		return true;
	for (long i = unit ? unit - units + 1 : 0; i > 0; i--)
		n = n > UINT64_MAX >> 10 ? UINT64_MAX : n << 10;
	*limit = n;
	return true;
}

static bool is_ours(int fd, mode_t type, struct stat *st)
{
	return !fstat(fd, st) && (st->st_mode & S_IFMT) == type && st->st_uid == geteuid() &&
	       !(st->st_mode & 022);
}

/* False if root would make a directory inside another user's directory: the other user could not
 * write to the new directory. */
static bool may_make_in(const char *dir)
{
	struct stat st;

	return geteuid() || (!stat(dir, &st) && !st.st_uid);
}

static void make_dir(char *dir)
{
	char *slash = strrchr(dir, '/');
	bool may;

	if (!slash || slash == dir)
		return;
	*slash = 0;
	may = may_make_in(dir);
	*slash = '/';
	if (may)
		mkdir(dir, 0700);
}

/* Opens the directory. Each of the last two components of its path is made if it is missing.
 * Earlier components are not made, so that a HOME that does not exist is not created. */
static int open_dir(char *dir)
{
	char *slash = strrchr(dir, '/');
	struct stat st;
	int fd;

	if (slash && slash != dir) {
		*slash = 0;
		make_dir(dir);
		*slash = '/';
	}
	make_dir(dir);
	fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd >= 0 && !is_ours(fd, S_IFDIR, &st)) {
		close(fd);
		return -1;
	}
	return fd;
}

static int open_at(const char *base, const char *rest)
{
	char dir[PATH_MAX];
	int n = snprintf(dir, sizeof(dir), "%s%s", base, rest);

	return n > 0 && (size_t)n < sizeof(dir) ? open_dir(dir) : -1;
}

/* Opens the cache in HOME. Under sudo, HOME may still be the directory of another user. If such a
 * directory can't hold the cache, opens the cache in the effective user's home directory. */
static int open_home(void)
{
	const char *home = getenv("HOME");
	struct passwd pw, *found = NULL;
	char buf[4096];
	int fd = home && *home == '/' ? open_at(home, "/.cache/patchbay") : -1;
	struct stat st;

	if (fd >= 0 || !home || stat(home, &st) || st.st_uid == geteuid())
		return fd;
	if (getpwuid_r(geteuid(), &pw, buf, sizeof(buf), &found) || !found || pw.pw_dir[0] != '/')
		return -1;
	return open_at(pw.pw_dir, "/.cache/patchbay");
}

static int open_cache_dir(const char *directory)
{
	const char *xdg = getenv("XDG_CACHE_HOME");

	if (directory)
		return open_at(directory, "");
	if (xdg && *xdg == '/')
		return open_at(xdg, "/patchbay");
	return open_home();
}

/* ---- file names ------------------------------------------------------------ */

static uint64_t mix(uint64_t h, uint64_t v)
{
	h = (h ^ v) * 0x9fb21c651e98df25ull;
	return h ^ h >> 32;
}

/* Returns a hash of values that the file's content can't forge: device, inode, size, time of the
 * last change, and path. */
static uint64_t file_identity(const struct stat *st, const char *path)
{
	uint64_t h = mix(mix(0, st->st_dev), st->st_ino);

	h = mix(mix(h, (uint64_t)st->st_size), (uint64_t)st->st_ctim.tv_sec);
	h = mix(h, (uint64_t)st->st_ctim.tv_nsec);
	for (; *path; path++)
		h = mix(h, (uint8_t)*path);
	return h;
}

/* True if the last change is older than a tick of the clock, or if its time is in the future. A
 * further change then gets a different time. */
static bool is_settled(const struct stat *st)
{
	struct timespec now;
	int64_t age;

	clock_gettime(CLOCK_REALTIME, &now);
	age = (int64_t)(now.tv_sec - st->st_ctim.tv_sec) * 1000000000 + now.tv_nsec -
	      st->st_ctim.tv_nsec;
	return age < 0 || age > (st->st_ctim.tv_nsec ? TICK_NS : COARSE_NS);
}

static bool make_name(struct pb_cache *c, struct pb_elf *e, int fd, const char *path,
		      unsigned flags)
{
	uint64_t vaddr;
	unsigned len = 0;
	const uint8_t *id = pb_elf_build_id(e, &len, &vaddr);
	char hex[2 * PB_BUILD_ID_MAX + 1] = "none";
	struct stat st;
	int n;

	if (fstat(fd, &st))
		return false;
	c->identity = file_identity(&st, path);
	c->settled = is_settled(&st);
	for (unsigned i = 0; id && i < len && i < PB_BUILD_ID_MAX; i++)
		snprintf(hex + 2 * i, 3, "%02x", id[i]);
	if (pb_debug_file_present(e, path))
		flags |= KEY_DEBUG_FILE;
	n = snprintf(c->name, sizeof(c->name), "%s-%016llx-%x-v%u.%u", hex,
		     (unsigned long long)c->identity, flags, PB_ANALYSIS_VERSION, REVISION);
	return n > 0 && (size_t)n < sizeof(c->name);
}

void pb_cache_open(struct pb_cache *c, int elf_fd, const char *path, unsigned flags,
		   const char *directory)
{
	struct pb_elf e;
	const char *why;

	c->dir = -1;
	c->stubs = false;
	c->limit = LIMIT;
	if (flags & PB_MODULE_NO_CACHE || !read_setting(&c->limit) ||
	    pb_elf_open(&e, elf_fd, false, &why))
		return;
	if (make_name(c, &e, elf_fd, path, flags & (PB_MODULE_ALL_SITES | PB_MODULE_RETURNS)))
		c->dir = open_cache_dir(directory);
	pb_elf_close(&e);
}

void pb_cache_stubs(struct pb_cache *c)
{
	size_t len = strlen(c->name);
	int n = snprintf(c->name + len, sizeof(c->name) - len, ".s%u", STUBS_REVISION);

	c->stubs = true;
	if (n < 0 || (size_t)n >= sizeof(c->name) - len)
		pb_cache_close(c);
}

void pb_cache_close(struct pb_cache *c)
{
	if (c->dir >= 0)
		close(c->dir);
	c->dir = -1;
}

/* ---- finding a file -------------------------------------------------------- */

static void note_use(int fd, const struct stat *st)
{
	static const struct timespec times[2] = { { 0, UTIME_OMIT }, { 0, UTIME_NOW } };

	if (time(NULL) - st->st_mtim.tv_sec > USED_AGAIN && futimens(fd, times)) {
		/* harmless: at worst the cache removes the file too early */
	}
}

static bool is_sound(const struct pb_cache *c, const void *map, size_t size)
{
	const struct pb_stubs *s = (const void *)((const char *)map + PB_STUBS_AT);

	if (!c->stubs)
		return size >= sizeof(struct pb_analysis) && !pb_analysis_check(map, size);
	return size >= PB_STUBS_AT + sizeof(*s) && pb_stubs_fit(s, size) &&
	       pb_stubs_sum(s) == s->sum;
}

int pb_cache_find(const struct pb_cache *c)
{
	int flags = O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK;
	int fd = c->dir < 0 ? -1 : openat(c->dir, c->name, flags);
	struct stat st;
	void *map;
	bool sound;

	if (fd < 0)
		return -1;
	if (!is_ours(fd, S_IFREG, &st) || !st.st_size)
		goto no;
	map = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
	if (map == MAP_FAILED)
		goto no;
	sound = is_sound(c, map, (size_t)st.st_size);
	munmap(map, (size_t)st.st_size);
	if (sound) {
		note_use(fd, &st);
		return fd;
	}
no:
	close(fd);
	return -1;
}

/* ---- the limit ------------------------------------------------------------- */

struct old {
	char *name;
	int64_t used;
	uint64_t size;
};
typedef PB_VEC(struct old) old_vec;

static int by_use(const void *a, const void *b)
{
	const struct old *x = a, *y = b;

	return x->used < y->used ? -1 : x->used > y->used;
}

/* True if the name looks like the name of a cached file (cache.h). The cache removes only such
 * files and its own temporary files. */
static bool is_cache_name(const char *name)
{
	const char *p = name;
	size_t n;

	if (!strncmp(p, "none", 4))
		p += 4;
	else
		p += strspn(p, "0123456789abcdef");
	n = strspn(p + (*p == '-'), "0123456789abcdef");
	if (p == name || *p != '-' || n != 16)
		return false;
	p += 17;
	return *p == '-' && p[1 + strspn(p + 1, "0123456789abcdef")] == '-' && strchr(p, 'v');
}

static void note_file(int dir, const char *name, old_vec *files)
{
	struct stat st;
	bool temporary = !strncmp(name, ".new-", 5);

	if ((!temporary && !is_cache_name(name)) || fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) ||
	    !S_ISREG(st.st_mode))
		return;
	if (!temporary)
		pb_vec_push(files, (struct old){ strdup(name), st.st_mtim.tv_sec,
						 (uint64_t)st.st_blocks * 512 });
	else if (time(NULL) - st.st_mtim.tv_sec > ABANDONED)
		unlinkat(dir, name, 0);
}

/* If all files together exceed the limit, removes the least recently used files until the rest
 * takes at most three quarters of the limit. New files can use the free quarter before the next
 * removal. */
static void remove_oldest(int dir, old_vec *files, uint64_t limit)
{
	uint64_t total = 0, keep = limit - limit / 4;

	for (size_t i = 0; i < files->n; i++)
		total += files->v[i].size;
	if (total <= limit)
		return;
	pb_vec_sort(files, by_use);
	for (size_t i = 0; i < files->n && total > keep; i++) {
		if (files->v[i].name && !unlinkat(dir, files->v[i].name, 0))
			total -= files->v[i].size;
	}
}

static void trim(const struct pb_cache *c)
{
	int fd = openat(c->dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *d = fd >= 0 ? fdopendir(fd) : NULL;
	old_vec files = { 0 };

	if (!d) {
		if (fd >= 0)
			close(fd);
		return;
	}
	for (struct dirent *e; (e = readdir(d));)
		note_file(c->dir, e->d_name, &files);
	closedir(d);
	remove_oldest(c->dir, &files, c->limit);
	for (size_t i = 0; i < files.n; i++)
		free(files.v[i].name);
	pb_vec_free(&files);
}

/* Trims when the process adds its first file. After that, trims each time the process has added a
 * sixteenth of the limit. */
static void trim_at_times(const struct pb_cache *c, size_t size)
{
	static uint64_t added = UINT64_MAX / 2;

	if (__atomic_add_fetch(&added, size, __ATOMIC_RELAXED) < c->limit / 16)
		return;
	__atomic_store_n(&added, 0, __ATOMIC_RELAXED);
	trim(c);
}

/* ---- storing a file -------------------------------------------------------- */

bool pb_write_all(int fd, const uint8_t *p, size_t n)
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

int pb_cache_store(const struct pb_cache *c, int elf_fd, const char *path, const uint8_t *blob,
		   size_t size)
{
	char temp[NAME_MAX];
	uint64_t random;
	struct stat st;
	int fd;

	if (c->dir < 0 || !c->settled || size > c->limit || fstat(elf_fd, &st) ||
	    file_identity(&st, path) != c->identity)
		return -1;
	/* Containers with the same home directory share the cache. A process of another container
	 * may have the same PID, so only a random name belongs to this call alone. */
	if (getrandom(&random, sizeof(random), GRND_NONBLOCK) != sizeof(random))
		return -1;
	snprintf(temp, sizeof(temp), ".new-%016llx", (unsigned long long)random);
	fd = openat(c->dir, temp, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd < 0)
		return -1;
	bool ok = pb_write_all(fd, blob, size);

	ok &= !close(fd);
	if (ok && !renameat(c->dir, temp, c->dir, c->name)) {
		fd = pb_cache_find(c);
		trim_at_times(c, size);
		return fd;
	}
	unlinkat(c->dir, temp, 0);
	return -1;
}
