/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Names for site numbers and addresses, from the analyses that the directory
 * holds (modules/N). Read and demangled when first asked for.
 *
 * Context: the observer, one thread. Strings live as long as the object.
 */
#ifndef PB_READER_SITE_NAMES_H
#define PB_READER_SITE_NAMES_H
#include <stddef.h>
#include <stdint.h>
#include "module/demangle.h"

struct pb_data;
struct pb_symbols;

struct pb_function {
	const char *name;	/* as people read it; "site:N" if unknown */
	const char *module;	/* its soname; "[unknown]" */
	const char *raw;	/* as the symbol table has it; else the name */
	uint64_t id;		/* the same for the same function in every image */
};

struct pb_symbols *pb_symbols_new(struct pb_data *d);
void pb_symbols_free(struct pb_symbols *s);
/* How names are shown (PB_DEMANGLE_SIMPLE). Before the first is asked for. */
void pb_symbols_demangle(struct pb_symbols *s, enum pb_demangle how);
enum pb_demangle pb_symbols_style(const struct pb_symbols *s);

struct pb_analysis;
/* What modules/NUMBER holds, checked; NULL: it is missing or damaged. */
const struct pb_analysis *pb_symbols_module(struct pb_symbols *s, uint32_t number);

/* `image` is an index of data->images. */
struct pb_function pb_symbols_site(struct pb_symbols *s, size_t image, uint32_t site);

/* "name" or "name+0x12" of an address at that time into buf; hex if unknown. */
void pb_symbols_address(struct pb_symbols *s, size_t image, uint32_t pid, uint64_t clock,
			uint64_t address, char *buf, size_t len);
#endif
