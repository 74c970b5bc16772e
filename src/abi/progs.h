/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The eBPF programs, maps and links for an agent. They are in one read-only file, which comes with
 * PB_MSG_PROGS.
 *
 *   struct pb_progs | struct pb_progs_map [nr_maps] | struct pb_progs_prog [nr_progs] |
 *   struct pb_progs_link [nr_links] | instructions and functions of the programs
 *
 * Offsets count from the file's beginning. The agent checks the whole file, and verifies the eBPF
 * programs once more. It attaches them before it sets the first tracer. If the agent was loaded at
 * the traced program's start, the program's own code doesn't run yet at this time.
 *
 * Maps are files, which the agent maps by their paths. bpf/map/map_file.h has their format. Texts
 * that programs print, and events for perf_event_arrays, go to the map `output`, which is a ring
 * buffer. Each of its records is a struct pb_progs_output with the text or the event.
 */
#ifndef PB_ABI_PROGS_H
#define PB_ABI_PROGS_H
#include <stdint.h>

#define PB_PROGS_MAGIC		0x31676f7250427062ull
#define PB_PROGS_MAX_MAPS	64
#define PB_PROGS_MAX_PROGS	64
#define PB_PROGS_MAX_LINKS	256
#define PB_PROGS_MAX_INSNS	65536
#define PB_PROGS_NONE		(~0u)
#define PB_PROGS_PATH		256

struct pb_progs {
	uint64_t magic, size;
	uint32_t nr_maps, nr_progs, nr_links;
	uint32_t output;		/* number of the map for output, or PB_PROGS_NONE */
	uint32_t counts;		/* number of an array map whose only element is a struct
					 * pb_progs_counts */
	uint32_t jit_enable, jit_harden, stats;	/* first values of bpf_jit_enable, bpf_jit_harden
						 * and bpf_stats_enabled */
};

struct pb_progs_map {
	char path[PB_PROGS_PATH];
};

struct pb_progs_func {			/* struct pb_bpf_func without its name */
	uint32_t insn;			/* index of the function's first instruction */
	uint8_t global, returns_void, nr_args, pad;
	uint32_t kind[5], size[5];
};

struct pb_progs_prog {
	char name[16];
	uint32_t type, attach_type, gpl, nr, nr_funcs, pad;	/* nr: count of instructions */
	uint64_t insns, funcs;		/* offsets in the file. Instructions name a map by its
					 * number in the file */
};

/* A link: attaches a program to the entry or the return of functions. For each module, struct
 * pb_msg_analysis says which links apply. */
struct pb_progs_link {
	char function[PB_PROGS_PATH];	/* name of a function, or a glob */
	uint32_t prog, returns;		/* returns: 1: at the returns; 0: at the entries */
	uint64_t cookie;
};

/* Counts that agents keep for the observer. */
struct pb_progs_counts {
	uint64_t outputs;		/* outputs that were lost because `output` had no room */
	uint64_t functions;		/* functions whose program wasn't attached because there was
					 * no room */
	uint64_t no_return;		/* functions whose program wasn't attached because their
					 * returns can't be hooked */
	uint64_t runs;			/* entries and returns at which programs weren't run: the
					 * stack had too little room or unknown bounds, the call
					 * couldn't be kept open, the call was skipped, or a tail
					 * jump led to an unknown function, or to one whose return
					 * isn't hooked */
	struct {			/* like struct pb_bpf_prog_stats */
		uint64_t runs, ns;
	} progs[PB_PROGS_MAX_PROGS];	/* counted while bpf_stats_enabled is 1 */
	uint32_t links[PB_PROGS_MAX_LINKS];	/* for each link, the count of functions that it was
						 * attached to, in all processes */
};

enum { PB_PROGS_TEXT = 1, PB_PROGS_EVENT = 2 };
struct pb_progs_output {
	uint32_t kind, map;		/* map: for an event, the number of the event's map in the
					 * file */
	uint32_t pid, tid, cpu, pad;
	uint64_t ns;			/* CLOCK_MONOTONIC */
	uint64_t size;			/* size of the text or event, which follows */
};
#endif
