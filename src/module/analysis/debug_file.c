/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Opens the two possible sources of further symbols: the separate debug file, which is found by
 * build-id or debug link, and the mini debug info, which is the section .gnu_debugdata. It is no
 * error if a file has neither of them.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <lzma.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include "module/analysis/debug_file.h"
#include "module/analysis/stages.h"

#define DEBUG_DIR	"/usr/lib/debug"
#define MAX_UNPACKED	(256ull << 20)	/* in bytes: limit of the buffer for the unpacked mini debug
					 * info, and of the decoder's memory. The first buffer has
					 * more than eight times the packed size */

static int open_by_build_id(struct pb_elf *e)
{
	char path[sizeof(DEBUG_DIR) + 2 * 64 + 32];
	uint64_t vaddr;
	unsigned len;
	const uint8_t *id = pb_elf_build_id(e, &len, &vaddr);
	int n;

	if (!id || len < 2 || len > 64)
		return -1;
	n = snprintf(path, sizeof(path), DEBUG_DIR "/.build-id/%02x/", id[0]);
	for (unsigned i = 1; i < len; i++)
		n += snprintf(path + n, sizeof(path) - (size_t)n, "%02x", id[i]);
	snprintf(path + n, sizeof(path) - (size_t)n, ".debug");
	return open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
}

/* Returns the file name in the debug link, or NULL. Sets *crc to the debug file's CRC, which
 * follows the name, aligned to 4 bytes. */
static const char *debug_link(struct pb_elf *e, uint32_t *crc)
{
	const Elf64_Shdr *sh = pb_elf_section(e, ".gnu_debuglink");
	const char *name = sh ? pb_elf_section_bytes(e, sh) : NULL;
	size_t len = name ? strnlen(name, sh->sh_size) : 0, at = (len + 4) & ~(size_t)3;

	if (!len || len > NAME_MAX || sh->sh_size < 4 || at > sh->sh_size - 4 ||
	    memchr(name, '/', len))
		return NULL;
	memcpy(crc, name + at, 4);
	return name;
}

static bool has_crc(int fd, uint32_t want)
{
	uint8_t buf[65536];
	uint32_t crc = 0;
	ssize_t n;
	off_t off = 0;

	while ((n = pread(fd, buf, sizeof(buf), off)) > 0) {
		crc = lzma_crc32(buf, (size_t)n, crc);
		off += n;
	}
	return !n && crc == want;
}

static int open_by_link(struct pb_elf *e, const char *path, bool check)
{
	static const char *const places[] = { "%.*s/%s", "%.*s/.debug/%s", DEBUG_DIR "%.*s/%s" };
	const char *slash = strrchr(path, '/'), *dir = slash ? path : ".";
	int dirlen = slash ? (int)(slash - path) : 1;
	uint32_t crc;
	const char *name = debug_link(e, &crc);

	for (unsigned i = 0; name && i < 3; i++) {
		char file[PATH_MAX];
		int fd;

		if (i == 2 && *path != '/')
			break;
		if (snprintf(file, sizeof(file), places[i], dirlen, dir, name) >= PATH_MAX)
			continue;
		fd = open(file, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
		if (fd >= 0 && (!check || has_crc(fd, crc)))
			return fd;
		if (fd >= 0)
			close(fd);
	}
	return -1;
}

static int open_debug_file(struct pb_elf *e, const char *path, bool check)
{
	int fd = open_by_build_id(e);

	return fd >= 0 ? fd : open_by_link(e, path, check);
}

bool pb_debug_file_present(struct pb_elf *e, const char *path)
{
	int fd = open_debug_file(e, path, false);

	if (fd >= 0)
		close(fd);
	return fd >= 0;
}

/* Unpacks a whole xz stream. Returns NULL after an error. */
static uint8_t *unpack(const uint8_t *in, size_t in_size, size_t *out_size)
{
	for (size_t cap = in_size * 8 + 65536; cap <= MAX_UNPACKED; cap *= 2) {
		uint8_t *out = malloc(cap);
		uint64_t memory = MAX_UNPACKED;
		size_t in_at = 0;
		lzma_ret ret;

		*out_size = 0;
		if (!out)
			return NULL;
		ret = lzma_stream_buffer_decode(&memory, 0, NULL, in, &in_at, in_size,
						out, out_size, cap);
		if (ret == LZMA_OK)
			return out;
		free(out);
		if (ret != LZMA_BUF_ERROR)
			return NULL;
	}
	return NULL;
}

static void open_mini(struct pb_an *an)
{
	const Elf64_Shdr *sh = pb_elf_section(&an->elf, ".gnu_debugdata");
	const uint8_t *in = sh ? pb_elf_section_bytes(&an->elf, sh) : NULL;
	uint8_t *out;
	size_t size;
	const char *why;

	if (!in || sh->sh_size > MAX_UNPACKED || !(out = unpack(in, sh->sh_size, &size)))
		return;
	if (!pb_elf_open_memory(&an->debug[an->nr_debug], out, size, true, &why))
		an->nr_debug++;
}

void pb_debug_files_open(struct pb_an *an)
{
	const char *why;

	an->debug_fd = open_debug_file(&an->elf, an->path, true);
	if (an->debug_fd >= 0 &&
	    !pb_elf_open(&an->debug[an->nr_debug], an->debug_fd, true, &why))
		an->nr_debug++;
	open_mini(an);
}
