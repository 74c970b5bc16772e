/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Finds the mappings of libc and of the loader in /proc/PID/maps, and libc's functions in its file.
 * The file is opened through the process's own root directory, and must be the one that is mapped.
 * The short pieces of code are searched in the mapped text itself.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "attach/libc.h"
#include "base/base.h"
#include "module/elf/elf_file.h"

#define GETPID_LEN	32		/* getpid() makes its call within so many bytes */

/* A line of /proc/PID/maps. */
struct line {
	uint64_t from, to, offset, inode;
	unsigned major, minor;
	char prot[5], path[PATH_MAX];
};

/* The mappings of one file. */
struct file {
	uint64_t base;			/* address of the file's first byte; 0: not found */
	struct pb_range text;
	struct line first;
};

static bool parse(const char *text, struct line *l)
{
	int at = 0;

	if (sscanf(text, "%lx-%lx %4s %lx %x:%x %lu %n", &l->from, &l->to, l->prot, &l->offset,
		   &l->major, &l->minor, &l->inode, &at) < 7 || !at)
		return false;
	snprintf(l->path, sizeof(l->path), "%s", text + at);
	l->path[strcspn(l->path, "\n")] = 0;
	return true;
}

static const char *base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

static void take(struct file *f, const struct line *l)
{
	if (!f->base && !l->offset) {
		f->base = l->from;
		f->first = *l;
	}
	if (f->base && l->inode == f->first.inode && l->prot[2] == 'x' && !f->text.to)
		f->text = (struct pb_range){ l->from, l->to };
}

/* Reads the process's mappings. *musl: its libc is musl. */
static int read_maps(pid_t pid, struct file *libc, struct file *loader, bool *musl)
{
	char path[40], *text = NULL;
	size_t cap = 0;

	snprintf(path, sizeof(path), "/proc/%d/maps", (int)pid);
	FILE *f = fopen(path, "re");
	struct line *l = malloc(sizeof(*l));

	if (!f || !l) {
		int ret = f ? -ENOMEM : -errno;

		if (f)
			fclose(f);
		free(l);
		return ret;
	}
	while (getline(&text, &cap, f) > 0) {
		if (!parse(text, l) || *l->path != '/')
			continue;
		const char *name = base_name(l->path);

		if (!strncmp(name, "libc.so.6", 9))
			take(libc, l);
		else if (!strncmp(name, "ld-linux-x86-64.so.2", 20))
			take(loader, l);
		*musl |= !strncmp(name, "ld-musl", 7) || !strncmp(name, "libc.musl", 9);
	}
	fclose(f);
	free(text);
	free(l);
	return 0;
}

/* Opens the file of a mapping: under its name in the process's root, or, if another file has this
 * name now, through /proc/PID/map_files, which only root may do. */
static int open_file(pid_t pid, const struct file *f)
{
	char path[PATH_MAX + 64];
	struct stat st;

	snprintf(path, sizeof(path), "/proc/%d/root%s", (int)pid, f->first.path);
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (fd >= 0 && !fstat(fd, &st) && S_ISREG(st.st_mode) && st.st_ino == f->first.inode)
		return fd;
	if (fd >= 0)
		close(fd);
	snprintf(path, sizeof(path), "/proc/%d/map_files/%lx-%lx", (int)pid, f->first.from,
		 f->first.to);
	return open(path, O_RDONLY | O_CLOEXEC);
}

static uint64_t symbol(const struct pb_elf_symbols *s, const char *name)
{
	for (uint64_t i = 0; i < s->n; i++) {
		const char *is = pb_elf_string(&s->strings, s->v[i].st_name);

		if (s->v[i].st_value && s->v[i].st_shndx != SHN_UNDEF && is && !strcmp(is, name) &&
		    ELF64_ST_TYPE(s->v[i].st_info) == STT_FUNC)
			return s->v[i].st_value;
	}
	return 0;
}

static int find_functions(struct pb_libc *l, int fd, uint64_t base, const char **why)
{
	const struct { const char *name; uint64_t *to; } functions[] = {
		{ "pthread_create", &l->pthread_create }, { "pthread_detach", &l->pthread_detach },
		{ "dlopen", &l->dlopen }, { "dlsym", &l->dlsym }, { "dlerror", &l->dlerror },
		{ "getpid", &l->getpid },
	};
	struct pb_elf_symbols symbols;
	struct pb_elf e;
	int ret = pb_elf_open(&e, fd, false, why);

	if (ret)
		return ret;
	if (!pb_elf_symbols(&e, SHT_DYNSYM, &symbols))
		ret = -ENOTSUP;
	for (size_t i = 0; i < pb_array_size(functions) && !ret; i++) {
		uint64_t value = symbol(&symbols, functions[i].name);

		if (!value)
			ret = -ENOTSUP;
		*functions[i].to = base + value;
	}
	if (ret)
		*why = "its glibc is older than 2.34, whose dlopen isn't in libc.so.6; use "
		       "`patchbay record' to start the program";
	pb_elf_close(&e);
	return ret;
}

/* Finds bytes in the mapped text. Returns their address, or 0. */
static uint64_t find_code(int mem, const struct pb_range *in, const uint8_t *code, size_t len)
{
	size_t size = in->to - in->from;
	uint8_t *text = size < 1u << 30 ? malloc(size) : NULL;
	uint64_t at = 0;

	if (text && pread(mem, text, size, (off_t)in->from) == (ssize_t)size) {
		const uint8_t *p = memmem(text, size, code, len);

		at = p ? in->from + (uint64_t)(p - text) : 0;
	}
	free(text);
	return at;
}

static int find_code_pieces(struct pb_libc *l, int mem, const char **why)
{
	static const uint8_t call[] = { 0x0f, 0x05, 0xc3 };
	static const uint8_t restore[] = { 0x48, 0xc7, 0xc0, 0x0f, 0, 0, 0, 0x0f, 0x05 };
	struct pb_range getpid = { l->getpid, l->getpid + GETPID_LEN };

	l->call = find_code(mem, &getpid, call, sizeof(call));
	l->restore = find_code(mem, &l->text, restore, sizeof(restore));
	if (l->call && l->restore)
		return 0;
	*why = "its libc has other code than expected (another tool has changed it?)";
	return -ENOTSUP;
}

int pb_libc_find(struct pb_libc *l, pid_t pid, int mem, const char **why)
{
	struct file libc = { 0 }, loader = { 0 };
	bool musl = false;

	*l = (struct pb_libc){ 0 };
	*why = NULL;
	int ret = read_maps(pid, &libc, &loader, &musl);
	if (ret)
		return ret;
	if (!libc.text.to || !loader.text.to) {
		*why = musl ? "uses musl, but only programs with glibc can be attached" :
			      "is linked statically: it has no loader that could load the agent";
		return -ENOTSUP;
	}
	int fd = open_file(pid, &libc);
	if (fd < 0) {
		*why = "its libc.so.6 was replaced on disk since it started; restart the program";
		return -ENOTSUP;
	}
	l->text = libc.text;
	l->loader = loader.text;
	ret = find_functions(l, fd, libc.base, why);
	close(fd);
	return ret ? ret : find_code_pieces(l, mem, why);
}
