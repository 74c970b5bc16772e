/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Where eBPF programs' functions are. Context: the main thread. */
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

/* A function that an eBPF program is for. */
struct record_hook {
	const char *section;		/* for messages */
	const char *function;		/* a glob */
	const char *module;		/* path, file name, soname, or "": any */
	uint32_t prog;
	bool returns;
	bool by_path;			/* module has a slash: the file of this device and inode */
	dev_t dev;
	ino_t ino;
};

/* Whether o->hooks can be attached, as far as that is known; 0, or 1 after one line. */
int record_hooks_resolve(struct record_options *o, const struct record_target *t,
			 struct record_modules *m);
/* Which of them are for m, a bit each; whether any is: then it has to have sites. */
bool record_hooks_links(const struct record_options *o, const struct record_module *m,
			uint64_t links[PB_MSG_LINKS]);
/* A sentence for each that was attached nowhere, at the end. */
void record_hooks_never(const struct record_options *o, const struct record_modules *m,
			void (*say)(void *arg, const char *text), void *arg);
/* Each eBPF program that was attached nowhere: one line, and a note in the data. */
void record_hint_hooks(const struct record_server *s);
#endif
