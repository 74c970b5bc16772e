/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Reads an ELF64 x86-64 file that may be hostile, truncated, or changed while it is read.
 *
 * The file is not mapped, because reading a mapping of a truncated file raises SIGBUS. The file's
 * bytes are read block by block on demand, into an anonymous mapping of the file's size. So
 * pointers stay valid, and bytes that have been read do not change. Every function checks the whole
 * range before it returns a pointer.
 *
 * Context: one thread at a time calls these functions. Several threads may read bytes through the
 * returned pointers.
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
	int fd;			/* -1: fd isn't used, because all bytes are in memory */
	bool symbols_only;	/* the file is a debug file: its segments have no bytes in the
				 * file */
	uint8_t *base;
	uint64_t size;
	uint8_t *loaded;	/* for each block of the file: whether it has been read */
	const Elf64_Ehdr *eh;
	const Elf64_Phdr *ph;	/* checked: the segments' file ranges lie in the file, and addresses
				 * don't wrap */
	unsigned nr_ph;
	const Elf64_Shdr *sh;	/* NULL (nr_sh is 0) if there is no usable table */
	unsigned nr_sh;
	struct pb_elf_strings section_names;
	const Elf64_Dyn *dyn;
	uint64_t nr_dyn;
};

/* Opens an ELF file. Returns 0. On failure, sets *why and returns -ENOEXEC, -ENOMEM or the error of
 * fstat(). If symbols_only is true, only sections are used, not segments. The caller must keep fd
 * open until pb_elf_close(). */
int pb_elf_open(struct pb_elf *e, int fd, bool symbols_only, const char **why);
/* Opens an ELF file in memory. `bytes` must come from malloc(). pb_elf_close() frees `bytes`. If
 * this call fails, it has freed `bytes`. */
int pb_elf_open_memory(struct pb_elf *e, uint8_t *bytes, size_t size, bool symbols_only,
		       const char **why);
void pb_elf_close(struct pb_elf *e);

/* Returns len bytes at a file offset, or NULL. */
const void *pb_elf_bytes(struct pb_elf *e, uint64_t off, uint64_t len);
/* Returns len bytes at a link-time address, or NULL. All bytes must lie in the file part of one
 * segment. */
const void *pb_elf_at(struct pb_elf *e, uint64_t addr, uint64_t len);
/* Returns the number of bytes from addr to the end of its segment's file part, or 0 if there are
 * none. */
uint64_t pb_elf_room(const struct pb_elf *e, uint64_t addr);

const char *pb_elf_section_name(const struct pb_elf *e, const Elf64_Shdr *sh);
const Elf64_Shdr *pb_elf_section(const struct pb_elf *e, const char *name);
/* Returns a section's bytes, or NULL. The result for SHT_NOBITS is NULL. */
const void *pb_elf_section_bytes(struct pb_elf *e, const Elf64_Shdr *sh);

/* Returns a string that ends inside its table, or NULL. */
const char *pb_elf_string(const struct pb_elf_strings *s, uint64_t off);
/* Finds the symbol table of the type SHT_SYMTAB or SHT_DYNSYM. False if the file has none. A
 * SHT_DYNSYM table is found even if the file has no section headers. */
bool pb_elf_symbols(struct pb_elf *e, unsigned type, struct pb_elf_symbols *out);
/* Finds the value of a tag in the dynamic section. False if the tag is absent. */
bool pb_elf_dynamic(const struct pb_elf *e, int64_t tag, uint64_t *value);
void pb_elf_dynamic_strings(struct pb_elf *e, struct pb_elf_strings *out);
/* Returns the build-id's bytes, or NULL if there is no build-id. Sets *len to the build-id's
 * length, and *vaddr to its link-time address. *vaddr is 0 if no segment loads the build-id. */
const uint8_t *pb_elf_build_id(struct pb_elf *e, unsigned *len, uint64_t *vaddr);
#endif
