/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A library that makes a part of each large file unreadable, as a disk with a bad block. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <sys/types.h>
#include <unistd.h>

#define BAD 40000	/* the offset that can't be read */

ssize_t pread64(int fd, void *buf, size_t len, off_t at)
{
	ssize_t (*real)(int fd, void *buf, size_t len, off_t at) = dlsym(RTLD_NEXT, "pread64");

	if (at <= BAD && (size_t)at + len > BAD && len <= 20000) {
		errno = EIO;
		return -1;
	}
	return real(fd, buf, len, at);
}

ssize_t pread(int fd, void *buf, size_t len, off_t at)
{
	return pread64(fd, buf, len, at);
}
