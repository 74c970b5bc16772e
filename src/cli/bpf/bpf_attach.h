/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Attaches an object's eBPF programs to functions of the traced program: one that `record`,
 * `flight` or `bpf trace` starts, or a process to which they attach (-p). The code here
 * runs in the recorder. It makes the object's maps as files, which agents and other processes open,
 * and verifies the eBPF programs. Then it writes the file that describes maps and programs to
 * agents (abi/progs.h). The agents verify the programs again.
 *
 * Context: the recorder's main thread. Functions that return int return 0 on success. After an
 * error, they print a message and return an exit status.
 */
#ifndef PB_CLI_BPF_ATTACH_H
#define PB_CLI_BPF_ATTACH_H
#include <pthread.h>

#include "abi/progs.h"
#include "cli/bpf/bpf_common.h"
#include "recorder/settings.h"
#include "recorder/tasks.h"

#define BPF_SEEN 64

/* Finds the names of threads. Agents give a thread's PID and TID in the traced program's PID
 * namespace. In this command's PID namespace, another thread may have these numbers. Only the
 * thread that prints the output uses this structure; the main thread sets `ring`. */
struct bpf_namer {
	struct record_ring *ring;	/* NULL: there is no ring yet */
	uint64_t until;			/* the time until which the following members are valid */
	bool is_ours;			/* see record_proc_is_ours() */
	struct {
		pid_t pid;
		bool here;		/* a traced process has this PID in this command's PID
					 * namespace */
	} seen[BPF_SEEN];
	bool further;			/* other PID namespaces were searched: `names` is set */
	struct record_names names;
};

struct bpf_attach {
	/* set by the caller; all other members begin as zero */
	const char *command, *path;
	FILE *to;			/* the stream for the output of eBPF programs */
	bool show, bytes;		/* show: print the maps at the end; bytes: print their
					 * elements as bytes, not by types */

	struct bpf_session session;
	char dir[BPF_PIN_PATH];		/* directory of the maps' files */
	struct pb_bpf_map output, counts;	/* output: texts and events of eBPF programs;
						 * counts: the agents' counts */
	bool has_output, has_counts;
	bool loaded[PB_PROGS_MAX_PROGS];	/* true for each of the object's programs that
						 * agents get */
	struct bpf_namer namer;
	pthread_t thread;		/* the thread that prints the output */
	void *copy;			/* copy of the record that is being printed */
	bool damaged[PB_PROGS_MAX_MAPS];	/* true for each ring buffer that is no longer read,
						 * by the map's number in the file for agents */
	bool printing, stop;
};

/* Makes maps and programs, and sets o->hooks. */
int bpf_attach_open(struct bpf_attach *a, struct record_options *o);
/* Writes the file for agents, and begins to print output. Must be called after
 * record_hooks_resolve() has resolved o->hooks. */
int bpf_attach_publish(struct bpf_attach *a, struct record_options *o);
/* Sets the ring of the recording. A process is known to be traced if it maps this ring. `ring` must
 * stay valid until bpf_attach_close(), but the memory of the ring itself may be unmapped. */
void bpf_attach_ring(struct bpf_attach *a, struct record_ring *ring);
/* Prints the rest of the output. If `show` is set and something was recorded, prints the maps'
 * elements too. Removes the maps' files. */
void bpf_attach_close(struct bpf_attach *a, struct record_options *o);

/* In bpf_output.c. A separate thread prints the output, so that the ring buffers don't fill up. */
int bpf_output_start(struct bpf_attach *a);
void bpf_output_end(struct bpf_attach *a);
/* Prints the maps that have elements to show. dir: the recording's directory, from which the names
 * of addresses are taken. */
void bpf_output_maps(struct bpf_attach *a, const char *dir);
#endif
