/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Reads the sections, names and symbols of an ELF file. The bytes are not trusted; what these
 * functions return lies inside them.
 *
 * Context: any thread, libc. The caller keeps the bytes until pb_bpf_elf_close().
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
	Elf64_Shdr *sh;			/* nr headers; a section outside the file has size 0 */
	uint32_t nr, names;
	uint32_t symtab, nr_syms;	/* 0: none */
};

/* Returns 0, or -EINVAL with the reason in *why. Only 64 bits and little-endian are accepted. */
int pb_bpf_elf_open(struct pb_bpf_elf *e, const void *data, size_t size, const char **why);
void pb_bpf_elf_close(struct pb_bpf_elf *e);

/* Never NULL. */
const char *pb_bpf_elf_name(const struct pb_bpf_elf *e, uint32_t section);
const char *pb_bpf_elf_sym_name(const struct pb_bpf_elf *e, const Elf64_Sym *sym);
/* The first section of that name, or 0. */
uint32_t pb_bpf_elf_find(const struct pb_bpf_elf *e, const char *name);
/* NULL: no such section, or it has no bytes in the file. Not aligned. */
const uint8_t *pb_bpf_elf_data(const struct pb_bpf_elf *e, uint32_t section, size_t *size);
/* Numbers from nr_syms on give a symbol of zeros. */
Elf64_Sym pb_bpf_elf_sym(const struct pb_bpf_elf *e, uint32_t i);
#endif
