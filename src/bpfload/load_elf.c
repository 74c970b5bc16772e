/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Reads sections and symbols of an ELF file. The functions check each section and each symbol
 * before they return it. */
#include "bpfload/load_elf.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define NAME_SIZE	8192	/* limit on a section's or symbol's name, in bytes; a longer name
				 * counts as empty */

static const char *read_header(struct pb_bpf_elf *e, Elf64_Ehdr *h)
{
	if (e->size < sizeof(*h) || memcmp(e->data, ELFMAG, SELFMAG))
		return "not an ELF file";
	memcpy(h, e->data, sizeof(*h));
	if (h->e_ident[EI_CLASS] != ELFCLASS64)
		return "the ELF file isn't 64-bit";
	if (h->e_ident[EI_DATA] != ELFDATA2LSB)
		return "the ELF file is big-endian";
	e->type = h->e_type;
	e->machine = h->e_machine;
	if (!h->e_shoff || h->e_shoff > e->size || e->size - h->e_shoff < sizeof(Elf64_Shdr) ||
	    h->e_shentsize != sizeof(Elf64_Shdr))
		return "the ELF file has no table of sections";
	return NULL;
}

/* Returns 0 or -errno. After an error, *why is the reason. */
static int read_sections(struct pb_bpf_elf *e, const Elf64_Ehdr *h, const char **why)
{
	Elf64_Shdr first;

	memcpy(&first, e->data + h->e_shoff, sizeof(first));
	e->nr = h->e_shnum ? h->e_shnum : first.sh_size > UINT32_MAX ? UINT32_MAX :
		(uint32_t)first.sh_size;
	e->names = h->e_shstrndx == SHN_XINDEX ? first.sh_link : h->e_shstrndx;
	if (!e->nr || e->nr > (e->size - h->e_shoff) / sizeof(Elf64_Shdr)) {
		*why = "the ELF file's table of sections is cut off";
		return -EINVAL;
	}
	e->sh = malloc(e->nr * sizeof(e->sh[0]));
	if (!e->sh) {
		*why = "out of memory";
		return -ENOMEM;
	}
	memcpy(e->sh, e->data + h->e_shoff, e->nr * sizeof(e->sh[0]));
	for (uint32_t i = 0; i < e->nr; i++) {
		Elf64_Shdr *s = &e->sh[i];

		if (s->sh_type != SHT_NOBITS &&
		    (s->sh_offset > e->size || s->sh_size > e->size - s->sh_offset))
			s->sh_offset = s->sh_size = 0;
		if (s->sh_type == SHT_SYMTAB && !e->symtab) {
			e->symtab = i;
			e->nr_syms = (uint32_t)(s->sh_size / sizeof(Elf64_Sym));
		}
	}
	return 0;
}

int pb_bpf_elf_open(struct pb_bpf_elf *e, const void *data, size_t size, const char **why)
{
	Elf64_Ehdr h;
	int err;

	memset(e, 0, sizeof(*e));
	e->data = data;
	e->size = size;
	*why = read_header(e, &h);
	err = *why ? -EINVAL : read_sections(e, &h, why);
	if (err)
		pb_bpf_elf_close(e);
	return err;
}

void pb_bpf_elf_close(struct pb_bpf_elf *e)
{
	free(e->sh);
	e->sh = NULL;
	e->nr = 0;
}

/* Returns the string at an offset. If the string doesn't end inside the section, returns "". */
static const char *text_at(const struct pb_bpf_elf *e, uint32_t section, uint64_t off)
{
	size_t size;
	const uint8_t *p = pb_bpf_elf_data(e, section, &size);

	if (!p || off >= size ||
	    !memchr(p + off, 0, size - off < NAME_SIZE ? size - off : NAME_SIZE))
		return "";
	return (const char *)p + off;
}

const char *pb_bpf_elf_name(const struct pb_bpf_elf *e, uint32_t section)
{
	return section < e->nr ? text_at(e, e->names, e->sh[section].sh_name) : "";
}

const char *pb_bpf_elf_sym_name(const struct pb_bpf_elf *e, const Elf64_Sym *sym)
{
	if (ELF64_ST_TYPE(sym->st_info) == STT_SECTION && !sym->st_name)
		return pb_bpf_elf_name(e, sym->st_shndx);
	return e->symtab ? text_at(e, e->sh[e->symtab].sh_link, sym->st_name) : "";
}

/* Whether the string at an offset is `text`. Unlike text_at(), doesn't look for the end of a string
 * that differs. */
static bool text_is(const struct pb_bpf_elf *e, uint32_t section, uint64_t off, const char *text,
		    size_t length)
{
	size_t size;
	const uint8_t *p = pb_bpf_elf_data(e, section, &size);

	return p && off < size && length < NAME_SIZE && size - off > length &&
	       !memcmp(p + off, text, length + 1);
}

bool pb_bpf_elf_sym_is(const struct pb_bpf_elf *e, const Elf64_Sym *sym, const char *name)
{
	if (ELF64_ST_TYPE(sym->st_info) == STT_SECTION && !sym->st_name)
		return sym->st_shndx < e->nr &&
		       text_is(e, e->names, e->sh[sym->st_shndx].sh_name, name, strlen(name));
	return e->symtab &&
	       text_is(e, e->sh[e->symtab].sh_link, sym->st_name, name, strlen(name));
}

uint32_t pb_bpf_elf_find(const struct pb_bpf_elf *e, const char *name)
{
	size_t length = strlen(name);

	for (uint32_t i = 1; i < e->nr; i++)
		if (text_is(e, e->names, e->sh[i].sh_name, name, length))
			return i;
	return 0;
}

const uint8_t *pb_bpf_elf_data(const struct pb_bpf_elf *e, uint32_t section, size_t *size)
{
	*size = 0;
	if (!section || section >= e->nr || e->sh[section].sh_type == SHT_NOBITS ||
	    e->sh[section].sh_type == SHT_NULL)
		return NULL;
	*size = e->sh[section].sh_size;
	return e->data + e->sh[section].sh_offset;
}

Elf64_Sym pb_bpf_elf_sym(const struct pb_bpf_elf *e, uint32_t i)
{
	Elf64_Sym sym = {};

	if (i < e->nr_syms)
		memcpy(&sym, e->data + e->sh[e->symtab].sh_offset + (uint64_t)i * sizeof(sym),
		       sizeof(sym));
	return sym;
}
