/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Makes the file of mini_elf.h. It has one executable segment, with .text and the given section.
 * The names of the sections and the section headers follow the segment. */
#include "mini_elf.h"

#include <elf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"

enum { NONE, TEXT, SECTION, NAMES, NR_SECTIONS };

uint8_t *mini_elf(const char *section, const void *data, size_t size, size_t *file_size)
{
	const uint64_t code = MINI_CODE - MINI_BASE, at = MINI_SECTION - MINI_BASE;
	uint64_t names = pb_align_up((uint64_t)(at + size), 8), headers = names + 64;
	char strings[64] = "\0.text\0.names\0";
	Elf64_Ehdr eh = {
		.e_ident = { 0x7f, 'E', 'L', 'F', ELFCLASS64, ELFDATA2LSB, EV_CURRENT },
		.e_type = ET_EXEC, .e_machine = EM_X86_64, .e_version = EV_CURRENT,
		.e_phoff = sizeof(eh), .e_shoff = headers, .e_ehsize = sizeof(eh),
		.e_phentsize = sizeof(Elf64_Phdr), .e_phnum = 1,
		.e_shentsize = sizeof(Elf64_Shdr), .e_shnum = NR_SECTIONS, .e_shstrndx = NAMES,
	};
	Elf64_Phdr ph = {
		.p_type = PT_LOAD, .p_flags = PF_R | PF_X,
		.p_vaddr = MINI_BASE, .p_paddr = MINI_BASE,
		.p_filesz = at + size, .p_memsz = at + size, .p_align = 4096,
	};
	Elf64_Shdr sh[NR_SECTIONS] = {
		[TEXT] = { 1, SHT_PROGBITS, SHF_ALLOC | SHF_EXECINSTR, MINI_CODE, code,
			   MINI_CODE_SIZE, 0, 0, 16, 0 },
		[SECTION] = { 14, SHT_PROGBITS, SHF_ALLOC, MINI_SECTION, at, size, 0, 0, 8, 0 },
		[NAMES] = { 7, SHT_STRTAB, 0, 0, names, 64, 0, 0, 1, 0 },
	};
	uint8_t *v = calloc(1, headers + sizeof(sh));

	snprintf(strings + 14, sizeof(strings) - 14, "%s", section);
	*file_size = headers + sizeof(sh);
	memcpy(v, &eh, sizeof(eh));
	memcpy(v + sizeof(eh), &ph, sizeof(ph));
	memset(v + code, 0x90, MINI_CODE_SIZE);
	if (size)
		memcpy(v + at, data, size);
	memcpy(v + names, strings, sizeof(strings));
	memcpy(v + headers, sh, sizeof(sh));
	return v;
}
