/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Analyses, and files of stubs made of them, kept on disk between recordings. A file is named
 * BUILDID-FILE-FLAGS-vVERSION.REVISION, that of the stubs has .sREVISION after it. FILE is made
 * from device, inode, size, change time and path, because a file can claim another's build-id,
 * and a stripped or patched copy keeps it.
 *
 * The directory and the files in it must be ours, and no other user may write
 * them. Files appear by rename and are never written again, so recorders that
 * run at the same time don't disturb each other. What is read back is checked
 * like bytes from anywhere else.
 *
 * Context: any thread. Failures mean that nothing is cached, never an error.
 */
#ifndef PB_MODULE_CACHE_H
#define PB_MODULE_CACHE_H
#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct pb_cache {
	int dir;		/* -1: no caching */
	char name[NAME_MAX];
	uint64_t identity;	/* of the ELF file */
	uint64_t limit;		/* bytes that all files may take */
	bool settled;		/* a later change of the ELF file changes its identity */
	bool stubs;		/* it is about the stubs */
};

/* flags: PB_MODULE_*. directory: NULL: $XDG_CACHE_HOME/patchbay or ~/.cache/patchbay. To be closed in any case. */
void pb_cache_open(struct pb_cache *c, int elf_fd, const char *path, unsigned flags, const char *directory);
/* From now on about the file of stubs. */
void pb_cache_stubs(struct pb_cache *c);
/* A descriptor of the sound file that is there, or -1. */
int pb_cache_find(const struct pb_cache *c);
/* Keeps the file, unless the ELF file changed while it was analysed. A
 * descriptor of what is kept, or -1. Removes the files that were not used for
 * longest where there is too much. */
int pb_cache_store(const struct pb_cache *c, int elf_fd, const char *path, const uint8_t *blob,
		   size_t size);
void pb_cache_close(struct pb_cache *c);

/* Writes all n bytes, whatever signals come; false: an error. */
bool pb_write_all(int fd, const uint8_t *p, size_t n);
#endif
