/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Makes the files of a data directory, and renames an existing data directory.
 *
 * The writer of a data directory holds a lock (flock) on it until the directory is complete. A
 * directory is renamed or removed only by a process that holds its lock. So a second recording with
 * the same name is refused. The kernel drops the lock when the writer dies.
 */
#include "reader/datadir_writer.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/base.h"
#include "reader/say.h"

#define META_RESERVE (128 << 10)
#define NAME_ROOM 8		/* room for a suffix of the directory's name */

/* True if the directory is a data directory: its meta file begins with our magic, or the directory
 * is empty. If a file can't be opened, the result is false, and errno is set. */
static bool is_datadir(const char *dir)
{
	struct pb_data_header h;
	char path[PATH_MAX + NAME_ROOM + 8];
	bool ok = false;

	if ((size_t)snprintf(path, sizeof(path), "%s/meta", dir) >= sizeof(path))
		return false;
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	if (fd >= 0) {
		ok = read(fd, &h, sizeof(h)) == sizeof(h) && h.magic == PB_DATA_MAGIC_META;
		close(fd);
		return ok;
	}
	DIR *d = opendir(dir);
	if (!d)
		return false;
	ok = true;
	for (struct dirent *e; (e = readdir(d));)
		if (strcmp(e->d_name, ".") && strcmp(e->d_name, ".."))
			ok = false;
	closedir(d);
	return ok;
}

/* Removes the modules. Returns 0 or -errno. On failure, nothing was removed. */
static int remove_modules(int dir_fd)
{
	int fd = openat(dir_fd, "modules", O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	DIR *d = fd >= 0 ? fdopendir(fd) : NULL;
	int err = errno;

	if (!d) {
		if (fd >= 0)
			close(fd);
		/* without a descriptor, the directory can be removed only if it is empty */
		return unlinkat(dir_fd, "modules", AT_REMOVEDIR) && errno == ENOTEMPTY ? -err : 0;
	}
	for (struct dirent *e; (e = readdir(d));)
		if (strspn(e->d_name, "0123456789") == strlen(e->d_name))
			unlinkat(dirfd(d), e->d_name, 0);
	closedir(d);
	unlinkat(dir_fd, "modules", AT_REMOVEDIR);
	return 0;
}

/* Locks a directory without waiting. Returns 0, or -EBUSY if another process writes to it. Some
 * file systems have no locks; there, no directory counts as being written to. */
static int lock(int dir_fd)
{
	return flock(dir_fd, LOCK_EX | LOCK_NB) && errno == EWOULDBLOCK ? -EBUSY : 0;
}

/* True if the path leads to the open directory. */
static bool is_same(const char *dir, int dir_fd)
{
	struct stat st, own;

	return !lstat(dir, &st) && !fstat(dir_fd, &own) && st.st_dev == own.st_dev &&
	       st.st_ino == own.st_ino;
}

/* Removes a directory whose lock the caller holds. */
static int remove_locked(const char *dir, int dir_fd)
{
	/* remove_modules() needs one more descriptor, so it is called first: if it fails, nothing
	 * was removed */
	int ret = remove_modules(dir_fd);

	if (ret)
		return ret;
	unlinkat(dir_fd, "chunks", 0);
	unlinkat(dir_fd, "open", 0);
	unlinkat(dir_fd, "meta", 0);
	return rmdir(dir) ? -errno : 0;
}

int pb_datadir_remove(const char *dir)
{
	int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	int ret;

	if (fd < 0)	/* an empty directory can be removed even if it can't be opened */
		return errno == ENOENT || rmdir(dir) ? -errno : 0;
	ret = lock(fd);
	if (!ret)
		ret = remove_locked(dir, fd);
	close(fd);
	return ret;
}

/* The names to which earlier recordings are renamed. */
struct former {
	char old[sizeof(((struct pb_datadir *)0)->dir) + NAME_ROOM];
	char older[sizeof(((struct pb_datadir *)0)->dir) + NAME_ROOM];
};

static struct former former_names(const struct pb_datadir *w)
{
	struct former f;

	snprintf(f.old, sizeof(f.old), "%s.old", w->dir);
	snprintf(f.older, sizeof(f.older), "%s.old~", w->dir);
	return f;
}

static int busy(const char *dir, char *err, size_t errlen)
{
	snprintf(err, errlen, "%s: a recording is being written to it; choose another name with -d",
		 dir);
	return -EBUSY;
}

/* Renames a directory, unless a recording is being written to it. The lock is held during the
 * rename, so a recorder that has just made the directory can't begin to write. */
static int rename_locked(const char *from, const char *to, char *err, size_t errlen)
{
	int fd = open(from, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	int ret = fd < 0 ? -errno : 0;

	if (ret)
		return ret;
	if (lock(fd)) {
		ret = busy(from, err, errlen);
	} else if (rename(from, to)) {
		ret = -errno;
		snprintf(err, errlen, "%s: can't rename it to %s: %s; choose another name with -d",
			 from, to, strerror(-ret));
	}
	close(fd);
	return ret;
}

/* Renames an existing data directory. Refuses to rename any other directory or file. */
static int move_away(const char *from, const char *to, char *err, size_t errlen)
{
	struct stat st;

	if (lstat(from, &st))
		return errno == ENOENT ? 0 : -errno;
	errno = 0;
	if (!S_ISDIR(st.st_mode) || !is_datadir(from)) {
		if (*pb_say_limit(-errno))	/* it may be one, but can't be looked at */
			return -errno;
		snprintf(err, errlen,
			 "%s: exists and is not a Patchbay data directory; move it, or choose "
			 "another name with -d", from);
		return -EEXIST;
	}
	return rename_locked(from, to, err, errlen);
}

static void move_back(const struct pb_datadir *w)
{
	struct former f = former_names(w);

	if (!w->moved)
		return;
	rename(f.old, w->dir);
	if (is_datadir(f.older))
		rename(f.older, f.old);
}

static int move_old(struct pb_datadir *w, char *err, size_t errlen)
{
	struct former f = former_names(w);
	struct stat st;
	int ret;

	if (lstat(w->dir, &st))
		return errno == ENOENT ? 0 : -errno;
	if (is_datadir(f.older))
		pb_datadir_remove(f.older);
	ret = move_away(f.old, f.older, err, errlen);
	if (ret)
		return ret;
	ret = move_away(w->dir, f.old, err, errlen);
	if (!ret)
		w->moved = true;
	else if (is_datadir(f.older))
		rename(f.older, f.old);
	return ret;
}

static int create_file(int dir_fd, const char *name, uint64_t magic, int flags)
{
	struct pb_data_header h = { .magic = magic, .version = PB_DATA_VERSION };
	int fd = openat(dir_fd, name, O_CREAT | O_EXCL | O_RDWR | O_CLOEXEC | flags, 0666);
	ssize_t n;

	if (fd < 0)
		return -errno;
	n = write(fd, &h, sizeof(h));
	if (n != sizeof(h)) {
		int ret = n < 0 ? -errno : -ENOSPC;

		close(fd);
		return ret;
	}
	return fd;
}

/* Opens the directory that was just made, locks it, and makes its meta file. The meta file is made
 * first, because it marks the directory as a data directory. Before the lock is held, another
 * recorder may rename the directory, or make one of the same name. Then the result is -EBUSY, and
 * nothing was made. */
static int begin(struct pb_datadir *w, char *err, size_t errlen)
{
	w->dir_fd = open(w->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	if (w->dir_fd < 0)
		return -errno;
	if (lock(w->dir_fd) || !is_same(w->dir, w->dir_fd))
		return busy(w->dir, err, errlen);
	w->meta_fd = create_file(w->dir_fd, "meta", PB_DATA_MAGIC_META, O_APPEND);
	if (w->meta_fd == -EEXIST)
		return busy(w->dir, err, errlen);
	return w->meta_fd < 0 ? w->meta_fd : 0;
}

static int make_files(struct pb_datadir *w, char *err, size_t errlen)
{
	int ret = begin(w, err, errlen);

	if (ret)
		return ret;
	w->chunks_fd = create_file(w->dir_fd, "chunks", PB_DATA_MAGIC_CHUNKS, 0);
	if (w->chunks_fd < 0)
		return w->chunks_fd;
	if (mkdirat(w->dir_fd, "modules", 0777) ||
	    (w->modules_fd = openat(w->dir_fd, "modules",
				    O_RDONLY | O_DIRECTORY | O_CLOEXEC)) < 0)
		return -errno;
	w->chunks_size = sizeof(struct pb_data_header);
	/* Reserve room, so that the last records can be written even on a full disk. */
	fallocate(w->meta_fd, FALLOC_FL_KEEP_SIZE, 0, META_RESERVE);
	return 0;
}

int pb_datadir_open(struct pb_datadir *w, const char *dir, char *err, size_t errlen)
{
	size_t len = strlen(dir);
	int ret;

	*err = 0;
	w->moved = false;
	pthread_mutex_init(&w->meta_lock, NULL);
	w->meta_size = sizeof(struct pb_data_header);
	w->dir_fd = w->chunks_fd = w->meta_fd = w->modules_fd = -1;
	while (len > 1 && dir[len - 1] == '/')
		len--;
	if (!len || len + NAME_ROOM > sizeof(w->dir)) {
		snprintf(err, errlen, "the data directory's name is empty or too long");
		return -ENAMETOOLONG;
	}
	memcpy(w->dir, dir, len);
	w->dir[len] = 0;
	ret = move_old(w, err, errlen);
	/* other users must not see the names of functions and the times of calls */
	if (!ret && mkdir(w->dir, 0700)) {
		ret = -errno;
		move_back(w);
	} else if (!ret) {
		ret = make_files(w, err, errlen);
		if (ret == -EBUSY)	/* the directory belongs to another recorder now */
			pb_datadir_close(w);
		else if (ret)
			pb_datadir_undo(w);
	}
	if (ret && !*err)
		snprintf(err, errlen, "%s: can't make the data directory: %s%s", w->dir,
			 strerror(-ret), *pb_say_limit(ret) ? pb_say_limit(ret) :
			 "; choose another name with -d");
	return ret;
}

/* Appends the bytes, or none of them: if the rest of a record were missing, a reader would take the
 * next record for the rest. */
static int append_meta(struct pb_datadir *w, const struct iovec *iov, int nr, uint64_t bytes)
{
	ssize_t n;
	int ret;

	/* an earlier record was written in part, and couldn't be cut off then */
	if (w->meta_torn && ftruncate(w->meta_fd, (off_t)w->meta_size))
		return -errno;
	w->meta_torn = false;
	do
		n = writev(w->meta_fd, iov, nr);
	while (n < 0 && errno == EINTR);
	if (n == (ssize_t)bytes) {
		w->meta_size += bytes;
		return 0;
	}
	ret = n < 0 ? -errno : -ENOSPC;
	w->meta_torn = n > 0 && ftruncate(w->meta_fd, (off_t)w->meta_size);
	return ret;
}

int pb_datadir_meta(struct pb_datadir *w, uint32_t type, const void *body, size_t len,
		    const void *tail, size_t tail_len)
{
	static const char zero[8];
	struct pb_meta m = { .type = type, .len = (uint32_t)(len + tail_len) };
	size_t padded = pb_align_up(len + tail_len, 8);
	struct iovec iov[4] = {
		{ &m, sizeof(m) }, { (void *)body, len }, { (void *)tail, tail_len },
		{ (void *)zero, padded - len - tail_len },
	};
	int ret;

	pthread_mutex_lock(&w->meta_lock);
	ret = append_meta(w, iov, 4, sizeof(m) + padded);
	pthread_mutex_unlock(&w->meta_lock);
	return ret;
}

int pb_datadir_note(struct pb_datadir *w, const char *text)
{
	return pb_datadir_meta(w, PB_META_NOTE, NULL, 0, text, strlen(text) + 1);
}

static uint64_t now_ns(clockid_t id)
{
	struct timespec ts;

	clock_gettime(id, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

/* Reads all clocks between two readings of the TSC. The TSC value that is written belongs to the
 * reading of CLOCK_MONOTONIC. There are 16 tries, because the thread may be scheduled out during a
 * try. The shortest try counts. */
int pb_datadir_clock(struct pb_datadir *w)
{
	struct pb_meta_clock best = { 0 };
	uint64_t width = UINT64_MAX;

	for (int i = 0; i < 16; i++) {
		struct pb_meta_clock c;
		uint64_t t0 = pb_cpu_counter(), t1;

		c.monotonic = now_ns(CLOCK_MONOTONIC);
		t1 = pb_cpu_counter();
		c.monotonic_raw = now_ns(CLOCK_MONOTONIC_RAW);
		c.boottime = now_ns(CLOCK_BOOTTIME);
		c.realtime = now_ns(CLOCK_REALTIME);
		c.tsc = t0 + (t1 - t0) / 2;
		if (pb_cpu_counter() - t0 < width) {
			width = pb_cpu_counter() - t0;
			best = c;
		}
	}
	return pb_datadir_meta(w, PB_META_CLOCK, &best, sizeof(best), NULL, 0);
}

int pb_datadir_module(struct pb_datadir *w, uint32_t number, int fd, uint64_t size)
{
	char name[16];
	off_t from = 0;
	int ret = 0;

	snprintf(name, sizeof(name), "%u", number);
	int out = openat(w->modules_fd, name, O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0666);
	if (out < 0)
		return -errno;
	while (!ret && (uint64_t)from < size) {
		ssize_t n = sendfile(out, fd, &from, size - (uint64_t)from);
		if (n < 0 && errno != EINTR)
			ret = -errno;
		else if (!n)
			ret = -EIO;
	}
	close(out);
	if (ret)
		unlinkat(w->modules_fd, name, 0);
	return ret;
}

int pb_datadir_chunks(struct pb_datadir *w, const struct iovec *iov, int nr, uint64_t bytes)
{
	ssize_t n;

	do
		n = pwritev(w->chunks_fd, iov, nr, (off_t)w->chunks_size);
	while (n < 0 && errno == EINTR);
	if (n == (ssize_t)bytes) {
		w->chunks_size += bytes;
		return 0;
	}
	int ret = n < 0 ? -errno : -ENOSPC;
	/* if only a part was written, cut it off: the last chunk in the file must be whole */
	if (n > 0 && ftruncate(w->chunks_fd, (off_t)w->chunks_size))
		return -errno;
	return ret;
}

int pb_datadir_file(struct pb_datadir *w, const char *name, uint64_t magic)
{
	return create_file(w->dir_fd, name, magic, 0);
}

static void close_files(struct pb_datadir *w)
{
	struct stat st;
	int *fds[] = { &w->chunks_fd, &w->meta_fd, &w->modules_fd };

	if (w->meta_fd >= 0 && !fstat(w->meta_fd, &st) && ftruncate(w->meta_fd, st.st_size)) {
		/* harmless: the file keeps some reserved space */
	}
	for (size_t i = 0; i < pb_array_size(fds); i++) {
		if (*fds[i] >= 0)
			close(*fds[i]);
		*fds[i] = -1;
	}
}

void pb_datadir_close(struct pb_datadir *w)
{
	close_files(w);
	if (w->dir_fd >= 0)
		close(w->dir_fd);
	w->dir_fd = -1;
}

void pb_datadir_commit(struct pb_datadir *w)
{
	struct former f = former_names(w);

	if (w->moved && is_datadir(f.older))
		pb_datadir_remove(f.older);
}

void pb_datadir_undo(struct pb_datadir *w)
{
	int ret;

	close_files(w);
	if (w->dir_fd < 0)	/* no descriptor was left to open it, so it is empty */
		ret = rmdir(w->dir);
	else if (is_same(w->dir, w->dir_fd))
		ret = remove_locked(w->dir, w->dir_fd);
	else	/* somebody has renamed it, and DIR may be another recording */
		ret = -ESTALE;
	pb_datadir_close(w);
	if (!ret)
		move_back(w);
}
