/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Writes .eh_frame for native code, and the ELF file that gdb reads. */
#include <elf.h>
#include "base/debugger.h"
#include "base/mem.h"
#include "bpf/core/textbuf.h"
#include "bpf/jit/jit_priv.h"
#include "bpf/jit/unwind.h"

/* ---- .eh_frame (Linux Standard Base, DWARF's call frame instructions) ----------- */

struct bytes {
	uint8_t *p;
	uint32_t n;
};

static void put1(struct bytes *b, unsigned v)
{
	b->p[b->n++] = (uint8_t)v;
}

static void put4(struct bytes *b, uint32_t v)
{
	memcpy(b->p + b->n, &v, 4);
	b->n += 4;
}

/* Pads an entry, and stores the entry's length at its start. */
static void end_entry(struct bytes *b, uint32_t start)
{
	uint32_t len;

	while (b->n % 8 != 4)
		put1(b, 0);			/* DW_CFA_nop */
	len = b->n - start - 4;
	memcpy(b->p + start, &len, 4);
}

/* Writes the CIE. At a function's first instruction, CFA is rsp + 8, and the return address is at
 * CFA - 8. */
static void common(struct bytes *b)
{
	static const uint8_t cie[] = { 1, 'z', 'R', 0, 1, 0x78, 16, 1, 0x1b, 0x0c, 7, 8, 0x90, 1 };

	put4(b, 0);
	put4(b, 0);
	memcpy(b->p + b->n, cie, sizeof(cie));
	b->n += sizeof(cie);
	end_entry(b, 0);
}

/* Writes the FDE of a function that begins with push %rbp; mov %rsp, %rbp */
static void frame(struct bytes *b, uint64_t code, const struct pb_bpf_jit_frame *f)
{
	static const struct { uint8_t bit, reg; } kept[] = {
		{ SAVE_RUN, 12 }, { SAVE_R6, 3 }, { SAVE_R7, 13 }, { SAVE_R8, 14 },
		{ SAVE_R9, 15 } };
	uint32_t start = b->n, slot = 3 + f->room / 8;

	put4(b, 0);
	put4(b, b->n);				/* distance back to the CIE, which is at offset 0 */
	put4(b, (uint32_t)(code + f->entry - (uint64_t)(b->p + b->n)));
	put4(b, f->end - f->entry);
	put1(b, 0);
	put1(b, 0x41), put1(b, 0x0e), put1(b, 16);		/* after push: CFA = rsp + 16 */
	put1(b, 0x86), put1(b, 2);				/* rbp is at CFA - 16 */
	put1(b, 0x43), put1(b, 0x0d), put1(b, 6);		/* after mov: CFA = rbp + 16 */
	put1(b, 0x02), put1(b, f->body - f->entry - 4);		/* after the pushes */
	for (size_t k = 0; k < pb_array_size(kept); k++)
		if (f->saved & kept[k].bit)
			put1(b, 0x80u | kept[k].reg), put1(b, slot++);
	end_entry(b, start);
}

uint32_t pb_bpf_unwind_write(uint8_t *out, uint64_t code, const struct pb_bpf_jit_frame *frames,
			     uint32_t nr)
{
	struct bytes b = { .p = out };

	common(&b);
	for (uint32_t n = 0; n < nr; n++)
		frame(&b, code, &frames[n]);
	put4(&b, 0);
	return b.n;
}

/* ---- gdb ----------------------------------------------------------------------- */

enum { TEXT = 1, EH_FRAME, SYMTAB, STRTAB, NR_SECTIONS };

struct object {
	struct pb_debugger_entry entry;
	Elf64_Ehdr elf;
	Elf64_Shdr sections[NR_SECTIONS];
	Elf64_Sym symbols[2];
	char names[96];
};
_Static_assert(sizeof(struct object) <= PB_BPF_DEBUG_SIZE, "an entry has room");

/* Section names, then the program's name. */
#define SECTION_NAMES	"\0.text\0.eh_frame\0.symtab\0.strtab\0"
#define NAME_AT		(sizeof(SECTION_NAMES) - 1)

static void fill_sections(struct object *o, uint64_t code, uint64_t len, const uint8_t *unwind,
			  uint32_t unwind_len)
{
	const uint64_t base = (uint64_t)&o->elf;

	o->sections[TEXT] = (Elf64_Shdr){ .sh_name = 1, .sh_type = SHT_NOBITS,
		.sh_flags = SHF_ALLOC | SHF_EXECINSTR, .sh_addr = code, .sh_size = len,
		.sh_addralign = 1 };
	o->sections[EH_FRAME] = (Elf64_Shdr){ .sh_name = 7, .sh_type = SHT_PROGBITS,
		.sh_flags = SHF_ALLOC, .sh_addr = (uint64_t)unwind,
		.sh_offset = (uint64_t)unwind - base, .sh_size = unwind_len, .sh_addralign = 8 };
	o->sections[SYMTAB] = (Elf64_Shdr){ .sh_name = 17, .sh_type = SHT_SYMTAB,
		.sh_offset = (uint64_t)o->symbols - base, .sh_size = sizeof(o->symbols),
		.sh_link = STRTAB, .sh_info = 1, .sh_entsize = sizeof(Elf64_Sym),
		.sh_addralign = 8 };
	o->sections[STRTAB] = (Elf64_Shdr){ .sh_name = 25, .sh_type = SHT_STRTAB,
		.sh_offset = (uint64_t)o->names - base, .sh_size = sizeof(o->names),
		.sh_addralign = 1 };
	o->symbols[1] = (Elf64_Sym){ .st_name = NAME_AT,
		.st_info = ELF64_ST_INFO(STB_GLOBAL, STT_FUNC), .st_shndx = TEXT, .st_value = 0,
		.st_size = len };
}

void pb_bpf_debugger_add(void *entry, const char *name, uint64_t code, uint64_t len,
			 const uint8_t *unwind, uint32_t unwind_len)
{
	struct object *o = entry;
	struct pb_bpf_text text = { .buf = o->names + NAME_AT, .size = sizeof(o->names) - NAME_AT };

	o->elf = (Elf64_Ehdr){ .e_ident = { 0x7f, 'E', 'L', 'F', ELFCLASS64, ELFDATA2LSB,
		EV_CURRENT },
		.e_type = ET_REL, .e_machine = EM_X86_64, .e_version = EV_CURRENT,
		.e_shoff = offsetof(struct object, sections) - offsetof(struct object, elf),
		.e_ehsize = sizeof(Elf64_Ehdr), .e_shentsize = sizeof(Elf64_Shdr),
		.e_shnum = NR_SECTIONS, .e_shstrndx = STRTAB };
	memcpy(o->names, SECTION_NAMES, sizeof(SECTION_NAMES));
	pb_bpf_printf(&text, "bpf_prog_%s", name);
	fill_sections(o, code, len, unwind, unwind_len);
	o->entry = (struct pb_debugger_entry){ .symfile = (const char *)&o->elf,
		.size = (uint64_t)unwind + unwind_len - (uint64_t)&o->elf };
	pb_debugger_add(&o->entry);
}

void pb_bpf_debugger_remove(void *entry)
{
	pb_debugger_remove(entry);
}
