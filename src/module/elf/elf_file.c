/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Reads an ELF file's blocks on demand, and checks every range (elf_file.h). Also finds headers,
 * segments, sections, the dynamic section, symbol tables and the build-id. A file with a broken
 * section table counts as a file without sections. Broken segments are an error.
 */
#include "module/elf/elf_file.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include "base/base.h"

#define BLOCK		(16u << 10)
#define MAX_SEGMENTS	128	/* real files have a dozen segments; look-ups are linear */

/* Loads a block. False: the file shrank or can't be read. The block then doesn't count as
 * loaded. */
static bool load_block(struct pb_elf *e, uint64_t block)
{
	uint64_t off = block * BLOCK;
	uint64_t left = e->size - off < BLOCK ? e->size - off : BLOCK;

	while (left) {
		ssize_t n = pread(e->fd, e->base + off, left, (off_t)off);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return false;
		off += (uint64_t)n;
		left -= (uint64_t)n;
	}
	e->loaded[block] = 1;
	return true;
}

const void *pb_elf_bytes(struct pb_elf *e, uint64_t off, uint64_t len)
{
	if (off > e->size || len > e->size - off)
		return NULL;
	if (e->fd >= 0 && len)
		for (uint64_t b = off / BLOCK; b <= (off + len - 1) / BLOCK; b++)
			if (!e->loaded[b] && !load_block(e, b))
				return NULL;
	return e->base + off;
}

static const Elf64_Phdr *segment_of(const struct pb_elf *e, uint64_t addr)
{
	for (unsigned i = 0; i < e->nr_ph; i++)
		if (e->ph[i].p_type == PT_LOAD && addr >= e->ph[i].p_vaddr &&
		    addr - e->ph[i].p_vaddr < e->ph[i].p_filesz)
			return &e->ph[i];
	return NULL;
}

const void *pb_elf_at(struct pb_elf *e, uint64_t addr, uint64_t len)
{
	const Elf64_Phdr *ph = segment_of(e, addr);

	if (!ph || len > ph->p_filesz - (addr - ph->p_vaddr))
		return NULL;
	return pb_elf_bytes(e, ph->p_offset + (addr - ph->p_vaddr), len);
}

uint64_t pb_elf_room(const struct pb_elf *e, uint64_t addr)
{
	const Elf64_Phdr *ph = segment_of(e, addr);

	return ph ? ph->p_filesz - (addr - ph->p_vaddr) : 0;
}

static const char *read_segments(struct pb_elf *e)
{
	const Elf64_Ehdr *eh = e->eh;

	if (eh->e_phentsize != sizeof(Elf64_Phdr) || eh->e_phoff % 8 || !eh->e_phnum ||
	    eh->e_phnum > MAX_SEGMENTS)
		return "no usable program headers";
	e->ph = pb_elf_bytes(e, eh->e_phoff, eh->e_phnum * sizeof(Elf64_Phdr));
	if (!e->ph)
		return "program headers lie outside the file";
	for (unsigned i = 0; i < eh->e_phnum; i++) {
		const Elf64_Phdr *p = &e->ph[i];

		if (p->p_type != PT_LOAD && p->p_type != PT_DYNAMIC && p->p_type != PT_NOTE &&
		    p->p_type != PT_GNU_EH_FRAME)
			continue;
		if (p->p_type == PT_LOAD && (p->p_memsz < p->p_filesz ||
		    p->p_vaddr >= 1ull << 47 || p->p_memsz >= 1ull << 47))
			return "a segment's addresses or sizes are invalid";
		if (p->p_filesz && (p->p_offset > e->size || p->p_filesz > e->size - p->p_offset))
			return "a segment lies outside the file";
	}
	e->nr_ph = eh->e_phnum;
	return NULL;
}

const char *pb_elf_string(const struct pb_elf_strings *s, uint64_t off)
{
	return off < s->size ? s->v + off : NULL;
}

/* Ends the table at its last NUL, so that every string ends inside the table. */
static void set_strings(struct pb_elf_strings *s, const char *v, uint64_t size)
{
	const char *nul = v && size ? memrchr(v, 0, size) : NULL;

	s->v = v;
	s->size = nul ? (uint64_t)(nul + 1 - v) : 0;
}

/* A file works without section headers, so a broken table counts as no table. */
static void read_sections(struct pb_elf *e)
{
	const Elf64_Ehdr *eh = e->eh;
	const Elf64_Shdr *sh;
	uint64_t n = eh->e_shnum, str = eh->e_shstrndx;

	if (!eh->e_shoff || eh->e_shoff % 8 || eh->e_shentsize != sizeof(*sh))
		return;
	sh = pb_elf_bytes(e, eh->e_shoff, sizeof(*sh));
	if (!sh)
		return;
	if (!n)
		n = sh->sh_size;
	if (str == SHN_XINDEX)
		str = sh->sh_link;
	if (!n || n > 1u << 20 || !pb_elf_bytes(e, eh->e_shoff, n * sizeof(*sh)))
		return;
	e->sh = sh;
	e->nr_sh = (unsigned)n;
	if (str < n && sh[str].sh_type == SHT_STRTAB) {
		set_strings(&e->section_names,
			    pb_elf_bytes(e, sh[str].sh_offset, sh[str].sh_size), sh[str].sh_size);
	}
}

static void read_dynamic(struct pb_elf *e)
{
	for (unsigned i = 0; i < e->nr_ph; i++) {
		const Elf64_Phdr *p = &e->ph[i];

		if (p->p_type != PT_DYNAMIC || p->p_offset % 8)
			continue;
		e->dyn = pb_elf_bytes(e, p->p_offset, p->p_filesz);
		e->nr_dyn = e->dyn ? p->p_filesz / sizeof(*e->dyn) : 0;
		for (uint64_t k = 0; k < e->nr_dyn; k++)
			if (e->dyn[k].d_tag == DT_NULL)
				e->nr_dyn = k;
		return;
	}
}

static int read_headers(struct pb_elf *e, const char **why)
{
	static const uint8_t ident[] = { 0x7f, 'E', 'L', 'F', ELFCLASS64, ELFDATA2LSB, EV_CURRENT };

	e->eh = pb_elf_bytes(e, 0, sizeof(*e->eh));
	*why = "not an ELF file for x86-64";
	if (!e->eh || memcmp(e->eh->e_ident, ident, sizeof(ident)) ||
	    e->eh->e_machine != EM_X86_64)
		return -ENOEXEC;
	*why = "neither a program nor a shared library";
	if (e->eh->e_type != ET_EXEC && e->eh->e_type != ET_DYN)
		return -ENOEXEC;
	*why = e->symbols_only ? NULL : read_segments(e);
	if (*why)
		return -ENOEXEC;
	read_sections(e);
	read_dynamic(e);
	return 0;
}

int pb_elf_open(struct pb_elf *e, int fd, bool symbols_only, const char **why)
{
	struct stat st;

	memset(e, 0, sizeof(*e));
	e->fd = fd;
	e->symbols_only = symbols_only;
	*why = "can't be read";
	if (fstat(fd, &st))
		return -errno;
	*why = "not a regular file";
	if (!S_ISREG(st.st_mode))
		return -ENOEXEC;
	*why = "not an ELF file for x86-64";
	if (st.st_size < (off_t)sizeof(Elf64_Ehdr))
		return -ENOEXEC;
	e->size = (uint64_t)st.st_size;
	*why = "no memory";
	e->loaded = calloc(1, e->size / BLOCK + 1);
	e->base = mmap(NULL, e->size, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (e->base == MAP_FAILED)
		e->base = NULL;
	else	/* huge pages save page faults. Without them, a third of the page faults of a
		 * recording's first start, when the cache has no analysis, occur in this mapping */
		madvise(e->base, e->size, MADV_HUGEPAGE);
	int err = e->base && e->loaded ? read_headers(e, why) : -ENOMEM;

	if (err)
		pb_elf_close(e);
	return err;
}

int pb_elf_open_memory(struct pb_elf *e, uint8_t *bytes, size_t size, bool symbols_only,
		       const char **why)
{
	memset(e, 0, sizeof(*e));
	e->fd = -1;
	e->symbols_only = symbols_only;
	e->base = bytes;
	e->size = size;
	int err = read_headers(e, why);

	if (err)
		pb_elf_close(e);
	return err;
}

void pb_elf_close(struct pb_elf *e)
{
	if (e->fd < 0)
		free(e->base);
	else if (e->base)
		munmap(e->base, e->size);
	free(e->loaded);
	memset(e, 0, sizeof(*e));
	e->fd = -1;
}

const char *pb_elf_section_name(const struct pb_elf *e, const Elf64_Shdr *sh)
{
	const char *name = pb_elf_string(&e->section_names, sh->sh_name);

	return name ? name : "";
}

const Elf64_Shdr *pb_elf_section(const struct pb_elf *e, const char *name)
{
	for (unsigned i = 1; i < e->nr_sh; i++)
		if (!strcmp(pb_elf_section_name(e, &e->sh[i]), name))
			return &e->sh[i];
	return NULL;
}

const void *pb_elf_section_bytes(struct pb_elf *e, const Elf64_Shdr *sh)
{
	return sh->sh_type == SHT_NOBITS ? NULL : pb_elf_bytes(e, sh->sh_offset, sh->sh_size);
}

bool pb_elf_dynamic(const struct pb_elf *e, int64_t tag, uint64_t *value)
{
	for (uint64_t i = 0; i < e->nr_dyn; i++)
		if (e->dyn[i].d_tag == tag) {
			*value = e->dyn[i].d_un.d_val;
			return true;
		}
	return false;
}

void pb_elf_dynamic_strings(struct pb_elf *e, struct pb_elf_strings *out)
{
	uint64_t addr, size;

	set_strings(out, NULL, 0);
	if (pb_elf_dynamic(e, DT_STRTAB, &addr) && pb_elf_dynamic(e, DT_STRSZ, &size))
		set_strings(out, pb_elf_at(e, addr, size), size);
}

static const uint32_t *aligned4(const void *p)
{
	return (uintptr_t)p % 4 ? NULL : p;
}

/* Counts the dynamic symbols of a file without sections. DT_HASH has their number. In DT_GNU_HASH,
 * the chain that begins at the highest index ends at the last symbol. */
static uint64_t count_by_hash(struct pb_elf *e)
{
	const uint32_t *h;
	uint64_t addr, n = 0;

	if (pb_elf_dynamic(e, DT_HASH, &addr) && (h = aligned4(pb_elf_at(e, addr, 8))))
		return h[1];
	if (!pb_elf_dynamic(e, DT_GNU_HASH, &addr) || !(h = aligned4(pb_elf_at(e, addr, 16))))
		return 0;

	uint32_t nr_buckets = h[0], first = h[1], bloom = h[2];
	uint64_t buckets = addr + 16 + bloom * 8ull, chains = buckets + nr_buckets * 4ull;

	h = aligned4(pb_elf_at(e, buckets, nr_buckets * 4ull));
	for (uint32_t i = 0; h && i < nr_buckets; i++)
		if (h[i] > n)
			n = h[i];
	if (!h || n < first)
		return first;
	for (;; n++) {
		h = aligned4(pb_elf_at(e, chains + (n - first) * 4, 4));
		if (!h || *h & 1)
			return n + 1;
	}
}

static bool dynamic_symbols(struct pb_elf *e, struct pb_elf_symbols *out)
{
	uint64_t addr;

	if (!pb_elf_dynamic(e, DT_SYMTAB, &addr) || addr % 8)
		return false;
	out->n = count_by_hash(e);
	out->v = pb_elf_at(e, addr, out->n * sizeof(Elf64_Sym));
	pb_elf_dynamic_strings(e, &out->strings);
	return out->v && out->n && (uintptr_t)out->v % 8 == 0;
}

bool pb_elf_symbols(struct pb_elf *e, unsigned type, struct pb_elf_symbols *out)
{
	memset(out, 0, sizeof(*out));
	for (unsigned i = 1; i < e->nr_sh; i++) {
		const Elf64_Shdr *sh = &e->sh[i], *str;

		if (sh->sh_type != type || sh->sh_offset % 8 || sh->sh_link >= e->nr_sh)
			continue;
		str = &e->sh[sh->sh_link];
		out->v = pb_elf_section_bytes(e, sh);
		out->n = out->v ? sh->sh_size / sizeof(Elf64_Sym) : 0;
		set_strings(&out->strings, pb_elf_section_bytes(e, str), str->sh_size);
		return out->v != NULL;
	}
	return type == SHT_DYNSYM && dynamic_symbols(e, out);
}

/* Looks for the build-id in one segment of notes. At the call, *vaddr is the address of the
 * segment's start. If the build-id is found, *vaddr becomes the build-id's address. */
static const uint8_t *find_build_id(const uint8_t *p, uint64_t size, unsigned *len,
				    uint64_t *vaddr)
{
	uint64_t off = 0;

	while (size - off >= 12) {
		uint32_t namesz, descsz, type;

		memcpy(&namesz, p + off, 4);
		memcpy(&descsz, p + off + 4, 4);
		memcpy(&type, p + off + 8, 4);
		off += 12;
		if (pb_align_up((uint64_t)namesz, 4) > size - off)
			break;
		bool gnu = namesz == 4 && !memcmp(p + off, "GNU", 4);

		off += pb_align_up((uint64_t)namesz, 4);
		if (descsz > size - off)
			break;
		if (gnu && type == NT_GNU_BUILD_ID && descsz) {
			*len = descsz;
			*vaddr += off;
			return p + off;
		}
		if (pb_align_up((uint64_t)descsz, 4) > size - off)
			break;
		off += pb_align_up((uint64_t)descsz, 4);
	}
	return NULL;
}

const uint8_t *pb_elf_build_id(struct pb_elf *e, unsigned *len, uint64_t *vaddr)
{
	for (unsigned i = 0; i < e->nr_ph; i++) {
		const Elf64_Phdr *p = &e->ph[i];
		const uint8_t *notes, *id;

		if (p->p_type != PT_NOTE || !(notes = pb_elf_bytes(e, p->p_offset, p->p_filesz)))
			continue;
		*vaddr = p->p_vaddr;
		id = find_build_id(notes, p->p_filesz, len, vaddr);
		if (id) {
			if (!segment_of(e, *vaddr))
				*vaddr = 0;
			return id;
		}
	}
	return NULL;
}
