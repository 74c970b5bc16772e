/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Names for site numbers and addresses, from the analyses in the data directory
 * (modules/N). A name is read and demangled when it is first asked for.
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
	const char *name;	/* the name to display; "site:N" if unknown */
	const char *module;	/* the module's soname, or "[unknown]" */
	const char *raw;	/* the name in the symbol table; if unknown, the same as `name` */
	uint64_t id;		/* identifies the function in every image */
};

struct pb_symbols *pb_symbols_new(struct pb_data *d);
void pb_symbols_free(struct pb_symbols *s);
/* Sets how names are demangled; the default is PB_DEMANGLE_SIMPLE. To be called before any name
 * is looked up. */
void pb_symbols_demangle(struct pb_symbols *s, enum pb_demangle how);
enum pb_demangle pb_symbols_style(const struct pb_symbols *s);

struct pb_analysis;
/* The checked analysis in modules/NUMBER; NULL: the file is missing or damaged. */
const struct pb_analysis *pb_symbols_module(struct pb_symbols *s, uint32_t number);

/* `image` is an index of data->images. */
struct pb_function pb_symbols_site(struct pb_symbols *s, size_t image, uint32_t site);

/* Writes to buf the name of the function that was at the address at the time `clock`; "MODULE+0x12"
 * if no function is known there; the address in hex if no module is known there. */
void pb_symbols_address(struct pb_symbols *s, size_t image, uint32_t pid, uint64_t clock,
			uint64_t address, char *buf, size_t len);
#endif
