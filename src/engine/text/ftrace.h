/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A struct ftrace_ops ("ops") stands for one tracer, with filters for the functions that it traces.
 * Several ops may be registered at a time. If only one ops selects a site, and this ops has a
 * trampoline, the site's handler is what the trampoline function returns. If several ops select the
 * site, or the only one has no trampoline, the handler calls the list function.
 * Context: start, the loader's hook or the agent's thread, one at a time.
 */
#ifndef PB_ENGINE_TEXT_FTRACE_H
#define PB_ENGINE_TEXT_FTRACE_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "arch/arch.h"
#include "engine/files.h"
#include "engine/text/text.h"

/* A filter: a list of patterns in the order in which they were written. The forms are "name",
 * "glob*", "!name" (takes functions out), "glob:mod:module" and "glob:mod:!module". For each
 * function, the patterns are applied in the order of the list. The filter keeps the patterns, not
 * the functions that they match, so it also applies to modules that arrive later. */
struct ftrace_hash {
	struct pb_pattern *first, *last;
};

struct ftrace_ops;
typedef void ftrace_func(struct pb_site *site, uint64_t parent_ip, struct ftrace_ops *op);

struct ftrace_ops {
	const char *name;
	/* called from the list function; parent_ip: the return address */
	ftrace_func *func;
	/* returns the handler of a site that only this ops selects; 0: nothing is done at the
	 * site's hits. NULL: such a site has the handler pb_list */
	uint64_t (*trampoline)(struct pb_module *m, struct pb_site *site);
	/* for the list function: how the graph tracer enters a call; NULL: this ops doesn't
	 * hook returns */
	unsigned (*graph_mode)(struct pb_module *m, struct pb_site *site);
	/* whether the function's site gets FTRACE_FL_CALLER; NULL: it doesn't */
	bool (*caller)(const struct pb_module *m, uint32_t func);
	bool timed;		/* pb_call_ended() must get this ops' calls at their ends */
	struct ftrace_hash filter, notrace;
	struct ftrace_ops *next;
};

/* Whether the ops selects the function. Context: also the hit path. */
bool pb_ftrace_wants(const struct ftrace_ops *op, const struct pb_module *m, uint32_t func);

/* Returns 0 or -errno. After an error everything is as it was. */
int register_ftrace_function(struct ftrace_ops *ops, bool live);
int unregister_ftrace_function(struct ftrace_ops *ops, bool live);
/* Replaces old (or NULL) by new (or NULL). Sites that both ops select keep their jump. */
int pb_ftrace_exchange(struct ftrace_ops *old, struct ftrace_ops *new, bool live);
/* Returns the handler of a site with eBPF programs (FTRACE_FL_REGS). A function of prog.c; NULL
 * until a site needs it. next: the handler that the site would have without programs. idle: the
 * handler that the site would have if it were disabled. Context: as in text.h. */
extern uint64_t (*pb_ftrace_regs)(struct pb_site *site, uint64_t next, uint64_t idle);

/* Called after hashes or options have changed, or a module has arrived. Updates text and handlers.
 * Returns 0 or -errno. After an error the text is as it was. The caller must then undo its change
 * to hashes or options, and call this function again. */
int pb_ftrace_update(bool live);
/* Removes all ops. The text is again as in the file, with two exceptions: replaced functions, and
 * the compiler's calls of mcount and __fentry__, which stay nops. */
int pb_ftrace_stop(bool live);
/* Called after pb_ftrace_stop(): restores the text of the replaced functions, too. */
int pb_ftrace_undo(bool live);
/* Finds out which jumps the text has, and sets the flags of all sites and windows to match. */
void pb_ftrace_look(void);
/* Like pb_ftrace_update(), but for one module, whose code no thread runs yet. */
int pb_ftrace_update_module(struct pb_module *m, bool live);

/* Changes the hash as a write of `text` to set_ftrace_filter does. If `live` is set, returns
 * -EINVAL for a word that matches no function. At the start a word may match no function, because
 * modules may arrive later. */
int pb_hash_write(struct ftrace_hash *h, char *text, bool append, bool live);
/* Sets h back to `before`, which is an earlier copy of h. This undoes all writes since the copy was
 * made. */
void pb_hash_restore(struct ftrace_hash *h, struct ftrace_hash before);
bool pb_hash_empty(const struct ftrace_hash *h);
bool pb_hash_has(const struct ftrace_hash *h, const struct pb_module *m, uint32_t func);
void pb_hash_show(const struct ftrace_hash *h, struct pb_seq *s, const char *if_empty);

/* Returns the address of a function of m that has this name, also as an alias; 0: there is none. */
uint64_t pb_function_named(const struct pb_module *m, const char *name);
bool pb_function_has_name(const struct pb_module *m, const struct pb_func *f, const char *name);
/* Replaces the function at the address by `body`. ends: where the call's end is seen.
 * FTRACE_FL_ENDS: at the return of `body`. FTRACE_FL_PASSES: at the original's exits, to which
 * `body` jumps. 0: nowhere. Returns the address for calls of the original; 0: the function can't be
 * replaced. */
uint64_t pb_ftrace_replace_at(struct pb_module *m, uint64_t address, const void *body,
			      uint64_t ends);

/* The list function: calls `func` of each ops that selects the site. It doesn't call the graph
 * tracer, but returns how the graph tracer enters the call (PB_ENTER_*). PB_ENTER_LIST: the graph
 * tracer doesn't enter the call. Context: hit path. */
unsigned pb_ftrace_list(struct pb_site *site, uint64_t parent_ip);
/* Whether a site has FTRACE_FL_CALLER. Context: hit path. */
bool pb_site_is_caller(uint32_t id);
/* Whether a site has FTRACE_FL_GOES_ON. Context: hit path. */
bool pb_site_goes_on(uint32_t id);

/* Counts for READY and dyn_ftrace_total_info. */
struct pb_ftrace_totals {
	uint32_t sites, patched, refused, modules;
};
struct pb_ftrace_totals pb_ftrace_totals(void);
void pb_ftrace_totals_add(struct pb_ftrace_totals *t, const struct pb_module *m);

extern uint32_t pb_min_size;	/* set_ftrace_size */
extern bool pb_keep_patched;	/* idle sites keep their jump */
void pb_ftrace_register_files(void);
#endif
