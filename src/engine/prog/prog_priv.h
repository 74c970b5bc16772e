/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Declarations that the files of this folder share: sites with programs, runs of programs at hits,
 * and the observer's file of programs. */
#ifndef PB_ENGINE_PROG_PROG_PRIV_H
#define PB_ENGINE_PROG_PROG_PRIV_H
#include <stddef.h>
#include "arch/arch.h"
#include "base/base.h"
#include "bpf/core/program.h"

#define PB_PROG_AT_ONE	8		/* largest number of programs at a site's entry, and of
					 * programs at its return */

/* A site with programs. pb_prog_sites[] leads to it from the address of the struct pb_site, without
 * a lock. */
struct prog_site {
	struct pb_site *site;		/* stored last; GONE (prog.c): the site's module is gone */
	uint64_t call;			/* what the assembly stores in an open call from O_SITE to
					 * O_WATCH */
	uint64_t ip, next, idle;	/* ip: the function's address; next: the handler after
					 * pb_prog_entry(); idle: the handler that the site would
					 * have if it were disabled */
	uint32_t number;		/* the site's number in records */
	uint32_t room;			/* bytes of the thread's stack that each of the programs
					 * may need; at least PB_PROG_ROOM */
	uint16_t watch;			/* the ID of this struct, which open calls have as their
					 * `watch`; > 0 and < PB_WATCH_BELOW */
	uint32_t nr_entry, nr_return;
	const struct link *entry[PB_PROG_AT_ONE], *at_return[PB_PROG_AT_ONE];
};

_Static_assert(offsetof(struct prog_site, site) == P_SITE, "layout.h");
_Static_assert(offsetof(struct prog_site, call) == P_CALL, "layout.h");

/* Hash table of all sites with programs, by the address of the struct pb_site. */
extern struct prog_site *pb_prog_sites[];

/* A run of a program at a hit. */
struct pb_prog_run {
	uint64_t frame;			/* pb_prog_call() sets it, for unwinders */
	struct pb_bpf_run run;
	const struct prog_site *at;	/* the site that was hit */
	uint64_t value;			/* the value that bpf_override_return() has set at an
					 * entry */
	bool overridden;
	bool at_entry;			/* the hit is at an entry: the stack pointer points to the
					 * return address */
	struct pb_prog_open *open;	/* NULL: the run is nested too deeply (MOST_NESTED in
					 * prog_run.c) */
};

_Static_assert(offsetof(struct pb_prog_run, run) == 8, "prog_call.S");

static inline struct pb_prog_run *pb_prog_run_of(struct pb_bpf_run *run)
{
	return pb_container_of(run, struct pb_prog_run, run);
}

/* prog_load.c. Context: start. */
struct pb_progs;
struct pb_prog_file {
	const struct pb_progs *head;
	const struct pb_progs_map *maps;
	const struct pb_progs_prog *progs;
	const struct pb_progs_link *links;
	uint64_t size;
};
bool pb_prog_file_check(struct pb_prog_file *f, const void *p, uint64_t size);
/* After this call, new native code goes into the agent's own image as long as there is room.
 * Unwinders can unwind through native code in this image. */
void pb_prog_use_pages(void);
struct pb_bpf_host;
/* Verifies and makes the program with number nr in the file. host: the host of attached programs.
 * Returns 0, or -errno with the reason in *why. */
int pb_prog_make(const struct pb_prog_file *f, uint32_t nr, const struct pb_bpf_host *host,
		 struct pb_bpf_map *maps, uint32_t nr_maps, struct pb_bpf_prog **prog,
		 const char **why);

/* prog_run.c: pb_prog_open() notes that a run begins, at a hit with this return slot. All code of
 * the run has its frames below *run, which lies below the slot. run->open is set before the run is
 * in the thread's list of runs, and stays until the run ends. pb_prog_open() returns
 * PB_PROG_NOT_READY if the run must be left out, because another thread is still preparing the
 * forked child for runs. pb_prog_close() notes that the run has ended. Context: hit path. */
#define PB_PROG_NOT_READY	((struct pb_prog_open *)1)
struct pb_thread;
/* Called before the first run. Returns 0 or -errno. forked: maps the memory of the eBPF maps again;
 * it is called once in a forked child, before the child's first run, unless the process has set a
 * seccomp filter. All signals are blocked, so it must not fault. */
int pb_prog_runs_start(void (*forked)(void));
/* Whether runs are possible: a forked child has been prepared. */
bool pb_prog_runs_ready(void);
struct pb_prog_open *pb_prog_open(const struct pb_thread *t, uint64_t slot,
				  struct pb_prog_run *run);
void pb_prog_close(const struct pb_thread *t, struct pb_prog_open *o);
/* Takes a per-CPU slot that no other run has, out of nr slots (nr > 0). If all slots are taken,
 * returns the last slot. */
uint32_t pb_prog_cpu_slot(struct pb_prog_open *o, uint32_t cpu, uint32_t nr);
/* Called before and after a run calls the vDSO. In between, a signal that interrupts the vDSO
 * counts as one that interrupts the run's own code. */
void pb_prog_vdso_begin(struct pb_bpf_run *run);
void pb_prog_vdso_end(struct pb_bpf_run *run);
/* Functions for struct pb_bpf_host: they note what a run takes and gives back. */
void pb_prog_takes(struct pb_bpf_run *run, struct pb_bpf_map *map, void *what, uint64_t word);
void pb_prog_gives(struct pb_bpf_run *run, void *what);
#endif
