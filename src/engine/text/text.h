/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The program's text: modules with their sites and stubs, and batches of
 * changes to it. Context: start, the loader's hook or the agent's thread, one
 * at a time (pb_text_lock); the look-ups by address also on the hit path.
 */
#ifndef PB_ENGINE_TEXT_TEXT_H
#define PB_ENGINE_TEXT_TEXT_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "abi/analysis.h"
#include "abi/messages.h"
#include "arch/arch.h"

#define PB_MAX_MODULES	1024

/* A window of exits. That of an entry has no stub of its own. */
struct pb_exit_site {
	uint32_t stub;		/* as a site's */
	uint32_t flags;		/* PB_EXIT_FL_*, and what of its jump the text has */
};
#define PB_EXIT_FL_REFUSED	4u	/* by the agent */
#define PB_EXIT_FL_WANTED	8u	/* in the open batch */

struct pb_module {
	const struct pb_analysis *analysis;	/* mapped, checked */
	uint64_t bias;
	uint64_t link_map;		/* the loader's; identifies it while it is mapped */
	uint32_t first_site;		/* 0: names only, no sites */
	uint32_t number;		/* in the session */
	uint64_t links[PB_MSG_LINKS];	/* of eBPF programs, abi/progs.h: those for it */
	struct pb_site *sites;		/* [nr_funcs], or NULL */
	struct pb_returns *returns;	/* where exits' stubs go; beside the sites */
	struct pb_exit_site *exits;	/* [nr_windows], or NULL */
	bool exits_used;		/* some were wanted once */
	const struct pb_stubs *stub_file; /* mapped; with sites */
	uint8_t *stubs;			/* its code, within reach of text and sites */
	size_t stubs_size;
	bool stubs_placed;		/* they lie where the file's code is right */
	bool stubs_used;		/* one was made */
	bool stubs_sealed;		/* executable */
	uint64_t region, region_size;	/* of sites and stubs together */
	struct pb_debugger_entry *jit;	/* what debuggers know of the stubs, or NULL */
	bool present;
	bool libc;			/* or the loader: see doc/design/reads.md */
	bool lasting;			/* there since the start: it isn't unmapped */
};

/* Held while text and modules change. Not on a hit. */
void pb_text_lock(void);
void pb_text_unlock(void);
/* Where the process' PID stands, 0 while it isn't known. Set at start. */
extern const uint32_t *pb_text_pid;

extern struct pb_module pb_modules[PB_MAX_MODULES];
extern uint32_t pb_nr_modules;		/* published by release store; slots are reused */

/* Checks that the analysis is of what is mapped at bias. It has no sites yet. NULL: can't
 * be traced (reason in *why). */
struct pb_module *pb_text_add(const void *analysis, uint64_t size, uint64_t bias,
			      uint64_t link_map, uint32_t first_site, uint32_t number,
			      const char **why);
/* Asks the recorder for the stubs of a module that has none, and gives it sites; whether it has. */
extern bool (*pb_text_ask)(struct pb_module *m);
/* Maps them, and memory for sites. Returns why not, or NULL. */
const char *pb_stubs_map(struct pb_module *m, int fd, uint64_t size);
/* It is about to be unmapped: no text is written. */
void pb_text_remove(struct pb_module *m);

static inline const struct pb_func *pb_site_func(const struct pb_module *m,
						 const struct pb_site *s)
{
	return (const struct pb_func *)((const char *)m->analysis + m->analysis->funcs_offset) +
	       (s - m->sites);
}
struct pb_module *pb_site_module(const struct pb_site *s);
struct pb_module *pb_module_at(uint64_t text_address);
bool pb_in_stub(uint64_t pc);
struct pb_site *pb_site_by_id(uint32_t id);

/* Where the call goes when nothing is hooked: handler of an idle site. */
uint64_t pb_site_idle(const struct pb_module *m, const struct pb_site *s);

/* A batch: pb_text_change() for each site that is to be patched (on) or put
 * back, then pb_text_commit(). Sites are refused (flags, reason) if their
 * bytes differ from the file or no stub is in reach. live: other threads may
 * be running; they are stopped. Returns 0 or -errno: then the text is as it was,
 * but for sites whose way back was barred too, and it may be tried again. */
void pb_text_begin(void);
void pb_text_change(struct pb_module *m, struct pb_site *s, bool on);
/* Asked when a batch failed: what of the site's jump the text has, as its flags
 * FTRACE_FL_ENABLED and FTRACE_FL_SLOT. */
void pb_text_look(struct pb_module *m, struct pb_site *s);
static inline bool pb_text_settled(const struct pb_site *s, bool on)
{
	return on ? s->flags & FTRACE_FL_ENABLED :
	       !(s->flags & (FTRACE_FL_ENABLED | FTRACE_FL_SLOT));
}
/* The compiled-in calls of m: nops, or (on = false) back. Those that are so
 * already, or stand under a jump, are left alone. */
void pb_text_change_nops(struct pb_module *m, bool on);
int pb_text_commit(bool live);

/* ---- returns (doc/design/returns.md) ---- */

/* Can the returns of the site's function be hooked? Its exits are all known, and the
 * agent could patch their windows as far as it has tried. */
bool pb_site_returns(const struct pb_module *m, const struct pb_site *s);
/* And are they, in the text as the batches have left it? */
bool pb_site_returns_on(const struct pb_module *m, const struct pb_site *s);
/* Where the stubs of exits go from now on, in all modules: the idle code at
 * first. */
void pb_text_returns(uint64_t ret, uint64_t jump);
/* In a batch, first: the windows of the site's exits are to be patched, if they all can
 * be. */
void pb_text_want_returns(struct pb_module *m, const struct pb_site *s);
/* The same; and of the functions that it leaves to by tail jumps, as far as those can be known. */
void pb_text_want_tails(struct pb_module *m, const struct pb_site *s);
/* Of the exit whose stub goes on at `from`: whether it is a tail jump, and whether one to a
 * function all of whose returns are hooked. Context: hit path. */
bool pb_text_is_tail(uint64_t from);
bool pb_text_tail_returns_on(uint64_t from);
/* Whether the site's own window is one of those; then it is to be patched as well. */
bool pb_text_hosts_returns(const struct pb_module *m, const struct pb_site *s);
/* Then: adds windows that differ from what was wanted; from the one with index *from
 * up to those before link-time address `to`. keep: those that have a stub are kept
 * patched. In the order of addresses with the sites, the batch needn't be sorted. */
void pb_text_change_returns(struct pb_module *m, uint32_t *from, uint64_t to, bool keep);
/* As pb_text_look(), of all windows. */
void pb_text_look_returns(struct pb_module *m);

extern uint64_t pb_text_ns;		/* spent in commits, for READY */

/* If pc lies in a stub: the original address of the instruction there, or the
 * function's entry while the stub's own code runs (*own = true) or a jump to it
 * in a slot or in between (registers are as at the entry). 0 if not. */
uint64_t pb_text_original_pc(uint64_t pc, bool *own);
/* The other way: where in its stub the displaced instruction at this address
 * lives, if the site is being patched; the stub, if it is a slot. 0 if none. */
uint64_t pb_text_moved_pc(uint64_t pc);
#endif
