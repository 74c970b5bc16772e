/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Reports stubs to debuggers by gdb's JIT interface. The file of a module's stubs, with symbols and
 * unwind tables, is mapped (text_stubs.c). gdb reads the file from memory when gdb attaches, or
 * when it is notified (base/debugger.h). gdb expects that the section headers of this file have
 * addresses, and that symbols are relative to their sections, as in ET_REL. So the code here
 * changes the file's headers in memory, and nothing else.
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
	/* gdb would warn of each section that is outside of all segments */
	eh->e_phnum = 0;
	for (unsigned i = PB_STUBS_TEXT; i <= PB_STUBS_EH_FRAME; i++)
		s[i].sh_addr = file + s[i].sh_offset;
	/* the file's symbols are relative to its start */
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
		return;	/* debuggers don't learn of these stubs */
	change_headers(m, file);
	pb_sys(SYS_mprotect, file, PB_STUBS_PAGE, PROT_READ);
	m->jit = &entries[m - pb_modules];
	m->jit->symfile = (const char *)file;
	m->jit->size = m->stub_file->size;
	pb_debugger_add(m->jit);
}
