/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Recognises, by its name, a library that must come first. Looks for such a library in an ELF
 * file's list of needed libraries. */
#include <elf.h>
#include "base/first_library.h"
#include "base/mem.h"
#include "base/sys.h"

#define MAX_PHDRS	16
#define MAX_DYN		64

bool pb_is_first_library(const char *name)
{
	static const char *const runtimes[] = { "libasan.so.", "libclang_rt.asan" };

	for (size_t i = 0; i < sizeof(runtimes) / sizeof(runtimes[0]); i++) {
		size_t n = 0;

		while (runtimes[i][n] && name[n] == runtimes[i][n])
			n++;
		if (!runtimes[i][n])
			return true;
	}
	return false;
}

static bool read_at(int fd, void *to, size_t size, uint64_t at)
{
	return pb_sys(SYS_pread64, fd, to, size, at) == (long)size;
}

/* Returns the file offset of a link-time address. */
static uint64_t offset_of(const Elf64_Phdr *p, unsigned nr, uint64_t addr)
{
	for (unsigned i = 0; i < nr; i++)
		if (p[i].p_type == PT_LOAD && addr - p[i].p_vaddr < p[i].p_filesz)
			return addr - p[i].p_vaddr + p[i].p_offset;
	return 0;
}

static bool read_name(int fd, uint64_t at, char name[PB_FIRST_MAX])
{
	long n = pb_sys(SYS_pread64, fd, name, PB_FIRST_MAX, at);

	for (long i = 0; i < n; i++)
		if (!name[i])
			return pb_is_first_library(name);
	return false;
}

/* Looks for a library that must come first. Looks only at the first two needed libraries. The
 * library may be the second, if another sanitizer's runtime is the first. */
static bool look(int fd, const Elf64_Phdr *p, unsigned nr, const Elf64_Dyn *d, unsigned nr_dyn,
		 char name[PB_FIRST_MAX])
{
	uint64_t strings = 0;

	for (unsigned i = 0; i < nr_dyn; i++)
		if (d[i].d_tag == DT_STRTAB)
			strings = offset_of(p, nr, d[i].d_un.d_ptr);
	for (unsigned i = 0, seen = 0; strings && i < nr_dyn && seen < 2; i++) {
		if (d[i].d_tag != DT_NEEDED)
			continue;
		if (read_name(fd, strings + d[i].d_un.d_val, name))
			return true;
		seen++;
	}
	return false;
}

bool pb_first_library(int fd, char name[PB_FIRST_MAX])
{
	Elf64_Phdr p[MAX_PHDRS];
	Elf64_Dyn d[MAX_DYN];
	Elf64_Ehdr e;
	unsigned nr;

	if (!read_at(fd, &e, sizeof(e), 0) || memcmp(e.e_ident, ELFMAG, SELFMAG) ||
	    e.e_ident[EI_CLASS] != ELFCLASS64 || e.e_phentsize != sizeof(*p))
		return false;
	nr = e.e_phnum < MAX_PHDRS ? e.e_phnum : MAX_PHDRS;
	if (!read_at(fd, p, nr * sizeof(*p), e.e_phoff))
		return false;
	for (unsigned i = 0; i < nr; i++) {
		long n;

		if (p[i].p_type != PT_DYNAMIC)
			continue;
		n = pb_sys(SYS_pread64, fd, d,
			   p[i].p_filesz < sizeof(d) ? p[i].p_filesz : sizeof(d), p[i].p_offset);
		return n > 0 && look(fd, p, nr, d, (unsigned)(n / (long)sizeof(*d)), name);
	}
	return false;
}
