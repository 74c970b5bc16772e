/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Judges a file by its mode and its first bytes, as the kernel does (image_fit.h). The program must
 * not notice this: see exec.c.
 */
#include <asm/errno.h>
#include <elf.h>
#include <fcntl.h>
#include <sys/stat.h>
#include "abi/ring.h"
#include "engine/process/image_fit.h"
#include "base/base.h"
#include "base/mem.h"
#include "base/sys.h"

#define MAX_FILES	6	/* a script's interpreter may be a script, and so on. If there are
				 * more files than this, the kernel refuses the exec */

/* Whether the file's loader is that of another libc than glibc. Such a loader can't load the agent,
 * and may end the program for this reason. */
static bool has_other_libc(int fd, const Elf64_Phdr *interp)
{
	static const char *const loaders[] = { "ld-musl", "ld64-uClibc", "linker64" };
	char path[128], *name = path;
	long n = pb_sys(SYS_pread64, fd, path, sizeof(path) - 1, interp->p_offset);

	path[n > 0 ? n : 0] = 0;
	for (char *p = path; *p; p++)
		if (*p == '/')
			name = p + 1;
	for (size_t i = 0; i < pb_array_size(loaders); i++)
		if (pb_has_prefix(name, loaders[i]))
			return true;
	return false;
}

/* A file with S_ISGID that its group can't execute isn't setgid. */
static bool is_setid(const struct stat *st)
{
	mode_t group = st->st_mode & (S_ISGID | S_IXGRP);

	return st->st_mode & S_ISUID || group == (S_ISGID | S_IXGRP);
}

static int kind_of_elf(int fd, const Elf64_Ehdr *e, const struct stat *st)
{
	Elf64_Phdr p[16];
	long n;

	if (e->e_ident[EI_CLASS] != ELFCLASS64 || e->e_machine != EM_X86_64 ||
	    e->e_phentsize != sizeof(*p))
		return PB_UNFIT_MACHINE;
	n = pb_sys(SYS_pread64, fd, p, sizeof(p), e->e_phoff);
	for (long i = 0; i < n / (long)sizeof(*p) && i < e->e_phnum; i++) {
		if (p[i].p_type != PT_INTERP)
			continue;
		if (has_other_libc(fd, &p[i]))
			return PB_UNFIT_LIBC;
		return is_setid(st) ? PB_UNFIT_SETID : PB_IMAGE_FITS;
	}
	return e->e_type == ET_DYN ? PB_UNFIT_LOADER : PB_UNFIT_STATIC;
}

/* Returns the path in "#!interpreter args", terminated by NUL in buf. */
static const char *interpreter(char *buf, long n)
{
	char *p = buf + 2, *end;

	buf[n] = 0;
	while (*p == ' ' || *p == '\t')
		p++;
	for (end = p; *end && *end != ' ' && *end != '\t' && *end != '\n'; end++)
		;
	*end = 0;
	return *p ? p : NULL;
}

static bool is_regular(const struct stat *st)
{
	return S_ISREG(st->st_mode);
}

/* Opens the file of fexecve's descriptor again, because that descriptor may be unreadable (O_PATH,
 * O_WRONLY). */
static long open_descriptor(int fd)
{
	char path[40];
	size_t at = 0;

	pb_put_str(path, sizeof(path), &at, "/proc/self/fd/");
	pb_put_u64(path, sizeof(path), &at, (uint64_t)(uint32_t)fd);
	return pb_sys(SYS_openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY, 0);
}

/* Opens the image for reading. Returns the descriptor or -errno. Only regular files are opened.
 * Opening a FIFO may block, or may wake the FIFO's writer. Opening a device may have an effect.
 * Between the check and the open, another file may get this name. So the open must not block, and
 * the opened file is checked again. The pointer `path` may be invalid, so the kernel, not this
 * function, finds out whether the path is empty. */
static long open_image(int dir, const char *path, int flags, struct stat *st)
{
	int look = flags & (AT_EMPTY_PATH | AT_SYMLINK_NOFOLLOW);
	long fd, err = pb_sys(SYS_newfstatat, dir, path, st, look);

	if (err || !is_regular(st))
		return err ? err : -EACCES;
	fd = pb_sys(SYS_openat, dir, path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY, 0);
	if (fd == -ENOENT && flags & AT_EMPTY_PATH) {
		fd = open_descriptor(dir);
		if (fd == -ENOENT)	/* without /proc, the kernel still executes the file */
			fd = -EACCES;
	}
	if (pb_sys_failed(fd))
		return fd;
	err = pb_sys(SYS_fstat, fd, st);
	if (!err && is_regular(st))
		return fd;
	pb_sys(SYS_close, fd);
	return -EACCES;
}

/* Looks at the file f->path. Returns true if it is a script. f->path is then the script's
 * interpreter. */
static bool look(struct pb_image_fit *f, int dir, int flags)
{
	union { char text[sizeof(f->script)]; Elf64_Ehdr elf; } head;
	struct stat st;
	long n, fd = open_image(dir, f->path, flags, &st);

	f->kind = PB_IMAGE_FAILS;
	if (fd == -ENOENT)
		return false;
	f->kind = PB_UNFIT_UNREADABLE;
	if (pb_sys_failed(fd))
		return false;
	n = pb_sys(SYS_pread64, fd, &head, sizeof(head) - 1, 0);
	if (n >= 0)
		f->kind = PB_UNFIT_FORMAT;
	if (n >= (long)sizeof(Elf64_Ehdr) && !memcmp(head.elf.e_ident, ELFMAG, SELFMAG))
		f->kind = kind_of_elf((int)fd, &head.elf, &st);
	if (f->kind != PB_IMAGE_FITS || !pb_first_library((int)fd, f->first))
		*f->first = 0;
	pb_sys(SYS_close, fd);
	if (f->kind != PB_UNFIT_FORMAT || n < 3 || head.text[0] != '#' || head.text[1] != '!')
		return false;
	memcpy(f->script, head.text, (size_t)n);
	f->path = interpreter(f->script, n);
	f->kind = PB_IMAGE_FAILS;
	return f->path;
}

void pb_image_fit(struct pb_image_fit *f, int dir, const char *path, int flags)
{
	f->path = path;
	for (int i = 0; i < MAX_FILES && look(f, dir, flags); i++) {
		dir = AT_FDCWD;
		flags = 0;
	}
}
