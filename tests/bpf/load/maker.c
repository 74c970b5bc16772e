/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Composes ELF files and BTF. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "maker.h"

size_t maker_append(struct maker_bytes *b, const void *from, size_t nr)
{
	size_t at = b->nr;

	while (b->room - at < nr) {
		b->room = b->room ? 2 * b->room : 4096;
		b->p = realloc(b->p, b->room);
		assert_non_null(b->p);
	}
	if (nr && from)
		memcpy(b->p + at, from, nr);
	else if (nr)
		memset(b->p + at, 0, nr);
	b->nr += nr;
	return at;
}

/* --- ELF --------------------------------------------------------------------------- */

uint32_t maker_name(struct maker *m, const char *text)
{
	return (uint32_t)maker_append(&m->names, text, strlen(text) + 1);
}

void maker_begin(struct maker *m)
{
	memset(m, 0, sizeof(*m));
	maker_append(&m->data, NULL, sizeof(Elf64_Ehdr));
	maker_append(&m->headers, NULL, sizeof(Elf64_Shdr));
	maker_append(&m->syms, NULL, sizeof(Elf64_Sym));
	maker_name(m, "");
}

uint32_t maker_header(struct maker *m, Elf64_Shdr header)
{
	return (uint32_t)(maker_append(&m->headers, &header, sizeof(header)) / sizeof(header));
}

uint32_t maker_section(struct maker *m, const char *name, uint32_t type, const void *p, size_t nr)
{
	return maker_header(m, (Elf64_Shdr){ .sh_name = maker_name(m, name), .sh_type = type,
		.sh_offset = maker_append(&m->data, p, nr), .sh_size = nr });
}

uint32_t maker_symbol(struct maker *m, uint32_t name, unsigned type, uint32_t section,
		      uint64_t value, uint64_t size)
{
	Elf64_Sym s = { .st_name = name, .st_info = (uint8_t)(STB_GLOBAL << 4 | type),
		.st_shndx = (uint16_t)section, .st_value = value, .st_size = size };

	return (uint32_t)(maker_append(&m->syms, &s, sizeof(s)) / sizeof(s));
}

int maker_open(struct maker *m, const struct pb_bpf_object_opts *opts, struct pb_bpf_object **o,
	       char *err, size_t size)
{
	uint32_t names = maker_section(m, "", SHT_STRTAB, m->names.p, m->names.nr), nr;
	Elf64_Ehdr h = { .e_ident = { 0x7f, 'E', 'L', 'F', ELFCLASS64, ELFDATA2LSB, EV_CURRENT },
		.e_type = ET_REL, .e_machine = EM_BPF, .e_shentsize = sizeof(Elf64_Shdr),
		.e_shstrndx = SHN_XINDEX };
	Elf64_Shdr *headers;
	int ret;

	nr = 1 + maker_header(m, (Elf64_Shdr){ .sh_type = SHT_SYMTAB, .sh_link = names,
		.sh_offset = maker_append(&m->data, m->syms.p, m->syms.nr),
		.sh_size = m->syms.nr });
	headers = (Elf64_Shdr *)m->headers.p;
	headers[0] = (Elf64_Shdr){ .sh_size = nr, .sh_link = names };
	h.e_shoff = maker_append(&m->data, headers, m->headers.nr);
	memcpy(m->data.p, &h, sizeof(h));
	ret = pb_bpf_object_open_memory(m->data.p, m->data.nr, opts, o, err, size);
	free(m->data.p);
	free(m->headers.p);
	free(m->syms.p);
	free(m->names.p);
	return ret;
}

/* --- BTF ----------------------------------------------------------------------------- */

static uint32_t text(struct maker_types *t, const char *s)
{
	if (!t->strings.nr)
		maker_append(&t->strings, "", 1);
	return *s ? (uint32_t)maker_append(&t->strings, s, strlen(s) + 1) : 0;
}

uint32_t maker_type(struct maker_types *t, const char *name, uint32_t kind, uint32_t vlen,
		    uint32_t size_or_type)
{
	struct btf_type type = { .name_off = text(t, name), .info = kind << 24 | vlen,
		.size = size_or_type };

	maker_append(&t->types, &type, sizeof(type));
	return ++t->nr;
}

uint32_t maker_int(struct maker_types *t, uint32_t size)
{
	uint32_t id = maker_type(t, "number", BTF_KIND_INT, 0, size), bits = 8 * size;

	maker_append(&t->types, &bits, 4);
	return id;
}

uint32_t maker_array(struct maker_types *t, uint32_t element, uint32_t nr)
{
	uint32_t id = maker_type(t, "", BTF_KIND_ARRAY, 0, 0);
	struct btf_array a = { element, element, nr };

	maker_append(&t->types, &a, sizeof(a));
	return id;
}

uint32_t maker_var(struct maker_types *t, const char *name, uint32_t type, uint32_t linkage)
{
	uint32_t id = maker_type(t, name, BTF_KIND_VAR, 0, type);

	maker_append(&t->types, &linkage, 4);
	return id;
}

void maker_member(struct maker_types *t, const char *name, uint32_t type, uint32_t bits)
{
	struct btf_member m = { text(t, name), type, bits };

	maker_append(&t->types, &m, sizeof(m));
}

void maker_datasec(struct maker_types *t, const char *name, const uint32_t *vars, uint32_t nr,
		   uint32_t size)
{
	maker_type(t, name, BTF_KIND_DATASEC, nr, size);
	for (uint32_t i = 0; i < nr; i++) {
		struct btf_var_secinfo v = { .type = vars[i], .size = size };

		maker_append(&t->types, &v, sizeof(v));
	}
}

void maker_btf(struct maker_bytes *b, struct maker_types *t)
{
	struct btf_header h = { .magic = BTF_MAGIC, .version = BTF_VERSION, .hdr_len = sizeof(h),
		.type_len = (uint32_t)t->types.nr, .str_off = (uint32_t)t->types.nr,
		.str_len = (uint32_t)t->strings.nr };

	maker_append(b, &h, sizeof(h));
	maker_append(b, t->types.p, t->types.nr);
	maker_append(b, t->strings.p, t->strings.nr);
	free(t->types.p);
	free(t->strings.p);
}
