/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Tells debuggers of stubs by gdb's JIT interface. The file of a module's stubs is mapped
 * (text_stubs.c), with symbols and unwind tables; gdb takes it from memory when it attaches, or
 * when it is told (base/debugger.h). Sections of an object in memory have addresses, and symbols
 * are relative to theirs (as with ET_REL): so the headers, and nothing else, are changed here.
 */
#include <elf.h>
#include <sys/mman.h>
#include "abi/stubs.h"
#include "base/debugger.h"
#include "base/sys.h"
#include "engine/text/text_priv.h"

static struct pb_debugger_entry entries[PB_MAX_MODULES];

static void change_headers(const struct pb_module *m, uint64_t file)
{
	Elf64_Ehdr *eh = (Elf64_Ehdr *)file;
	Elf64_Shdr *s = (Elf64_Shdr *)(file + m->stub_file->sections);

	eh->e_type = ET_REL;
	for (unsigned i = PB_STUBS_TEXT; i <= PB_STUBS_EH_FRAME; i++)
		s[i].sh_addr = file + s[i].sh_offset;
	/* symbols count from the file's start */
	s[PB_STUBS_TEXT].sh_addr = file;
	s[PB_STUBS_TEXT].sh_size = m->stub_file->text + m->stub_file->text_size;
	s[PB_STUBS_TEXT].sh_type = SHT_NOBITS;
}

void pb_jit_withdraw(struct pb_module *m)
{
	if (!m->jit)
		return;
	pb_debugger_remove(m->jit);
	m->jit = NULL;
}

void pb_jit_announce(struct pb_module *m)
{
	uint64_t file = (uint64_t)m->stub_file - PB_STUBS_AT;

	if (pb_sys(SYS_mprotect, file, PB_STUBS_PAGE, PROT_READ | PROT_WRITE))
		return;	/* a debugger sees less */
	change_headers(m, file);
	pb_sys(SYS_mprotect, file, PB_STUBS_PAGE, PROT_READ);
	m->jit = &entries[m - pb_modules];
	m->jit->symfile = (const char *)file;
	m->jit->size = m->stub_file->size;
	pb_debugger_add(m->jit);
}
