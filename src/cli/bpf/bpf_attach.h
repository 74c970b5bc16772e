/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * An object whose programs are attached to functions of a program that `record` starts:
 * its maps as files that agents and others open, its programs verified, and the file
 * that describes them to agents (abi/progs.h). The agents verify once more.
 *
 * Context: the recorder's main thread. What returns int: 0, or an exit status after one
 * line.
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
	bool show, bytes;		/* the maps at the end; not by their types */

	struct bpf_session session;
	char dir[BPF_PIN_PATH];		/* of the maps */
	struct pb_bpf_map output, counts;	/* what programs print, and what agents count */
	bool has_output, has_counts;
	bool loaded[PB_PROGS_MAX_PROGS];	/* the object's programs that agents get */
	pthread_t thread;		/* prints */
	void *copy;			/* of a record that is printed */
	bool printing, stop;
};

/* Makes maps and programs, and sets o->hooks. */
int bpf_attach_open(struct bpf_attach *a, struct record_options *o);
/* The file for agents, with what became of o->hooks; from now on output is printed. */
int bpf_attach_publish(struct bpf_attach *a, struct record_options *o);
/* Prints the rest, with what the maps hold if `show` says so, and removes the maps' files. */
void bpf_attach_close(struct bpf_attach *a, struct record_options *o);

/* bpf_output.c: a thread of its own prints, so that the ring buffers don't fill up. */
int bpf_output_start(struct bpf_attach *a);
void bpf_output_end(struct bpf_attach *a);
/* The maps that have something to show. dir: the recording, which names addresses. */
void bpf_output_maps(struct bpf_attach *a, const char *dir);
#endif
