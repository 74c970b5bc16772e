/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Returns descriptors of an ELF file's analysis and of its file of stubs. If the analysis (or the
 * file of stubs) is in the cache, returns a descriptor of the cached file. Otherwise makes the file
 * and stores it in the cache. If it can't be stored there, returns a descriptor of a memfd.
 */
#include "module/module.h"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include "module/analysis/analyse.h"
#include "module/cache.h"
#include "module/stubs/stub_image.h"

static int failed(int err, char *text, size_t len, const char *why)
{
	if (len)
		snprintf(text, len, "%s", why ? why : strerror(-err));
	return err;
}

/* Returns a sealed memfd with the bytes. If /proc is mounted, the descriptor is read-only. */
static int make_memfd(const char *name, const uint8_t *blob, size_t size)
{
	int fd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING), ro;
	char self[64];

	if (fd < 0)
		return -errno;
	if (!pb_write_all(fd, blob, size)) {
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

static void open_cache(struct pb_cache *c, int elf_fd, const char *path,
		       const struct pb_module_options *o)
{
	pb_cache_open(c, elf_fd, path, o ? o->flags : 0, o ? o->cache_dir : NULL);
}

int pb_module_find(int elf_fd, const char *path, const struct pb_module_options *o)
{
	struct pb_cache c;
	int fd;

	open_cache(&c, elf_fd, path, o);
	fd = pb_cache_find(&c);
	pb_cache_close(&c);
	return fd;
}

int pb_module_open(int elf_fd, const char *path, const struct pb_module_options *o, char *err,
		   size_t errlen)
{
	struct pb_cache c;
	const char *why = NULL;
	uint8_t *blob;
	size_t size;
	int fd, ret;

	open_cache(&c, elf_fd, path, o);
	fd = pb_cache_find(&c);
	if (fd >= 0) {
		pb_cache_close(&c);
		return fd;
	}
	ret = pb_analyse(elf_fd, path, o ? o->flags : 0, &blob, &size, &why);
	if (!ret) {
		fd = pb_cache_store(&c, elf_fd, path, blob, size);
		if (fd < 0)
			fd = make_memfd("patchbay-analysis", blob, size);
		if (fd < 0)
			why = "no memory file for the analysis";
		ret = fd;
		free(blob);
	}
	pb_cache_close(&c);
	return ret < 0 ? failed(ret, err, errlen, why) : ret;
}

/* Makes the file of stubs. The file of stubs gets rows of the ELF file's unwind table, if
 * there is one. */
static int make_stubs(int elf_fd, const struct pb_analysis *a, uint8_t **file, size_t *size)
{
	struct pb_cfi cfi = { 0 };
	const char *why;
	struct pb_elf e;
	int err;

	if (elf_fd < 0 || pb_elf_open(&e, elf_fd, false, &why))
		return pb_stub_image(a, NULL, file, size);
	err = pb_cfi_read(&cfi, &e) ? pb_stub_image(a, &cfi, file, size) : -ENOMEM;
	pb_cfi_free(&cfi);
	pb_elf_close(&e);
	return err;
}

int pb_module_stubs(int elf_fd, const char *path, const struct pb_module_options *o,
		    const struct pb_analysis *a)
{
	struct pb_cache c;
	uint8_t *file;
	size_t size;
	int fd;

	open_cache(&c, elf_fd, path, o);
	if (c.dir >= 0)
		pb_cache_stubs(&c);
	fd = pb_cache_find(&c);
	if (fd < 0) {
		fd = make_stubs(elf_fd, a, &file, &size);
		if (!fd) {
			fd = pb_cache_store(&c, elf_fd, path, file, size);
			if (fd < 0)
				fd = make_memfd("patchbay-stubs", file, size);
			free(file);
		}
	}
	pb_cache_close(&c);
	return fd;
}
