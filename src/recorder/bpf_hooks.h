/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Finds the functions that eBPF programs attach to. Context: the main thread. */
#ifndef PB_RECORDER_BPF_HOOKS_H
#define PB_RECORDER_BPF_HOOKS_H
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "abi/messages.h"

struct record_module;
struct record_modules;
struct record_options;
struct record_server;
struct record_target;

/* The attachment of an eBPF program to the functions that a glob matches. */
struct record_hook {
	const char *section;		/* name of the program's section, for messages */
	char *function;			/* a glob */
	char *module;			/* path, file name or soname of a module; "" means each
					 * module that has the function and is loaded when the
					 * program starts */
	uint32_t prog;			/* index of the program in its object */
	bool returns;			/* the program runs at the function's return */
	bool by_path;			/* `module` contains a slash. It means the file with the
					 * device `dev` and the inode `ino` */
	dev_t dev;
	ino_t ino;
};

/* Frees o->hooks, and the names of functions and modules in it. */
void record_hooks_free(struct record_options *o);

/* Checks whether o->hooks can be attached, as far as this is known before the program starts.
 * Returns 0. On an error, prints one line and returns 1. */
int record_hooks_resolve(struct record_options *o, const struct record_target *t,
			 struct record_modules *m);
/* Sets the bits in `links` of the hooks that belong to module m, and clears all other bits. Returns
 * true if any hook belongs to m. The caller must then give m sites. */
bool record_hooks_links(const struct record_options *o, const struct record_module *m,
			uint64_t links[PB_MSG_LINKS]);
/* Calls say() with one sentence for each hook that was attached nowhere. To be called at the end of
 * the recording. */
void record_hooks_never(const struct record_options *o, const struct record_modules *m,
			void (*say)(void *arg, const char *text), void *arg);
/* Reports each hook that was attached nowhere. The user gets a line, and the data directory gets a
 * note. */
void record_hint_hooks(const struct record_server *s);
#endif
