/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Recognises, by its name, a library that must come first. Looks for such a library in an ELF
 * file's list of needed libraries. */
#include <elf.h>
#include "base/first_library.h"
#include "base/mem.h"
#include "base/sys.h"

#define MAX_DYN	8192		/* the largest number of dynamic entries that are read */

bool pb_is_first_library(const char *name, size_t len)
{
	static const char *const runtimes[] = { "libasan.so", "libclang_rt.asan" };
	size_t base = len;

	while (base && name[base - 1] != '/')
		base--;
	for (size_t i = 0; i < sizeof(runtimes) / sizeof(runtimes[0]); i++) {
		size_t n = strlen(runtimes[i]);

		if (len - base >= n && !memcmp(name + base, runtimes[i], n))
			return true;
	}
	return false;
}

static bool is_separator(char c)
{
	return c == ':' || c == ' ';
}

size_t pb_next_in_list(const char **at, const char *end)
{
	const char *name = *at;
	size_t n = 0;

	while (name < end && is_separator(*name))
		name++;
	while (name + n < end && !is_separator(name[n]))
		n++;
	*at = name;
	return n;
}

size_t pb_first_in_list(const char *list, size_t len, const char **first)
{
	size_t n = pb_next_in_list(&list, list + len);

	*first = list;
	return pb_is_first_library(list, n) ? n : 0;
}

static bool read_at(int fd, void *to, size_t size, uint64_t at)
{
	return pb_sys(SYS_pread64, fd, to, size, at) == (long)size;
}

static bool read_phdr(int fd, const Elf64_Ehdr *e, unsigned i, Elf64_Phdr *p)
{
	return read_at(fd, p, sizeof(*p), e->e_phoff + i * sizeof(*p));
}

/* Returns the file offset of a link-time address. */
static uint64_t offset_of(int fd, const Elf64_Ehdr *e, uint64_t addr)
{
	Elf64_Phdr p;

	for (unsigned i = 0; i < e->e_phnum && read_phdr(fd, e, i, &p); i++)
		if (p.p_type == PT_LOAD && addr - p.p_vaddr < p.p_filesz)
			return addr - p.p_vaddr + p.p_offset;
	return 0;
}

static bool read_name(int fd, uint64_t at, char name[PB_FIRST_MAX])
{
	long n = pb_sys(SYS_pread64, fd, name, PB_FIRST_MAX, at);

	for (long i = 0; i < n; i++)
		if (!name[i])
			return pb_is_first_library(name, (size_t)i);
	return false;
}

/* Looks for a library that must come first. Looks only at the first two needed libraries. The
 * library may be the second, if another sanitizer's runtime is the first. The address of the string
 * table (DT_STRTAB) may come after the needed libraries (DT_NEEDED). So the names are read after
 * the loop. */
static bool look(int fd, const Elf64_Ehdr *e, const Elf64_Phdr *dynamic, char name[PB_FIRST_MAX])
{
	uint64_t strings = 0, needed[2], at = dynamic->p_offset;
	unsigned nr = 0;
	Elf64_Dyn d;

	for (unsigned i = 0; i < MAX_DYN && i < dynamic->p_filesz / sizeof(d); i++) {
		if (!read_at(fd, &d, sizeof(d), at + i * sizeof(d)) || d.d_tag == DT_NULL)
			break;
		if (d.d_tag == DT_STRTAB)
			strings = d.d_un.d_ptr;
		else if (d.d_tag == DT_NEEDED && nr < 2)
			needed[nr++] = d.d_un.d_val;
	}
	strings = nr ? offset_of(fd, e, strings) : 0;
	for (unsigned i = 0; strings && i < nr; i++)
		if (read_name(fd, strings + needed[i], name))
			return true;
	return false;
}

bool pb_first_library(int fd, char name[PB_FIRST_MAX])
{
	Elf64_Ehdr e;
	Elf64_Phdr p;

	if (!read_at(fd, &e, sizeof(e), 0) || memcmp(e.e_ident, ELFMAG, SELFMAG) ||
	    e.e_ident[EI_CLASS] != ELFCLASS64 || e.e_phentsize != sizeof(p))
		return false;
	for (unsigned i = 0; i < e.e_phnum && read_phdr(fd, &e, i, &p); i++)
		if (p.p_type == PT_DYNAMIC)
			return look(fd, &e, &p, name);
	return false;
}
