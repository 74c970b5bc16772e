/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The recorder's parts. cmd-record.c reads the options and calls them in order:
 *
 *   record_target   which program, and whether it can be traced
 *   record_ring     the shared memory
 *   record_session  the directory with the agents' socket; the environment
 *   record_ahead    analyses that are made before they are asked for
 *   record_known    which modules there will be
 *   record_hooks    where eBPF programs' functions are
 *   record_filters  whether the patterns match anything, before anything runs
 *   record_marks    patterns that the recorder matches for the agents
 *   record_modules  analyses, module numbers, site numbers
 *   record_listen   accepts agents
 *   record_server   the conversation with them (abi/messages.h)
 *   record_serve    control files for `patchbay control`
 *   record_conn     messages to agents and clients
 *   record_proc     what /proc says of one process
 *   record_procs    which processes are traced
 *   record_tasks    threads by the numbers that engines know them by
 *   record_threads  their names
 *   record_run      start, loop
 *   record_end      what is written and said at the end
 *   record_hints    why a recording shows less than was expected
 *   record_text     numbers and errors
 *
 * Errors for the user go through record_error(), one line each.
 */
#ifndef PB_RECORD_H
#define PB_RECORD_H
#include <limits.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>
#include "abi/analysis.h"
#include "abi/messages.h"
#include "abi/ring.h"
#include "cli/record_proc.h"
#include "control/control.h"
#include "control/resolve.h"
#include "reader/drain.h"
#include "reader/datadir.h"

struct record_pattern {
	char option;			/* F N C P U */
	const char *text;
};

/* --set: a control file, and what is written there. */
struct record_set {
	enum pb_control_file file;
	const char *value;
};

/* A function that an eBPF program is for. */
struct record_hook {
	const char *section;		/* for messages */
	const char *function;		/* a glob */
	const char *module;		/* path, file name, soname, or "": any */
	uint32_t prog;
	bool returns;
	bool by_path;			/* module has a slash: the file of this device and inode */
	dev_t dev;
	ino_t ino;
};

/* A pattern that the recorder matches for the agents. */
struct record_mark {
	enum pb_match match;
	char *pattern;			/* without ! */
	const char *module;		/* behind its :mod:, which is cut off; or NULL */
	char text[192];			/* what stands for it in control files: "=ns::*" */
};

struct bpf_attach;
struct stat;
struct record_options {
	char **argv;			/* the program and its arguments, NULL-terminated */
	const char *dir;
	uint64_t buffer, max_size;
	uint32_t mode;			/* PB_RING_* */
	uint32_t welcome_flags;		/* PB_WELCOME_* */
	bool all, all_sites, serve, quiet, usage_error;
	const char **modules;		/* globs */
	bool *module_matched;		/* [nr_modules] it matched a module of an image */
	unsigned nr_modules;
	const char *tracer, *clock;	/* clock NULL: the default */
	enum pb_match match;
	struct record_pattern *patterns;
	unsigned nr_patterns;
	struct record_set *sets;
	unsigned nr_sets;
	const char *depth, *size;	/* as given, checked; NULL: not given */
	char thresh[32];		/* in microseconds; "" not given */
	struct pb_control_writes writes; /* what all of it comes to */
	struct record_mark *marks;	/* that they name */
	unsigned nr_marks;
	const char *bpf_object;		/* as given, or NULL */
	const char **map_sizes;		/* --map, as given */
	unsigned nr_map_sizes;
	const char **globals;		/* --global, as given */
	unsigned nr_globals;
	const char *btf;		/* --btf, as given, or NULL */
	struct bpf_attach *bpf;		/* eBPF programs, or NULL */
	struct record_hook *hooks;	/* what they are for; freed with the options */
	unsigned nr_hooks;
	const uint32_t *attached;	/* [nr_hooks] to how many functions; agents count; NULL: nobody does */
	int progs_fd;			/* for agents, abi/progs.h */
	uint64_t progs_size;
	bool recorded;			/* out: the program ran, there is data */
};

/* --- text --- */
int record_error(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
const char *record_base_name(const char *path);
void record_format_number(uint64_t n, char *buf, size_t len);	/* 1,234,567 */
void record_format_bytes(uint64_t n, char *buf, size_t len);	/* 9.9 MB */
/* As a shell takes it. */
void record_print_quoted(FILE *f, const char *arg);
/* SIZE with K, M, G, T; 0 or -EINVAL */
int record_parse_size(const char *text, uint64_t *size);

/* --- target --- */
struct record_target {
	char path[PATH_MAX];	/* what is executed */
	char exe[PATH_MAX];	/* the ELF file: the interpreter, where path is a script */
	char loader[PATH_MAX];	/* its dynamic loader */
};
/* 0, or the exit status after one line: 127 not found, 126 can't be traced. */
int record_target_resolve(struct record_target *t, const char *prog);

/* --- ring --- */
struct record_ring {
	int fd;
	struct pb_ring *map;
	struct pb_ring geometry;
	dev_t dev;
	ino_t ino;
	_Atomic bool unlocked;	/* an agent has no file of its own: record_procs_share() */
	_Atomic bool nested;	/* a traced process was seen in another pid namespace */
};
#define RECORD_NR_THREADS 65536
int record_ring_create(struct record_ring *r, uint64_t buffer, uint32_t mode);
/* The ring's table of threads: untrusted. */
const struct pb_ring_thread *record_ring_thread(const struct record_ring *r, uint32_t i);
uint32_t record_ring_nr_threads(const struct record_ring *r);

/* --- session --- */
struct record_session {
	char dir[96];
	char sock[108];
	char control[108];	/* "" without --serve */
	int listen_fd, control_fd;
	int lock_fd;		/* of dir, held while the session lives; -1: none */
	char agent[PATH_MAX];	/* path for LD_PRELOAD */
};
int record_session_open(struct record_session *s, bool serve);
int record_session_find_agent(struct record_session *s);
void record_session_close(struct record_session *s);
/* The directory for a new session's directory, made if need be; 0 or -errno. */
#define RECORD_BASE 72
int record_session_base(char base[RECORD_BASE]);
/* Calls visit with the `control' socket of each session of this user that has one, until it
 * returns true. Some may be of recorders that were killed. */
void record_session_each(bool (*visit)(void *arg, const char *control), void *arg);
/* environ with the agent's variables last; to be freed with free(). */
char **record_session_environ(const struct record_session *s);

/* --- ahead --- */
struct record_ahead;
/* Begins to analyse the program and its libraries, in threads; NULL: it can't. */
struct record_ahead *record_ahead_start(const struct record_options *o, const struct record_target *t);
/* The program (0) and the libraries that it is linked with; NULL: no more. May
 * wait for the list. */
const char *record_ahead_path(struct record_ahead *a, unsigned i);
/* How the modules are analysed: PB_MODULE_*. */
unsigned record_module_flags(const struct record_options *o);
/* A descriptor of the file's analysis if one was made (may wait for it), or -1. */
int record_ahead_take(struct record_ahead *a, const struct stat *st, const char *path);
/* On the program's first start until all is analysed: then its agent never waits. */
void record_ahead_wait(struct record_ahead *a);
void record_ahead_stop(struct record_ahead *a);

/* --- modules --- */
struct record_module {
	uint32_t number;	/* index + 1 */
	char *path;
	dev_t dev;
	ino_t ino;
	int64_t ctime_ns;
	int fd;			/* analysis */
	const struct pb_analysis *map;
	uint64_t size;
	bool traced;			/* in one image at least */
	bool marked;			/* record_marks_apply() has seen it */
	int marked_fd;			/* for agents in place of fd; -1: no mark is for it */
	uint64_t marked_size;
	uint64_t links[PB_MSG_LINKS];	/* hooks of any module that are for this one, a bit each */
};
struct record_modules {
	struct record_module **list;
	uint32_t nr;
	const struct record_options *options;
	struct record_ahead *ahead;	/* or NULL */
	struct pb_datadir *datadir;	/* NULL: nothing is written yet */
};
/* The module behind elf_fd; makes the analysis the first time. NULL with a
 * reason in err. */
struct record_module *record_module_get(struct record_modules *m, int elf_fd, const char *path,
					char *err, size_t errlen);
/* Writes those that were looked at before the data directory was there. */
int record_modules_write(struct record_modules *m, struct pb_datadir *w);
bool record_module_traced(const struct record_options *o, const struct record_module *m,
			  bool is_exe);
void record_modules_free(struct record_modules *m);

/* --- known --- */
#define RECORD_MAX_LIBRARIES 512
struct record_known {
	struct record_module *list[RECORD_MAX_LIBRARIES + 1];	/* the executable first */
	unsigned nr;
};
/* The executable, and the libraries that it is linked with; to be freed. NULL after
 * one line. */
struct record_known *record_known_modules(const struct record_target *t, struct record_modules *m,
					  bool libraries);
/* One file; NULL with a reason in err. */
const struct record_module *record_known_file(struct record_modules *m, const char *path, char *err, size_t errlen);

/* --- hooks --- */
/* Whether o->hooks can be attached, as far as that is known; 0, or 1 after one line. */
int record_hooks_resolve(struct record_options *o, const struct record_target *t,
			 struct record_modules *m);
/* Which of them are for m, a bit each; whether any is: then it has to have sites. */
bool record_hooks_links(const struct record_options *o, const struct record_module *m, uint64_t links[PB_MSG_LINKS]);
/* A sentence for each that was attached nowhere, at the end. */
void record_hooks_never(const struct record_options *o, const struct record_modules *m,
			void (*say)(void *arg, const char *text), void *arg);

/* --- filters --- */
/* Why a function isn't traced: PB_REFUSED_*. */
const char *record_refused_text(int reason);
/* Checks and resolves the patterns of o against the program and the libraries
 * that it is linked with, and makes o->writes of all options. 0, or 1 after one
 * line. */
int record_filters_resolve(struct record_options *o, const struct record_target *t,
			   struct record_modules *m);

/* --- marks --- */
/* A word for a control file of functions, to be freed: it stands for the pattern, with
 * its ! and :mod:. NULL: no memory, or (E2BIG) too many. */
char *record_marks_add(struct record_options *o, enum pb_match match, const char *pattern);
/* Makes the module's analysis for agents, if a pattern matches there; 0 or -errno. */
int record_marks_apply(const struct record_options *o, struct record_module *m);
void record_marks_free(struct record_options *o);

/* --- server --- */
struct record_image;
struct record_conn;
struct record_server {
	const struct record_options *options;
	struct record_session *session;
	struct record_ring *ring;
	struct pb_datadir *datadir;
	struct record_modules *modules;
	struct record_conn **conns;
	unsigned nr_conns;
	struct record_image **images;
	uint32_t nr_images;
	unsigned ready;			/* images that said READY */
	bool agent_error;		/* the first image refused a control write */
	unsigned shown;			/* lines printed for agents */
	struct record_listener *listener;	/* NULL: agents are accepted by who polls */
};
struct pollfd;
/* Agents are accepted, and get the ring, whatever else the recorder does: by a thread
 * of its own, until the stop. From then on who connects is refused. 0 or -errno. */
int record_listen_start(struct record_server *s);
void record_listen_stop(struct record_server *s);
/* Fills fds (at least nr_conns + 2); returns how many. */
unsigned record_server_poll(struct record_server *s, struct pollfd *fds);
#define RECORD_MAX_CONNS 1000
void record_server_handle(struct record_server *s, const struct pollfd *fds, unsigned nr);
void record_server_close(struct record_server *s);
/* An image by its number; NULL if there is none. */
const struct record_image *record_server_image(const struct record_server *s, uint32_t image);

/* --- processes --- */
/* The ring's file for one agent, to be sent, and closed if it isn't r->fd. */
int record_procs_share(struct record_ring *r);
/* Whether some process still maps the ring. */
bool record_procs_alive(const struct record_ring *r);
/* Whether a process was just handed on by exec to an image whose agent hasn't
 * mapped the ring yet: a look at record_procs_alive() alone would miss it. */
bool record_procs_starting(const struct record_session *s, const struct record_ring *r);
/* Who maps the ring, for messages. Hidden are those that seem to, but may not be looked at. */
struct record_procs {
	pid_t first, first_hidden;
	unsigned nr, hidden;
};
void record_procs_scan(const struct record_ring *r, struct record_procs *p);

/* Whether a descriptor of the process, but its standard input, is the terminal behind
 * ours; also where that can't be seen. */
bool record_procs_have_terminal(pid_t pid, int fd);

/* --- tasks: threads by their numbers in the ring --- */
/* Finds those that are alive, or may be; false: nothing can be said. *stop ends the
 * search. */
bool record_tasks_alive(struct record_ring *r, struct pb_drain_thread *threads, unsigned nr,
			const _Atomic bool *stop);
struct record_names {
	/* private */
	const struct record_ring *ring;
	bool is_ours, last_maps;
	pid_t last;
	void *list;
	unsigned nr;
};
/* look_further: in other pid namespaces, too. */
void record_names_begin(struct record_names *n, struct record_ring *r, bool look_further);
void record_names_end(struct record_names *n);
/* The name of a traced thread that runs exe; "" if there is none. */
void record_names_get(struct record_names *n, uint32_t pid, uint32_t tid, const char *exe,
		      char comm[RECORD_COMM]);

/* --- threads: names, kept while the threads live --- */
struct record_threads {
	char (*comm)[RECORD_COMM];	/* [RECORD_NR_THREADS] */
	uint32_t seen;
};
/* Names of new threads; with renew, also those of the newest ones again. */
void record_threads_poll(struct record_threads *t, const struct record_server *s, bool renew);
/* Records lost, as the threads count them. */
uint64_t record_threads_lost(const struct record_ring *r);

/* --- end --- */
struct record_outcome {
	int status;			/* of the main process, as waitpid gives it */
	bool exited;
	pid_t pid;
};
/* The last meta records and the closing line; returns the exit status. */
int record_end(struct record_server *s, struct pb_drain *d, struct record_threads *t,
	       const struct record_outcome *out);

/* --- hints, after all images are gone --- */
/* Each --module that matched nothing: one line, and a note in the data. */
void record_hint_modules(const struct record_server *s);
/* Each eBPF program that was attached nowhere: one line, and a note in the data. */
void record_hint_hooks(const struct record_server *s);
/* The library that was loaded whose name is next to that one; "": none. */
void record_hint_library(const struct record_modules *m, const char *name, char *near, size_t len);
/* One line if the program's work is in libraries that weren't traced. */
void record_hint_launcher(const struct record_server *s, uint64_t calls);

/* --- run --- */
/* All of it, from the program's name to the closing line; the exit status. */
int record_with(struct record_options *o);
/* The same into a directory that is removed at the end. show, which may be NULL, is called
 * with the data if there is any. What of both isn't 0, record's first. */
int record_temporary(struct record_options *o, const char *command,
		     int (*show)(void *arg, const char *data), void *arg);
/* Starts the program, serves until all is over; returns the exit status. */
int record_run(struct record_options *o, const struct record_target *t,
	       struct record_session *s, struct record_ring *ring, struct record_modules *m);
#endif
