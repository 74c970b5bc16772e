/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Composes objects in memory, for tests of objects that the compiler at hand doesn't write. A
 * failing function ends the test. */
#ifndef PB_TESTS_BPF_MAKER_H
#define PB_TESTS_BPF_MAKER_H
#include <elf.h>
#include <linux/btf.h>
#include <stddef.h>
#include <stdint.h>

#include "bpfload/load.h"

struct maker_bytes {
	uint8_t *p;
	size_t nr, room;
};

/* Appends bytes, or zeros if `from` is NULL. Returns the offset of the first one. */
size_t maker_append(struct maker_bytes *b, const void *from, size_t nr);

/* An ELF file. */
struct maker {
	struct maker_bytes data, headers, syms, names;	/* names: of sections and of symbols */
};

void maker_begin(struct maker *m);
/* Returns the offset of the name in the file's names. */
uint32_t maker_name(struct maker *m, const char *text);
/* Adds a section whose bytes are part of the file's data already. Returns its number. */
uint32_t maker_header(struct maker *m, Elf64_Shdr header);
uint32_t maker_section(struct maker *m, const char *name, uint32_t type, const void *p, size_t nr);
/* type: STT_FUNC, ... Returns the symbol's number. */
uint32_t maker_symbol(struct maker *m, uint32_t name, unsigned type, uint32_t section,
		      uint64_t value, uint64_t size);
/* Completes the file, opens it as an object, and frees the file. */
int maker_open(struct maker *m, const struct pb_bpf_object_opts *opts, struct pb_bpf_object **o,
	       char *err, size_t size);

/* The types of BTF. */
struct maker_types {
	struct maker_bytes types, strings;
	uint32_t nr;
};

/* Adds the first part of a type. Returns the type's number. The caller appends the rest. */
uint32_t maker_type(struct maker_types *t, const char *name, uint32_t kind, uint32_t vlen,
		    uint32_t size_or_type);
uint32_t maker_int(struct maker_types *t, uint32_t size);
uint32_t maker_array(struct maker_types *t, uint32_t element, uint32_t nr);
uint32_t maker_var(struct maker_types *t, const char *name, uint32_t type, uint32_t linkage);
void maker_member(struct maker_types *t, const char *name, uint32_t type, uint32_t bits);
/* Adds a DATASEC with variables that all are at offset 0 and have the same size. */
void maker_datasec(struct maker_types *t, const char *name, const uint32_t *vars, uint32_t nr,
		   uint32_t size);
/* Appends the finished BTF to b, and frees the types. */
void maker_btf(struct maker_bytes *b, struct maker_types *t);
#endif
