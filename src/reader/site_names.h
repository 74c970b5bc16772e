/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Finds the names of site numbers and addresses in the analyses of the data directory (modules/N).
 * A name is read and demangled when it is first needed.
 *
 * Context: the observer, one thread. Strings are valid until pb_symbols_free(). After
 * pb_symbols_move(), the new symbols own the functions' names.
 */
#ifndef PB_READER_SITE_NAMES_H
#define PB_READER_SITE_NAMES_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "module/demangle.h"

struct pb_data;
struct pb_symbols;

struct pb_function {
	const char *name;	/* the name to display; if it is unknown, "site:N", or rarely "?" */
	const char *module;	/* the module's soname, or "[unknown]" */
	const char *raw;	/* the name in the symbol table; if it is unknown, the same as
				 * `name` */
	uint64_t id;		/* a number that identifies the function; it is the same in all
				 * images */
};

struct pb_symbols *pb_symbols_new(struct pb_data *d);
void pb_symbols_free(struct pb_symbols *s);
/* Sets how names are demangled; the default is PB_DEMANGLE_SIMPLE. Must be called before any name
 * is looked up. */
void pb_symbols_demangle(struct pb_symbols *s, enum pb_demangle how);
enum pb_demangle pb_symbols_style(const struct pb_symbols *s);
/* Makes `to`, which are new symbols, those of from's data, with the same style. They get the
 * analyses and names that `from` has loaded. After that, `from` may only be freed. */
void pb_symbols_move(struct pb_symbols *to, struct pb_symbols *from);
/* Returns true if analyses couldn't be loaded because this process was short of descriptors or
 * memory. They are then loaded when they are next needed. Until this call, their functions have no
 * names, so that functions that have numbers (view/site_numbers.h) keep them during a round. */
bool pb_symbols_again(struct pb_symbols *s);

struct pb_analysis;
/* Returns the checked analysis in modules/NUMBER, or NULL if the file is missing or damaged. */
const struct pb_analysis *pb_symbols_module(struct pb_symbols *s, uint32_t number);

/* Returns the function of a site. `image` is an index in data->images. */
struct pb_function pb_symbols_site(struct pb_symbols *s, size_t image, uint32_t site);

/* Writes to buf the name of the function that was at the address at the time `clock`. If no
 * function is known at the address, writes "MODULE+0x12". If no module is known at the address,
 * writes the address in hex. */
void pb_symbols_address(struct pb_symbols *s, size_t image, uint32_t pid, uint64_t clock,
			uint64_t address, char *buf, size_t len);
/* Like pb_symbols_address(), but writes the name of the function that made the call with this
 * return address. */
void pb_symbols_caller(struct pb_symbols *s, size_t image, uint32_t pid, uint64_t clock,
		       uint64_t address, char *buf, size_t len);
#endif
