/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Keeps the modules of the program, with their sites and stubs, and changes their text in batches.
 * Context: start, the loader's hook or the agent's thread, one at a time (pb_text_lock). Look-ups
 * by address also run on the hit path.
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

/* A window of exits: bytes that a patch may overwrite, with one or more exits. If the window is
 * also the window of an entry, the stub of the entry's site contains these exits. */
struct pb_exit_site {
	uint32_t stub;		/* as in struct pb_site */
	uint32_t flags;		/* PB_EXIT_FL_*, and PB_HAS_* (text_priv.h) */
};
#define PB_EXIT_FL_REFUSED	4u	/* refused by the agent */
#define PB_EXIT_FL_WANTED	8u	/* the open batch will patch this window */

struct pb_module {
	const struct pb_analysis *analysis;	/* mapped and checked; an empty analysis if the row
						 * is free */
	uint64_t bias;
	uint64_t link_map;		/* address of the loader's link map; identifies the module
					 * while it is mapped */
	uint32_t first_site;		/* site number of the first function; 0: the module isn't
					 * traced, but its functions may be replaced */
	uint32_t number;		/* the module's number in the session */
	uint64_t links[PB_MSG_LINKS];	/* a bit for each eBPF link (abi/progs.h) that
					 * is for this module */
	struct pb_site *sites;		/* [nr_funcs], or NULL */
	struct pb_returns *returns;	/* the addresses that the stubs of exits jump to; lies next
					 * to the sites in memory */
	struct pb_exit_site *exits;	/* [nr_windows], or NULL */
	bool exits_used;		/* set once a batch has marked exits to be patched */
	const struct pb_stubs *stub_file; /* mapped together with the sites */
	uint8_t *stubs;			/* the code of stub_file, within reach of text and sites */
	size_t stubs_size;
	bool stubs_missed;		/* the stubs came with the analysis, but the process had no
					 * descriptor left for their file */
	bool stubs_placed;		/* the stubs lie at the address that the file is made for */
	bool stubs_used;		/* a stub was made */
	bool stubs_sealed;		/* the stubs are executable */
	bool near;			/* the stubs' head has copies of handlers (arch/arch.h) */
	uint64_t region, region_size;	/* the memory of sites and stubs together */
	struct pb_debugger_entry *jit;	/* debuggers' entry for the stubs, or NULL */
	/* Copied from the analysis, for look-ups without the lock. Such a look-up must not read the
	 * analysis, because another thread may call dlclose, and unmap it at any moment. */
	uint64_t image, image_size;	/* where the module is mapped. The size is 0 if the row is
					 * free */
	uint64_t data, data_size;	/* the extent of the data that stays writable */
	uint32_t nr_funcs;		/* 0 if the row is free */
	bool present;
	bool libc;			/* the module is libc or the loader (doc/design/reads.md) */
	bool lasting;			/* mapped since the start: it is never unmapped */
};

/* The lock is held while text and modules change. Context: any but the hit path. */
void pb_text_lock(void);
void pb_text_unlock(void);
/* Points to the lock: 1 if it is held, otherwise 0. The word lies in memory that is wiped in a
 * forked child. So if a fork copies a lock that another thread holds, the child's lock is free. The
 * pointer is set at the start. */
extern uint32_t *pb_text_lock_word;

extern struct pb_module pb_modules[PB_MAX_MODULES];
extern uint32_t pb_nr_modules;		/* number of rows in pb_modules, published by a release
					 * store. Rows are reused. */

/* Adds a module, which gets its sites later. First checks that the file mapped at bias is the file
 * that was analysed. NULL: the module can't be traced (reason in *why). */
struct pb_module *pb_text_add(const void *analysis, uint64_t size, uint64_t bias,
			      uint64_t link_map, uint32_t first_site, uint32_t number,
			      const char **why);
/* Makes the module's row free. Doesn't unmap anything. */
void pb_text_drop(struct pb_module *m);
/* Asks the recorder for the stubs of a module that has none, and gives the module sites. False: the
 * module still has no stubs. */
extern bool (*pb_text_ask)(struct pb_module *m);
/* Maps the file of stubs, and memory for sites. Returns NULL, or the reason why this isn't
 * possible. */
const char *pb_stubs_map(struct pb_module *m, int fd, uint64_t size);
/* Removes a module that is about to be unmapped. Its text isn't written. `unused` returns true when
 * no thread reads what it found in the module's sites or analysis before they were dropped. If it
 * returns false, they stay mapped. */
void pb_text_remove(struct pb_module *m, bool (*unused)(void));

/* Withdraws all stubs from debuggers, before the stubs are unmapped. Context: renew.c. */
void pb_text_withdraw(void);

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
/* True if the site with this number is a function of libc or of the loader, or of no module. */
bool pb_site_is_of_libc(uint32_t id);
/* True if the bytes lie in the writable data of a module that is never unmapped. */
bool pb_data_is_lasting(uint64_t from, size_t n);

/* Returns the handler of an idle site. The calls of an idle site aren't traced. */
uint64_t pb_site_idle(const struct pb_module *m, const struct pb_site *s);
/* Returns the copy of a handler near the module, or `handler` itself if there is none. The copy may
 * be used only by the module's stubs. */
uint64_t pb_text_near(const struct pb_module *m, uint64_t handler);
/* If pc is in a copy of a handler, returns the same place in the handler itself; else 0. Context:
 * any. */
uint64_t pb_text_not_near(uint64_t pc);

/* A batch. After pb_text_begin(), call pb_text_change() for each site that is to be patched (on) or
 * restored, and then pb_text_commit(). A site is refused (flags, reason) if its bytes differ from
 * the file, or if no stub is in reach. pb_text_commit() returns 0 or -errno. After an error the
 * text is as it was before the batch. But if the threads couldn't be stopped for the undo either,
 * some sites keep their new text. The batch may be tried again. live: other threads may be running,
 * so they are stopped. */
void pb_text_begin(void);
void pb_text_change(struct pb_module *m, struct pb_site *s, bool on);
/* Called after a failed batch. Finds out which jumps of the site the text has, and sets the site's
 * flags FTRACE_FL_ENABLED and FTRACE_FL_SLOT to match. */
void pb_text_look(struct pb_module *m, struct pb_site *s);
static inline bool pb_text_settled(const struct pb_site *s, bool on)
{
	return on ? s->flags & FTRACE_FL_ENABLED :
	       !(s->flags & (FTRACE_FL_ENABLED | FTRACE_FL_SLOT));
}
/* In a batch: replaces the compiled-in calls of m (of mcount and __fentry__) by nops, or (on =
 * false) the nops by the calls. Calls that already have the wanted form, or that a jump has
 * overwritten, are left alone. */
void pb_text_change_nops(struct pb_module *m, bool on);
int pb_text_commit(bool live);
/* Set during a detach, whose batches only restore text: pb_text_change() does nothing for a site
 * that is to be patched, and stubs don't become executable. If memory is short, pb_text_commit()
 * writes the changes for which there was room, and returns -EINPROGRESS. The batch must then be
 * repeated for the rest. */
extern bool pb_text_only_restores;
/* Returns why text couldn't be changed, for users. err: the result of pb_text_commit(), but not
 * -EAGAIN (see pb_stop_why). */
const char *pb_text_why(int err);

/* ---- returns (doc/design/returns.md) ---- */

/* Returns whether the returns of the site's function can be hooked. For this, all exits of the
 * function must be known. If the agent has already found that a window of these exits can't be
 * patched, the result is false. */
bool pb_site_returns(const struct pb_module *m, const struct pb_site *s);
/* Returns whether the returns of the site's function are hooked in the present text. */
bool pb_site_returns_on(const struct pb_module *m, const struct pb_site *s);
/* Sets the addresses that the stubs of exits jump to, in all modules. Before the first call of this
 * function, they jump to the idle code. */
void pb_text_returns(uint64_t ret, uint64_t jump);
/* Called in a batch, before all changes. If all windows of the exits of the site's function can be
 * patched, marks these windows to be patched. */
void pb_text_want_returns(struct pb_module *m, const struct pb_site *s);
/* Like pb_text_want_returns(), but also for the functions to which the site's tail jumps lead, as
 * far as these functions are known. */
void pb_text_want_tails(struct pb_module *m, const struct pb_site *s);
/* Whether the exit whose stub goes on at `from` is a tail jump. Context: hit path. */
bool pb_text_is_tail(uint64_t from);
/* Whether the tail jump whose stub goes on at `from` leads to a function whose returns are all
 * hooked. Context: hit path. */
bool pb_text_tail_returns_on(uint64_t from);
/* Returns whether the site's entry must be patched because of exits. This is so if exits in the
 * entry's window are marked to be patched. It is also so if an exit's jump shares bytes with the
 * entry's jump, and that exit is marked, or is patched already. */
bool pb_text_hosts_returns(const struct pb_module *m, const struct pb_site *s);
/* Called once all windows are marked (pb_text_want_returns()). Adds to the batch those windows
 * whose text differs from the marks. Begins with the window at index *from, and goes up to the
 * link-time address `to`. keep: windows that have a stub stay patched. If windows and sites are
 * added in the order of their addresses, the batch needn't be sorted. */
void pb_text_change_returns(struct pb_module *m, uint32_t *from, uint64_t to, bool keep);
/* Like pb_text_look(), but for all windows of exits of m. Also removes their marks. */
void pb_text_look_returns(struct pb_module *m);

extern uint64_t pb_text_ns;		/* time spent in commits, for READY */

/* Translates pc to an address in the program's original text. The result's `pc` is:
 *
 *   in a stub, at the copy of an instruction: the instruction's original address
 *   in code that the stub inserts before an exit (own = true): the exit's address
 *   before the body of a site's stub (own = true): the window's address, because no instruction
 *     of the window has run yet
 *   at the jump in a trampoline slot, or at the target of a shared jump: the address of the jump
 *     that leads there
 *   anywhere else: 0 */
struct pb_original pb_text_original_pc(uint64_t pc);
/* The opposite of pb_text_original_pc(), for a window that is being patched. If pc is at a
 * displaced instruction, returns the address of that instruction's copy in the stub. If pc is at
 * the jump in a trampoline slot, returns the address of the stub. Otherwise returns 0. */
uint64_t pb_text_moved_pc(uint64_t pc);
/* Like pb_text_moved_pc(), but for text that may not be patched: returns 0 if the jump isn't in the
 * text. */
uint64_t pb_text_displaced_pc(uint64_t pc);
/* If pc is the first address of a window that has a stub, but isn't patched at present, returns the
 * address of the first instruction's copy in the stub. Otherwise returns 0. */
uint64_t pb_text_moved_fault(uint64_t pc);
/* Whether pc is the first address of a window that is patched, or may be patched later. */
bool pb_text_is_window(uint64_t pc);
#endif
