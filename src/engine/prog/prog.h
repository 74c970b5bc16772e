/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * eBPF programs at functions' entries and returns: kprobe programs, whose context
 * is the registers there. doc/design/bpf.md, "Attached".
 *
 * A site with programs has FTRACE_FL_REGS, and pb_prog_entry as its handler; the
 * handler that it would have without them is the one that comes next, unless a
 * program returned 0: then the call isn't recorded.
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

/* From the observer's file: programs are made, and attached to the modules that are
 * there. 0 or -errno, *why for people. Context: start. */
int pb_prog_start(const void *file, uint64_t size, const char **why);
/* A module came, or is about to go. Context: as the text's. */
void pb_prog_module(struct pb_module *m);
void pb_prog_module_gone(struct pb_module *m);
/* Is it a program's native code? */
bool pb_prog_holds(uint64_t pc);

/* A signal that comes in the middle of a program's run waits until that is over: true.
 * Context: its handler, before anything else. */
bool pb_prog_defer(int sig, void *siginfo, void *ucontext);

/* For pb_prog_entry(). */
struct pb_prog_target {
	uint64_t address, how;		/* PB_PROG_* */
};
struct prog_site;
struct pb_prog_room {
	struct prog_site *site;
	uint64_t without;		/* 0: programs may run; else where to go on without */
};
/* Context: hit path, with little stack. */
struct pb_prog_room pb_prog_room(struct pb_site *site, uint64_t slot);
/* Context: hit path, after it. regs: what the assembly knows of them. */
struct pb_prog_target pb_prog_hit(struct prog_site *p, struct pt_regs *regs);
/* The call's programs, and those of others that return with it. Context: hit path, at the exit. */
void pb_prog_returned(struct pb_open_call *c, struct pt_regs *regs);

/* Some of them run at returns. */
extern bool pb_prog_returns;

/* A link has got one more function. */
void pb_prog_attached(uint32_t link);
/* A function that a program isn't attached to, for want of room: the observer will say so. */
void pb_prog_left_out(void);
/* The same, because its return can't be hooked. */
void pb_prog_no_return(void);

/* prog_map.c: a map that another process made. 0 or -errno. */
int pb_prog_map(struct pb_bpf_map *map, const char *path);
/* In a forked child, which shares its parent's mapping, and with it the lock that says
 * who lives: it gets one of its own, at the same addresses, if the file is still there. */
void pb_prog_map_again(struct pb_bpf_map *map, const char *path);
/* prog_host.c: what programs meet. output: a ring buffer, or NULL; counts: an array of one
 * struct pb_progs_counts, or NULL. */
const struct pb_bpf_host *pb_prog_host(struct pb_bpf_map *output, struct pb_bpf_map *counts,
				       struct pb_bpf_map *maps);
/* Where the observer sees what it counts; NULL: nowhere. */
struct pb_bpf_prog_stats *pb_prog_stats(uint32_t prog);
/* Its native code goes to the output: bpf_jit_enable 2. */
void pb_prog_show_code(const struct pb_bpf_prog *prog, uint32_t passes);

/* prog_files.c: bpf_jit_enable, bpf_jit_harden, bpf_stats_enabled, unprivileged_bpf_disabled. */
void pb_prog_register_files(void);
#endif
