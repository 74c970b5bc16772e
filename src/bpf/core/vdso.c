/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Looks a function up in the vDSO, by the symbols of its dynamic section. */
#include <elf.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/auxv.h>
#include "base/auxv.h"
#include "base/mem.h"
#include "bpf/core/vdso.h"

struct image {
	uint64_t base;			/* the image's addresses are relative to this address */
	const Elf64_Sym *syms;
	const char *strings;
	uint32_t nr;
};

static void read_dynamic(struct image *im, const Elf64_Dyn *d)
{
	for (; d && d->d_tag != DT_NULL; d++) {
		uint64_t at = im->base + d->d_un.d_ptr;

		if (d->d_tag == DT_SYMTAB)
			im->syms = (const void *)at;
		else if (d->d_tag == DT_STRTAB)
			im->strings = (const void *)at;
	}
}

/* The kernel also maps the vDSO's section headers. The header of the dynamic symbols' section gives
 * the number of symbols. */
static uint32_t count_symbols(const Elf64_Ehdr *e)
{
	const Elf64_Shdr *s = (const void *)((const char *)e + e->e_shoff);

	for (int i = 0; e->e_shoff && i < e->e_shnum; i++)
		if (s[i].sh_type == SHT_DYNSYM)
			return (uint32_t)(s[i].sh_size / sizeof(Elf64_Sym));
	return 0;
}

static void open_image(struct image *im, const Elf64_Ehdr *e)
{
	const Elf64_Phdr *p = (const void *)((const char *)e + e->e_phoff);
	const Elf64_Dyn *d = NULL;

	*im = (struct image){ 0 };
	for (int i = 0; i < e->e_phnum; i++) {
		if (p[i].p_type == PT_LOAD && !im->base)
			im->base = (uint64_t)e + p[i].p_offset - p[i].p_vaddr;
		if (p[i].p_type == PT_DYNAMIC)
			d = (const void *)((const char *)e + p[i].p_offset);
	}
	read_dynamic(im, d);
	im->nr = im->syms && im->strings ? count_symbols(e) : 0;
}

void pb_bpf_vdso_range(uint64_t *start, uint64_t *size)
{
	const Elf64_Ehdr *e = (const void *)pb_auxv(AT_SYSINFO_EHDR, 0);
	const Elf64_Phdr *p = (const void *)((const char *)e + (e ? e->e_phoff : 0));

	*start = (uint64_t)e;
	*size = 0;
	for (int i = 0; e && i < e->e_phnum; i++)
		if (p[i].p_type == PT_LOAD && p[i].p_offset + p[i].p_memsz > *size)
			*size = p[i].p_offset + p[i].p_memsz;
}

void *pb_bpf_vdso(const char *name)
{
	const Elf64_Ehdr *e = (const void *)pb_auxv(AT_SYSINFO_EHDR, 0);
	struct image im;

	if (!e)
		return NULL;
	open_image(&im, e);
	for (uint32_t i = 0; i < im.nr; i++)
		if (im.syms[i].st_value && pb_streq(im.strings + im.syms[i].st_name, name))
			return (void *)(im.base + im.syms[i].st_value);
	return NULL;
}
