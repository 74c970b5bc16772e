/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Reads files ahead for the recorder's first analyses. An analysis reads a file in small steps. A
 * disk takes about a millisecond for each step, but can serve many reads at once. So the recorder
 * first asks the kernel for the bytes of all files. The bytes arrive while other files are
 * analysed.
 */
#include <elf.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "module/module.h"

#define MAX_PHDRS	64
#define TAIL		(64u << 10)	/* bytes at the file's end: section headers, the debug
					 * link */

static uint64_t ask(int fd, uint64_t from, uint64_t len, uint64_t max)
{
	if (len > max)
		len = max;
	if (!len || posix_fadvise(fd, (off_t)from, (off_t)len, POSIX_FADV_WILLNEED))
		return 0;
	return len;
}

/* Code is always needed. Read-only data is needed only to make an analysis: it holds the unwind
 * tables. */
static bool is_needed(const Elf64_Phdr *p, bool code_only)
{
	if (p->p_type != PT_LOAD || p->p_flags & PF_W)
		return false;
	return p->p_flags & PF_X || !code_only;
}

uint64_t pb_module_read_ahead(int elf_fd, bool code_only, uint64_t max)
{
	Elf64_Ehdr eh;
	Elf64_Phdr ph[MAX_PHDRS];
	uint64_t asked = 0;
	struct stat st;
	ssize_t size;

	if (fstat(elf_fd, &st) || pread(elf_fd, &eh, sizeof(eh), 0) != sizeof(eh) ||
	    memcmp(eh.e_ident, ELFMAG, SELFMAG) || eh.e_ident[EI_CLASS] != ELFCLASS64 ||
	    eh.e_phentsize != sizeof(ph[0]) || eh.e_phnum > MAX_PHDRS)
		return 0;
	size = (ssize_t)(eh.e_phnum * sizeof(ph[0]));
	if (pread(elf_fd, ph, (size_t)size, (off_t)eh.e_phoff) != size)
		return 0;
	for (unsigned i = 0; i < eh.e_phnum; i++)
		if (is_needed(&ph[i], code_only) && ph[i].p_offset < (uint64_t)st.st_size)
			asked += ask(elf_fd, ph[i].p_offset, ph[i].p_filesz, max - asked);
	if (!code_only && st.st_size > TAIL)
		asked += ask(elf_fd, (uint64_t)st.st_size - TAIL, TAIL, max - asked);
	return asked;
}
