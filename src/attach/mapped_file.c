/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Opens the file of a mapping (mapped_file.h). The build-id is compared with the one in memory,
 * because a path can lead to another file than the mapped one.
 */
#include "attach/mapped_file.h"
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define HIDDEN	0x8000		/* a symbol's version isn't the default version */

#define PAGE 4096u

/* Stores the load bias. False: no segment begins in the file's first page, or m doesn't begin with
 * this page. */
static bool bias_of(const struct pb_elf *e, const struct record_map *m, uint64_t *bias)
{
	for (unsigned i = 0; i < e->nr_ph; i++)
		if (e->ph[i].p_type == PT_LOAD && e->ph[i].p_offset < PAGE) {
			*bias = m->start - (e->ph[i].p_vaddr & ~(uint64_t)(PAGE - 1));
			return !m->offset;
		}
	return false;
}

static bool same_build_id(const struct attach_subject *s, struct pb_elf *e,
			  const struct record_map *m)
{
	uint8_t memory[64];
	uint64_t addr, bias;
	unsigned len;
	const uint8_t *id = pb_elf_build_id(e, &len, &addr);

	return id && addr && len && len <= sizeof(memory) && bias_of(e, m, &bias) &&
	       !attach_mem_read(s, bias + addr, memory, len) && !memcmp(id, memory, len);
}

/* Opens a file, if it is the one that is mapped. Returns the descriptor or -errno. */
static int open_if_same(const struct attach_subject *s, const char *path,
			const struct record_map *m, struct pb_elf *e)
{
	const char *why;
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);

	if (fd < 0)
		return -errno;
	int err = pb_elf_open(e, fd, false, &why);

	if (!err && !same_build_id(s, e, m)) {
		pb_elf_close(e);
		err = -ESTALE;
	}
	if (err)
		close(fd);
	return err ? err : fd;
}

int attach_mapped_open(const struct attach_subject *s, const struct record_map *m,
		       struct pb_elf *e)
{
	char path[ATTACH_PATH + 64];
	int fd;

	/* this path works for deleted files, too, but only for root */
	snprintf(path, sizeof(path), "/proc/%d/map_files/%lx-%lx", (int)s->pid, m->start, m->end);
	fd = open_if_same(s, path, m, e);
	if (fd >= 0)
		return fd;
	snprintf(path, sizeof(path), "/proc/%d/root%s", (int)s->pid, m->path);
	return open_if_same(s, path, m, e);
}

static const uint16_t *versions_of(struct pb_elf *e, uint64_t n)
{
	uint64_t addr;
	const void *v = NULL;

	if (pb_elf_dynamic(e, DT_VERSYM, &addr) && n < UINT32_MAX)
		v = pb_elf_at(e, addr, n * sizeof(uint16_t));
	return (uintptr_t)v % sizeof(uint16_t) ? NULL : v;
}

void attach_find_functions(struct pb_elf *e, uint64_t base, const struct attach_range *text,
			   const struct attach_wanted *w, size_t n)
{
	struct pb_elf_symbols symbols;

	if (!pb_elf_symbols(e, SHT_DYNSYM, &symbols))
		return;
	const uint16_t *versions = versions_of(e, symbols.n);

	for (uint64_t i = 0; i < symbols.n; i++) {
		const Elf64_Sym *sym = &symbols.v[i];
		const char *name = pb_elf_string(&symbols.strings, sym->st_name);

		if (!name || ELF64_ST_TYPE(sym->st_info) != STT_FUNC || !sym->st_shndx ||
		    (versions && versions[i] & HIDDEN) || !attach_in(text, base + sym->st_value))
			continue;
		for (size_t k = 0; k < n; k++)
			if (!strcmp(name, w[k].name)) {
				*w[k].addr = base + sym->st_value;
				if (w[k].size)
					*w[k].size = sym->st_size;
			}
	}
}
