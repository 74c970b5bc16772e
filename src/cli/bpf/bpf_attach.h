/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Attaches an object's eBPF programs to functions of the program that `record` starts. Makes the
 * object's maps as files, which agents and other processes open, verifies the eBPF programs, and
 * writes the file that describes both to agents (abi/progs.h). The agents verify once more.
 *
 * Context: the recorder's main thread. Functions that return int return 0, or an exit status after
 * one line of error.
 */
#ifndef PB_CLI_BPF_ATTACH_H
#define PB_CLI_BPF_ATTACH_H
#include <pthread.h>

#include "abi/progs.h"
#include "cli/bpf/bpf_common.h"
#include "recorder/settings.h"

struct bpf_attach {
	/* set by the caller; the rest zero */
	const char *command, *path;
	FILE *to;			/* where programs' output is printed */
	bool show, bytes;		/* show: print the maps at the end; bytes: as bytes, not by
					 * types */

	struct bpf_session session;
	char dir[BPF_PIN_PATH];		/* directory of the maps' files */
	struct pb_bpf_map output, counts;	/* output: what programs print. counts: what agents
						 * count */
	bool has_output, has_counts;
	bool loaded[PB_PROGS_MAX_PROGS];	/* the object's programs that agents get */
	pthread_t thread;		/* prints the output */
	void *copy;			/* copy of the record that is being printed */
	bool printing, stop;
};

/* Makes maps and programs, and sets o->hooks. */
int bpf_attach_open(struct bpf_attach *a, struct record_options *o);
/* Writes the file for agents, with o->hooks as they were resolved, and begins to print output. */
int bpf_attach_publish(struct bpf_attach *a, struct record_options *o);
/* Prints the rest of the output and, if `show`, the maps' elements. Removes the maps' files. */
void bpf_attach_close(struct bpf_attach *a, struct record_options *o);

/* bpf_output.c. A thread of its own prints the output, so that the ring buffers don't fill up. */
int bpf_output_start(struct bpf_attach *a);
void bpf_output_end(struct bpf_attach *a);
/* Prints the maps that have something to show. dir: the directory of the recording, which has the
 * names of addresses. */
void bpf_output_maps(struct bpf_attach *a, const char *dir);
#endif
