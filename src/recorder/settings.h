/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The settings of a recording, from the command line. Context: the main thread sets them before the
 * program runs. After that, it changes only `module_matched` and, at the end, `recorded`,
 * `write_error` and `attached`. */
#ifndef PB_RECORDER_SETTINGS_H
#define PB_RECORDER_SETTINGS_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "control/control.h"
#include "control/resolve.h"

#define RECORD_SNAPSHOT_ON 1

struct record_pattern {
	char option;			/* the option's letter: F, N, C, P or U; or
					 * RECORD_SNAPSHOT_ON */
	const char *text;
	uint64_t ns;			/* RECORD_SNAPSHOT_ON: how long the call must take; 0: each
					 * call asks for a snapshot when it begins */
};

/* --set: a control file, and the text to write there. */
struct record_set {
	enum pb_control_file file;
	const char *value;
};

/* For let_go() in struct record_options: a process that the agent must leave, because a traced
 * process has forked it. */
struct record_let_go {
	pid_t pid;
	const char *agent, *session;	/* paths of the agent and of the recorder's socket */
	uint64_t until;			/* when let_go() gives up (CLOCK_MONOTONIC) */
	const _Atomic uint64_t *limit;	/* a second such time, which may change while let_go() runs;
					 * the earlier of the two counts. May be NULL */
};

struct bpf_attach;
struct pb_open_chunks;
struct record_hook;
struct record_mark;

struct record_options {
	char **argv;			/* the program and its arguments, NULL-terminated */
	const char *dir;		/* path of the data directory */
	uint64_t buffer, max_size;	/* bytes; max_size 0: no limit */
	uint32_t mode;			/* PB_RING_* */
	uint32_t welcome_flags;		/* PB_WELCOME_* */
	bool all, all_sites, serve, quiet, usage_error;
	const char **modules;		/* globs */
	bool *module_matched;		/* [nr_modules] true if the glob matched a module of an
					 * image */
	unsigned nr_modules;
	const char *tracer, *clock;	/* clock: NULL means the default */
	enum pb_match match;
	struct record_pattern *patterns;
	unsigned nr_patterns;
	struct record_set *sets;
	unsigned nr_sets;
	const char *depth, *size;	/* the user's texts, which were checked; NULL: not given */
	char thresh[32];		/* in microseconds; "" if it isn't given */
	struct pb_control_writes writes; /* the control writes that all options need */
	struct record_mark *marks;	/* the patterns that the recorder matches; `writes` has
					 * their marks */
	unsigned nr_marks;
	const char *bpf_object;		/* the path as the user wrote it, or NULL */
	const char **map_sizes;		/* the texts of --map, as the user wrote them */
	unsigned nr_map_sizes;
	const char **globals;		/* the texts of --global, as the user wrote them */
	unsigned nr_globals;
	const char *btf;		/* the text of --btf as the user wrote it, or NULL */
	struct bpf_attach *bpf;		/* eBPF programs, or NULL */
	struct record_hook *hooks;	/* attachments of the eBPF programs; freed with the
					 * options */
	unsigned nr_hooks;
	const uint32_t *attached;	/* [nr_hooks] number of functions that each hook is attached
					 * to, as counted by agents; NULL: not counted */
	int progs_fd;			/* the file with the programs for agents (abi/progs.h) */
	uint64_t progs_size;
	pid_t pid;			/* the process to attach to; 0: a program is started */
	uint64_t for_ns;		/* if pid is set: how long to record; 0: no limit */
	/* Brings the agent into the process. *stop_ns gets the time for which this stopped a thread
	 * of the process. Returns 0, or the exit status after an error line. */
	int (*attach)(const struct record_options *o, const char *agent, const char *session,
		      uint64_t *stop_ns);
	/* Makes the agent leave a process. Returns 0; or -errno after writing one line to err.
	 * -ESRCH: the process has ended, or runs another program. -EINPROGRESS: the agent has begun
	 * to leave, but this takes longer; it must not be asked again. Context: a thread that ends
	 * after the call. */
	int (*let_go)(const struct record_let_go *l, char *err, size_t size);
	bool attach_only;		/* a pid is required: the command starts no program */
	bool children;			/* if pid is set: record the process's children, too */
	/* Called by a separate thread again and again while the recording runs. Before each call,
	 * the thread copies the newest records to the data directory (reader/open_chunks.h), unless
	 * the callback returned false the last time. NULL, or overwrite mode: not called. */
	bool (*round)(void *arg, const struct pb_open_chunks *o);
	void *round_arg;
	/* Called with round_arg when the recording has ended, before the rest of its data is
	 * written; the recorder reads no more signals. NULL: not called. Context: the main
	 * thread. */
	void (*on_end)(void *arg);
	_Atomic bool leave;		/* `round` sets this to end the recording; the processes run
					 * on */
	bool temporary;			/* the data directory is removed at the end */
	/* Called when the attached process is traced. name: the process's name; sites: the number
	 * of functions that can be traced; ns: how long the attach took. */
	void (*on_ready)(struct record_options *o, const char *name, unsigned sites,
			 uint64_t ns);
	unsigned most_snapshots;	/* how many snapshots are taken on request (flight.h); 0:
					 * none */
	int snapshot_signal;		/* the signal by which the recorder is asked for a snapshot;
					 * 0: none */
	int write_error;		/* set at the end: -errno if chunks could not be written */
	bool recorded;			/* set by the recorder if the program ran and there is
					 * data */
};
#endif
