/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Reads the sections, names and symbols of an ELF file. The bytes are not trusted. All data and
 * names that these functions return lie inside the bytes. If a name doesn't, the functions return
 * "".
 *
 * Context: any thread, libc. The caller must keep the bytes until pb_bpf_elf_close().
 */
#ifndef PB_BPFLOAD_LOAD_ELF_H
#define PB_BPFLOAD_LOAD_ELF_H
#include <elf.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct pb_bpf_elf {
	const uint8_t *data;
	size_t size;
	uint16_t type, machine;
	Elf64_Shdr *sh;			/* the section headers; a section that lies outside of the
					 * file gets size 0 */
	uint32_t nr, names;		/* nr: count of sections; names: number of the section that
					 * holds the names of all sections */
	uint32_t symtab, nr_syms;	/* symtab: number of the section with the symbols; 0:
					 * none */
};

/* Accepts only 64-bit little-endian files. Returns 0, -EINVAL or -ENOMEM. After an error, *why is
 * the reason. */
int pb_bpf_elf_open(struct pb_bpf_elf *e, const void *data, size_t size, const char **why);
void pb_bpf_elf_close(struct pb_bpf_elf *e);

/* Never NULL. */
const char *pb_bpf_elf_name(const struct pb_bpf_elf *e, uint32_t section);
const char *pb_bpf_elf_sym_name(const struct pb_bpf_elf *e, const Elf64_Sym *sym);
/* Whether the symbol has this name, which isn't empty. */
bool pb_bpf_elf_sym_is(const struct pb_bpf_elf *e, const Elf64_Sym *sym, const char *name);
/* Returns the number of the first section with this name, or 0. */
uint32_t pb_bpf_elf_find(const struct pb_bpf_elf *e, const char *name);
/* Returns the section's bytes, which may not be aligned. NULL: there is no such section, or
 * sections of its type have no bytes in the file (SHT_NOBITS). */
const uint8_t *pb_bpf_elf_data(const struct pb_bpf_elf *e, uint32_t section, size_t *size);
/* Returns symbol i. If i is nr_syms or more, the symbol is all zeros. */
Elf64_Sym pb_bpf_elf_sym(const struct pb_bpf_elf *e, uint32_t i);
#endif
