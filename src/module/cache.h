/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Keeps analyses, and the files of stubs made from them, on disk between recordings. The name of a
 * cached analysis is BUILDID-FILE-FLAGS-vVERSION.REVISION. A file of stubs has the same name with
 * .sSTUBS_REVISION appended. FILE is a hash of device, inode, size, change time and path. FLAGS has
 * the flags that change the analysis, and a bit for the presence of a separate debug file. The
 * build-id alone is not enough: a file can claim another file's build-id, and a stripped or patched
 * copy keeps the original's build-id.
 *
 * The directory and its files must belong to the user, and no other user may write them. Files
 * appear by rename and are not written after that, so recorders that run at the same time do not
 * disturb each other. A cached file is checked like any data from outside.
 *
 * Context: any thread. If anything fails, nothing is cached, and the caller gets no error.
 */
#ifndef PB_MODULE_CACHE_H
#define PB_MODULE_CACHE_H
#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct pb_cache {
	int dir;		/* descriptor of the directory; -1: no caching */
	char name[NAME_MAX];
	uint64_t identity;	/* hash that identifies the ELF file */
	uint64_t limit;		/* limit of the size of all files together, in bytes */
	bool settled;		/* the ELF file's last change is so old that any later change will
				 * change `identity` */
	bool stubs;		/* find and store the file of stubs, not the analysis */
};

/* Opens the cache for one ELF file. `flags` are PB_MODULE_*. If `directory` is NULL, the cache is
 * in $XDG_CACHE_HOME/patchbay or ~/.cache/patchbay. The caller must call
 * pb_cache_close(), even if there is no caching. */
void pb_cache_open(struct pb_cache *c, int elf_fd, const char *path, unsigned flags,
		   const char *directory);
/* After this call, pb_cache_find() and pb_cache_store() act on the file of stubs, not on the
 * analysis. */
void pb_cache_stubs(struct pb_cache *c);
/* Returns a descriptor of the cached file, or -1 if there is no valid file. */
int pb_cache_find(const struct pb_cache *c);
/* Stores the bytes as a file of the cache, unless the ELF file changed while it was analysed or
 * just before. Returns a descriptor of the new file, or -1. Some calls also check the size of all
 * files together. If that size exceeds the limit, they remove the least recently used files. */
int pb_cache_store(const struct pb_cache *c, int elf_fd, const char *path, const uint8_t *blob,
		   size_t size);
void pb_cache_close(struct pb_cache *c);

/* Writes all n bytes, even if signals interrupt the writing. False: an error. */
bool pb_write_all(int fd, const uint8_t *p, size_t n);
#endif
