/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The common code of the subcommands of `patchbay bpf`. It opens programs and maps, verifies
 * programs, and finds the maps and programs that the elements of maps refer to.
 */
#ifndef PB_CLI_BPF_BPF_COMMON_H
#define PB_CLI_BPF_BPF_COMMON_H
#include <argp.h>
#include <stdbool.h>
#include <stdio.h>
#include "bpf/map/map.h"
#include "bpf/run/image.h"
#include "bpf/verifier/verify.h"
#include "bpfload/load_make.h"
#include "cli/cli.h"

/* Exit statuses of verify and run. */
enum { BPF_ACCEPTED, BPF_REJECTED, BPF_RUN_FAILED, BPF_USAGE };

#define BPF_MAX_MAPS	64
#define BPF_MAX_GLOBALS	64
#define BPF_PIN_PATH	4096
#define BPF_LOG_SIZE	(8u << 20)	/* bytes of the log if the user asks for it */
#define BPF_LOG_SHORT	(64u << 10)	/* bytes of the log if only the reason of a rejection is
					 * needed */
#define BPF_MAX_INSNS	1000000

extern const struct pb_command bpf_command_load, bpf_command_verify, bpf_command_run,
	bpf_command_dump, bpf_command_prog, bpf_command_map, bpf_command_pin, bpf_command_stats,
	bpf_command_trace;

/* A program before it is verified. */
struct bpf_unit {
	const char *name;
	const struct pb_bpf_type *type;
	uint32_t attach_type;
	const struct bpf_insn *insns;	/* an instruction names a map by the map's index in
					 * `maps` */
	uint32_t nr;
	bool gpl;
	const struct pb_bpf_func *funcs;
	uint32_t nr_funcs;
	const struct pb_bpf_line *lines;
	uint32_t nr_lines;
	struct pb_bpf_map **maps;	/* NULL: the program uses the session's maps */
	uint32_t nr_maps;
	uint32_t id;			/* the program's id; 0: the session's next id */
};

/* A program that can run. */
struct bpf_loaded {
	struct pb_bpf_prog *prog;
	uint32_t verified;		/* count of instructions that the verifier has processed */
	uint32_t xlated;		/* size of the resolved instructions in bytes */
};

/* Sizes of an object's maps, from --map NAME:... */
struct bpf_sizes {
	struct pb_bpf_make_size list[BPF_MAX_MAPS];
	uint32_t nr;
};

/* A command's options, maps and programs. In these files, a session is this structure, and not a
 * run of the recorder. */
struct bpf_session {
	const char *command;		/* for messages */
	/* options that several commands have (bpf_session_argp) */
	const char *type;
	uint32_t attach_type, caps, flags;
	int log_level;
	bool quiet, interpret;
	const char *file;		/* file of raw instructions */
	const char *map_spec[BPF_MAX_MAPS];
	uint32_t nr_map_specs;
	struct bpf_sizes sizes;
	const char *globals[BPF_MAX_GLOBALS];	/* --global, NAME=VALUE */
	uint32_t nr_globals;
	const char *btf;		/* file with the traced program's types; NULL: no file */
	/* the maps, made or opened */
	struct pb_bpf_map maps[BPF_MAX_MAPS];
	struct pb_bpf_map *map[BPF_MAX_MAPS];
	uint32_t nr_maps;
	const char *map_dir;		/* directory for files of an object's maps; NULL: the maps
					 * have no files */
	char **pins;			/* paths of the pins that the session has made */
	uint32_t nr_pins;
	uint32_t cpu_slots;		/* number of per-CPU slots; 0: one for each processor */
	struct pb_bpf_prog *progs[BPF_MAX_MAPS];	/* the programs that elements of maps may
							 * refer to */
	uint32_t nr_progs;
	struct pb_bpf_objects objects;
	struct pb_bpf_object *object;
	struct pb_bpf_made *made;
	char *log;
	uint64_t log_gone;		/* count of bytes that were cut off at the log's
					 * beginning */
	/* words of the command line that aren't options */
	char **args;
	int nr_args;
};

extern const struct argp bpf_session_argp;	/* input: struct bpf_session */
/* Parses the command line into `input`, which contains s. Returns 0, or an exit status. */
int bpf_session_parse(struct bpf_session *s, const struct argp *argp, int argc, char **argv,
		      void *input);
void bpf_session_init(struct bpf_session *s, const char *command);
void bpf_session_end(struct bpf_session *s);

/*
 * Reads an option --map NAME:ATTRIBUTE=NUMBER[,...], which sets sizes of the object's map NAME. The
 * attributes are max_entries, key_size and value_size. Several --map options may set different
 * sizes of one map. Returns 0, or -EINVAL after a message.
 */
int bpf_sizes_add(struct bpf_sizes *sizes, const char *command, const char *text);
/* True if the text after --map has the form NAME:ATTRIBUTE=NUMBER. Text of another form describes a
 * map for raw instructions. */
bool bpf_is_size(const char *text);
/* Checks that the object has all maps whose sizes are set. Returns 0, or -ENOENT after a
 * message. */
int bpf_sizes_check(const struct bpf_sizes *sizes, const char *command,
		    const struct pb_bpf_object *object, const char *path);

/* Adds a --global option. Returns 0, or -EINVAL after a message. */
int bpf_globals_add(struct bpf_session *s, const char *text);
/* Sets the object's variables from all --global options. Returns 0, or -errno after a message. */
int bpf_globals_set(const struct bpf_session *s, const char *path);

/* Makes the maps of the -m options. Returns 0, or an exit status after a message. */
int bpf_session_maps(struct bpf_session *s);
/* Makes one more map. Returns 0 or -errno. */
int bpf_session_map(struct bpf_session *s, const struct pb_bpf_map_spec *spec);
/* In bpf_session_maps.c. Returns the map of the session or of its object that has this id; NULL:
 * there is none. */
struct pb_bpf_map *bpf_session_map_of(const struct bpf_session *s, uint32_t id);
/* Returns the program type for the text after -t: a name, an alias or a number. NULL: there is no
 * such type. */
const struct pb_bpf_type *bpf_type_of(const char *text);
/* Verifies, resolves and makes a program. Returns 0 or -errno. Messages are in s->log. */
int bpf_session_load(struct bpf_session *s, const struct bpf_unit *u, struct bpf_loaded *out);
/* Prints the log to standard error, if there is any. */
void bpf_session_show_log(const struct bpf_session *s);
/* Empties the log, and returns it for the verifier to write to. */
struct pb_bpf_text bpf_session_log(struct bpf_session *s);
/* Returns the log's last line that isn't a line of statistics. */
const char *bpf_session_reason(const struct bpf_session *s);

/*
 * Reads raw instructions from --file, from args (words of hexadecimal digits), or from standard
 * input. Returns 0, or the exit status after a message.
 */
int bpf_read_insns(struct bpf_session *s, char **args, int nr_args, struct bpf_insn **insns,
		   uint32_t *nr);
/* Parses the value of an option: a 32-bit number in C's notation (10, 0xa, 012). If the text isn't
 * such a number, ends the command with a message. */
uint32_t bpf_number(const struct bpf_session *s, const char *option, const char *text);
/* Reads bytes in hexadecimal digits, separated by blanks and commas. Returns the count of bytes, or
 * -1 after a message. */
long bpf_unhex(const char *command, const char *text, uint8_t *out, size_t room);
/* Reads a whole file. Returns NULL after a message. */
uint8_t *bpf_read_file(const char *command, const char *path, size_t *size);
/* Returns whether the file can be read and begins as ELF files do. */
bool bpf_is_object(const char *path);

/* The first function opens an object (s->object), the second makes its maps (s->made), and the
 * third does both. Return 0, or the exit status after a message. If a map can't be made, only the
 * programs that use it fail. */
int bpf_read_object(struct bpf_session *s, const char *path);
int bpf_make_object(struct bpf_session *s, const char *path);
int bpf_open_object(struct bpf_session *s, const char *path);
/* Verifies the object's program number nr, and makes it ready to run. Returns 0 or -errno. After an
 * error, the reason is in *why and in s->log. */
int bpf_object_verify(struct bpf_session *s, uint32_t nr, struct bpf_loaded *out, const char **why);
/* Like bpf_object_verify(), but also for all programs that the program may reach by tail calls
 * (pb_bpf_make_chain). */
int bpf_object_load(struct bpf_session *s, uint32_t nr, struct bpf_loaded *out, const char **why);
/* Returns whether the program is one of `names`. Without names, returns whether the program is
 * loaded automatically. */
bool bpf_object_wants(const struct bpf_session *s, uint32_t nr, char **names, int nr_names);
/* Prints a line for each of `names` that no program of the object has. Without names, prints a line
 * if no program is loaded automatically. Returns whether it has printed a line. path: the object's
 * file. */
bool bpf_object_lacks(const struct bpf_session *s, const char *path, char **names, int nr_names);

/* Makes a map and pins it in s->map_dir under `name`, the map's full name. The spec's name can't be
 * used: it has only the first 15 characters, in which two maps may agree. Returns 0 or -errno. */
int bpf_object_pin(struct bpf_session *s, const char *name, const struct pb_bpf_map_spec *spec,
		   struct pb_bpf_map *map);
/* Finds the path in `dir` of the pin with this name. Dots and slashes of the name become _. Returns
 * false if the path is too long. */
bool bpf_object_pin_path(const char *dir, const char *name, char *path, size_t size);
/* Finds the path at which bpf_object_pin() pins the map with this name. Returns false if the path
 * is too long. */
bool bpf_object_map_path(const struct bpf_session *s, const char *name, char *path, size_t size);
/* Determines how elements of maps are shown. A NULL pointer or a struct of zeros means that
 * elements are shown as bytes. */
struct bpf_words {
	const struct pb_bpf_btf *btf;	/* types of the object that declares the map; NULL: no
					 * types */
	/* Finds the name of an address in the traced program, for stacks in a map. NULL: names are
	 * unknown. */
	void (*name)(void *arg, uint64_t address, char *to, size_t size);
	void *arg;
};

/* A callback for an element. err: if it isn't 0, the value can't be read. Returns 0 to continue. */
typedef int bpf_element_fn(void *arg, const struct pb_bpf_map *map, const uint8_t *key,
			   const uint8_t *value, int err);
/* Calls fn for each element of a map that has keys. If fn doesn't return 0, stops and returns fn's
 * result. Returns 1 after a message if the elements can't be read. */
int bpf_map_each(const char *command, struct pb_bpf_map *map, bpf_element_fn *fn, void *arg);

/* Prints a map's elements to stdout. Returns 0, or 1 after a message. */
int bpf_map_show(struct pb_bpf_map *map, const struct bpf_words *words);
void bpf_map_show_element(const struct pb_bpf_map *map, const uint8_t *key, const uint8_t *value,
			  const struct bpf_words *words);
bool bpf_map_is_per_cpu(const struct pb_bpf_map *map);

/* Does `run --plugin`, with the protocol of the bpf_conformance suite. */
int bpf_plugin(struct bpf_session *s, const char *program, char **args, int nr_args);
#endif
