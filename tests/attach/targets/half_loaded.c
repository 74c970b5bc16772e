/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A library that maps the file AGENT as the loader does, but relocates nothing. Its process then
 * looks like a child that was forked while its parent was loading the agent.
 */
#include <elf.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#define PAGE 4095ul

__attribute__((constructor)) static void map_agent(void)
{
	int fd = open(getenv("AGENT"), O_RDONLY | O_CLOEXEC);
	Elf64_Ehdr eh;
	Elf64_Phdr ph[16];
	char *base;

	if (read(fd, &eh, sizeof(eh)) != sizeof(eh) || eh.e_phnum > 16 ||
	    pread(fd, ph, sizeof(*ph) * eh.e_phnum, (off_t)eh.e_phoff) < 0)
		abort();
	base = mmap(NULL, 64ul << 20, PROT_READ, MAP_PRIVATE, fd, 0);
	for (int i = 0; i < eh.e_phnum; i++) {
		uint64_t start = ph[i].p_vaddr & ~PAGE, end = ph[i].p_vaddr + ph[i].p_filesz;
		int prot = (ph[i].p_flags & PF_R ? PROT_READ : 0) |
			   (ph[i].p_flags & PF_W ? PROT_WRITE : 0) |
			   (ph[i].p_flags & PF_X ? PROT_EXEC : 0);

		if (ph[i].p_type == PT_LOAD &&
		    mmap(base + start, end - start, prot, MAP_PRIVATE | MAP_FIXED, fd,
			 (off_t)(ph[i].p_offset & ~PAGE)) == MAP_FAILED)
			abort();
	}
	close(fd);
}
