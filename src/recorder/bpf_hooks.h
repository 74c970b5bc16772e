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

/* One attachment of an eBPF program: the functions that a glob matches. */
struct record_hook {
	const char *section;		/* name of the program's section, for messages */
	const char *function;		/* a glob */
	const char *module;		/* path, file name or soname of a module; "": any module */
	uint32_t prog;
	bool returns;
	bool by_path;			/* `module` has a slash: it means the file with the device
					 * `dev` and the inode `ino` */
	dev_t dev;
	ino_t ino;
};

/* Checks that o->hooks can be attached, as far as can be known before the program starts; 0, or 1
 * after one line of error. */
int record_hooks_resolve(struct record_options *o, const struct record_target *t,
			 struct record_modules *m);
/* Sets the bit of each hook that belongs to module m. Returns whether any hook does: if so, m needs
 * sites. */
bool record_hooks_links(const struct record_options *o, const struct record_module *m,
			uint64_t links[PB_MSG_LINKS]);
/* Called at the end. For each hook that was attached nowhere, calls say() with one sentence. */
void record_hooks_never(const struct record_options *o, const struct record_modules *m,
			void (*say)(void *arg, const char *text), void *arg);
/* Reports each hook that was attached nowhere, by a line for the user and a note in the data
 * directory. */
void record_hint_hooks(const struct record_server *s);
#endif
