/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Reads an ELF64 x86-64 file that may be hostile, truncated, or changed while it is read.
 *
 * The file is not mapped, since a truncation would be a SIGBUS. Its bytes are read into an
 * anonymous mapping of the same size, block by block on demand: pointers stay valid, and bytes
 * once read do not change. Every function checks the whole range before it returns a pointer.
 *
 * Context: one thread at a time calls these functions; several may read bytes through the returned
 * pointers.
 */
#ifndef PB_MODULE_ELF_FILE_H
#define PB_MODULE_ELF_FILE_H
#include <elf.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A table of strings that lies in the file and ends with a NUL. */
struct pb_elf_strings {
	const char *v;
	uint64_t size;
};

struct pb_elf_symbols {
	const Elf64_Sym *v;
	uint64_t n;
	struct pb_elf_strings strings;
};

struct pb_elf {
	int fd;			/* -1: all bytes are in memory */
	bool symbols_only;	/* a debug file: its segments have no bytes here */
	uint8_t *base;
	uint64_t size;
	uint8_t *loaded;	/* for each block of the file: whether it has been read */
	const Elf64_Ehdr *eh;
	const Elf64_Phdr *ph;	/* checked: file ranges lie in the file, addresses don't wrap */
	unsigned nr_ph;
	const Elf64_Shdr *sh;	/* NULL and 0 if there is no usable table */
	unsigned nr_sh;
	struct pb_elf_strings section_names;
	const Elf64_Dyn *dyn;
	uint64_t nr_dyn;
};

/* The caller closes fd. Returns 0, or -ENOEXEC, -ENOMEM or read's error with the reason in *why.
 * symbols_only: use sections only, not segments. */
int pb_elf_open(struct pb_elf *e, int fd, bool symbols_only, const char **why);
/* `bytes` must come from malloc(). pb_elf_close() frees it; on failure it is freed at once. */
int pb_elf_open_memory(struct pb_elf *e, uint8_t *bytes, size_t size, bool symbols_only,
		       const char **why);
void pb_elf_close(struct pb_elf *e);

/* len bytes at a file offset, or NULL. */
const void *pb_elf_bytes(struct pb_elf *e, uint64_t off, uint64_t len);
/* len bytes at a link-time address, wholly inside one segment's file part, or NULL. */
const void *pb_elf_at(struct pb_elf *e, uint64_t addr, uint64_t len);
/* The file-backed bytes from addr to the end of its segment; 0 if none. */
uint64_t pb_elf_room(const struct pb_elf *e, uint64_t addr);

const char *pb_elf_section_name(const struct pb_elf *e, const Elf64_Shdr *sh);
const Elf64_Shdr *pb_elf_section(const struct pb_elf *e, const char *name);
/* A section's bytes, or NULL (also for SHT_NOBITS). */
const void *pb_elf_section_bytes(struct pb_elf *e, const Elf64_Shdr *sh);

/* A string that ends inside its table, or NULL. */
const char *pb_elf_string(const struct pb_elf_strings *s, uint64_t off);
/* Finds a symbol table; false if the file has none. type is SHT_SYMTAB or SHT_DYNSYM. A SHT_DYNSYM
 * table is found without section headers too. */
bool pb_elf_symbols(struct pb_elf *e, unsigned type, struct pb_elf_symbols *out);
/* The value of a tag in the dynamic section; false if absent. */
bool pb_elf_dynamic(const struct pb_elf *e, int64_t tag, uint64_t *value);
void pb_elf_dynamic_strings(struct pb_elf *e, struct pb_elf_strings *out);
/* The build-id: bytes, length and address in memory (0 if not loaded). */
const uint8_t *pb_elf_build_id(struct pb_elf *e, unsigned *len, uint64_t *vaddr);
#endif
