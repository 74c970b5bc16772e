/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * eBPF programs at functions' entries and returns. They are kprobe programs: their context is the
 * registers at the entry or return. See doc/design/bpf.md, "Attached".
 *
 * A site with programs has FTRACE_FL_REGS. Its handler is pb_prog_entry. (If the site has programs
 * at its return only, no tracer selects it, and it isn't replaced, the handler is pb_watch_entry.)
 * After the programs, pb_prog_entry jumps to the next handler, which the site would have without
 * them. If a program returns 0, the call isn't recorded: the idle handler (pb_site_idle()) runs in
 * place of the next handler. But the handler of set_graph_notrace still runs, because it also keeps
 * the callees unrecorded.
 */
#ifndef PB_ENGINE_PROG_PROG_H
#define PB_ENGINE_PROG_PROG_H
#include <stdbool.h>
#include <stdint.h>
#include "engine/text/text.h"

struct pb_session;
struct pb_open_call;
struct pt_regs;
struct pb_bpf_map;
struct pb_bpf_host;
struct pb_bpf_prog;
struct pb_bpf_prog_stats;

/* Makes the programs in the observer's file, and attaches them to the present modules. Returns 0,
 * or -errno with the reason in *why. Context: start. */
int pb_prog_start(const void *file, uint64_t size, const char **why);
/* Attaches the programs to a module that has arrived. Context: as in text.h. */
void pb_prog_module(struct pb_module *m);
/* Forgets the sites of a module that is about to be removed. Context: as in text.h. */
void pb_prog_module_gone(struct pb_module *m);
/* Whether pc is in a program's native code. */
bool pb_prog_holds(uint64_t pc);
/* Replaces all native code in the agent's image by pages of zeros that can't be executed. Context:
 * pb_renew(), when no program can run any more. */
void pb_prog_forget_code(void);

/* If the signal has interrupted a program's run, defers the signal until the run is over. Returns
 * whether the signal was deferred. in_run: the interrupted PC may be code of a run: it is in the
 * agent or in a program. Context: the signal's handler, before anything else. */
bool pb_prog_defer(int sig, void *siginfo, void *ucontext, bool in_run);

/* For pb_prog_entry(). */
struct pb_prog_target {
	uint64_t address, how;		/* PB_PROG_* */
};
struct prog_site;
struct pb_prog_room {
	struct prog_site *site;		/* NULL: the site has no programs any more */
	uint64_t without;		/* 0: programs may run; otherwise the address at which the
					 * call goes on without them */
};
/* Says whether the site's programs may run at this hit. Context: hit path, with little stack. */
struct pb_prog_room pb_prog_room(struct pb_site *site, uint64_t slot);
/* Runs the programs at an entry. regs: the registers that the assembly saves; the function fills in
 * the rest. Context: hit path, after pb_prog_room(). */
struct pb_prog_target pb_prog_hit(struct prog_site *p, struct pt_regs *regs);
/* Runs the programs at the return of c, and of further calls that return through the same slot. The
 * programs may replace the result in regs. Context: hit path, at the exit. */
void pb_prog_returned(struct pb_open_call *c, struct pt_regs *regs);

/* Whether a run of the calling thread is under way: a handler has interrupted it. sp: a stack
 * pointer of the thread's code. */
bool pb_prog_is_running(uint64_t sp);
/* Called in a forked child that is traced, right after the fork: lets go of the parent's locks.
 * Makes system calls. Context: one thread, all signals blocked. */
void pb_prog_forked(void);
/* Called when no program will run any more. Maps zeros in place of the maps, so that this process
 * no longer counts as one that has them, and a run that still goes on does no harm. */
void pb_prog_leave(void);

/* Whether some programs run at returns. */
extern bool pb_prog_returns;

/* Counts, for the observer, a function to which the link was attached. */
void pb_prog_attached(uint32_t link);
/* Counts a function to which a program wasn't attached, because there was no room. */
void pb_prog_left_out(void);
/* Counts a function to whose return a program wasn't attached, because the return can't be
 * hooked. */
void pb_prog_no_return(void);

/* prog_map.c: maps the file of an eBPF map that another process made. Returns 0 or -errno. */
int pb_prog_map(struct pb_bpf_map *map, const char *path);
/* Gives a forked child a mapping of its own, at the same addresses, if the map's file still exists.
 * The child shares its parent's mapping, and so also the lock of the mapped file. But each process
 * needs a lock of its own, because the lock shows that its process lives. owner: whether the child
 * gets an owner number and a lock. Otherwise it has none. */
void pb_prog_map_again(struct pb_bpf_map *map, const char *path, bool owner);
/* Maps private zeros in place of the map's file, unless the map is a private copy. */
void pb_prog_map_zeros(struct pb_bpf_map *map);
/* prog_host.c: returns the host of attached programs. output: a ring buffer, or NULL; counts: an
 * array of one struct pb_progs_counts, or NULL; maps: the array of all maps. */
const struct pb_bpf_host *pb_prog_host(struct pb_bpf_map *output, struct pb_bpf_map *counts,
				       struct pb_bpf_map *maps);
/* Returns the program's statistics, in memory that the observer reads; NULL: there are none. */
struct pb_bpf_prog_stats *pb_prog_stats(uint32_t prog);
/* If bpf_jit_enable is 2, writes the program's native code as text to the ring buffer `output` of
 * pb_prog_host(). */
void pb_prog_show_code(const struct pb_bpf_prog *prog, uint32_t passes);

/* prog_files.c: registers the control files bpf_jit_enable, bpf_jit_harden, bpf_stats_enabled,
 * unprivileged_bpf_disabled. */
void pb_prog_register_files(void);
#endif
