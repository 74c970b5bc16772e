/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Declarations that the loader's files share. load.c opens an object in these steps. Each step uses
 * the results of earlier steps.
 *
 *   load.c        the file, licence, version, and BTF with its relocations applied
 *   load_func.c   all functions of the file: programs and subprograms
 *   load_map*.c   maps, maps of variables, and the types of their values in BTF. The initial
 *                 elements of maps are read after the step of load_ext.c
 *   load_extern.c symbols that the object doesn't define: .kconfig and .ksyms
 *   load_reloc.c  references to maps, variables and functions in instructions
 *   load_ext.c    .BTF.ext: functions' types, lines, and CO-RE relocations (load_core*.c)
 *   load_prog.c   programs, each followed by the functions that it calls
 *
 * load_common.c has the functions that several steps use.
 */
#ifndef PB_BPFLOAD_LOAD_PRIV_H
#define PB_BPFLOAD_LOAD_PRIV_H
#include "bpfload/load.h"
#include "bpfload/load_btf.h"
#include "bpfload/load_elf.h"

/* An instruction that calls a function, or loads a function's address. */
struct load_ref {
	uint32_t insn, func;
};

struct load_func {
	const char *name;
	uint32_t section, start, nr;	/* start: the function's first instruction, counted from the
					 * section's start; nr: count of instructions */
	struct bpf_insn *insns;		/* a copy, which relocation changes */
	bool global, hidden;		/* hidden: verified like a static function */
	bool entry;			/* the function is a program */
	uint32_t number;		/* the program's number, if the function is one */
	const char *why;		/* NULL, or the reason why the function and its callers
					 * can't be used */
	int err;			/* if `why` is set: the -errno with which the kernel would
					 * refuse the program; 0: it has none for this reason */
	uint8_t *relocated;		/* a bit for each instruction that has a relocation; NULL:
					 * no instruction has one */
	struct load_ref *refs;		/* in ascending order of insn */
	uint32_t nr_refs, room_refs;
	uint32_t btf;			/* number of the function's BTF_KIND_FUNC, or 0 */
	uint8_t ctx_args, sure_args;	/* a bit for each argument that is tagged arg:ctx or
					 * arg:nonnull */
	struct pb_bpf_line *lines;	/* in ascending order of insn; insn counts from the
					 * function's start */
	uint32_t nr_lines;
	struct pb_bpf_object_poison *poison;
	uint32_t nr_poison, room_poison;
	uint32_t seen, at;		/* set by load_prog.c. seen: 1 + the number of the last
					 * program that got a copy of the function; at: the
					 * instruction at which the copy begins */
};

enum load_extern_kind { LOAD_KCONFIG, LOAD_KSYM, LOAD_KFUNC, LOAD_UNKNOWN };

struct load_extern {
	const char *name;
	uint32_t sym, kind, btf;	/* btf: id of the variable or function, or 0 */
	bool weak, known;		/* known: the value of a .kconfig variable is known */
	uint32_t size, align, off;	/* for a .kconfig variable; off: its offset in the map */
	uint32_t number;		/* number of the variable in its DATASEC */
	uint64_t value;			/* for a symbol of .ksyms */
	int32_t kfunc;			/* enum pb_bpf_kfunc_id, or 0 */
};

/* CO-RE's candidates for a type of the object: the types of the same name and kind in `btf`. `btf`
 * is the target's BTF, or the BTF of the file opts.types. */
struct core_candidates {
	const struct pb_bpf_btf *btf;
	uint32_t *types, nr;		/* types NULL: the search hasn't been made yet */
};

struct load_chunk;

struct load {
	struct pb_bpf_object object;	/* must be the first member, since callers hold a pointer to
					 * it */
	struct pb_bpf_object_opts opts;
	struct load_chunk *chunks;	/* memory that is freed with the object */
	uint8_t *bytes;			/* the file, aligned to 8 */
	struct pb_bpf_elf elf;
	struct load_func *funcs;	/* sorted by section, then by start */
	uint32_t nr_funcs;
	struct map_place {		/* the bytes that declare a map, or that hold variables */
		uint32_t section;
		uint64_t off, size;
	} *places;			/* indexed by the map's number */
	uint32_t room_maps, maps_btf;	/* maps_btf: id of DATASEC .maps */
	struct load_extern *externs;
	uint32_t *extern_of;		/* indexed by the symbol's number: 1 + the extern's number;
					 * 0: not an extern */
	uint32_t nr_externs;
	int32_t kconfig;		/* number of the map of .kconfig, or -1 */
	struct pb_bpf_btf *types;	/* the BTF of the file opts.types */
	struct pb_bpf_btf *own_target;	/* the target's BTF, if the loader opened it and must close
					 * it; or NULL */
	const struct pb_bpf_btf *target;
	struct core_candidates *candidates; /* indexed by the number of a type of the object */
	const char *no_target;		/* the reason why there is no target */
	bool target_tried;
	uint32_t line_off;		/* offset in BTF's strings of the last source line that was
					 * read */
	const char *line;		/* the text of that source line */
	uint64_t room;			/* how many more instructions the object's programs may
					 * have, all together */
	uint64_t work;			/* count of steps that may still be spent: load_work() */
	uint64_t memory;		/* how many more bytes load_alloc() may return: parts of the
					 * file may overlap, so the file's size doesn't bound the
					 * size of all copies */
	bool memory_spent;		/* load_alloc() has returned NULL because of `memory` */
	char *err;
	size_t err_size;
};

/* Returns zeroed memory, aligned to 8, that is freed with the object; NULL: no memory, or the
 * object has had too much. */
void *load_alloc(struct load *l, size_t size);
/* Frees all memory that load_alloc() has returned. */
void load_free(struct load *l);
/* Both functions return a text that is safe for a terminal. load_text() returns a copy of `text`.
 * load_printf() returns a formatted text. NULL: no memory. */
const char *load_text(struct load *l, const char *text);
const char *load_printf(struct load *l, const char *format,
			...) __attribute__((format(printf, 2, 3)));
/* Refuses to open the object: sets the caller's `err`, and returns -EINVAL. */
int load_refuse(struct load *l, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Makes room for one more element in an array. The array grows by doubling. Returns the array, or
 * NULL if there is no memory. */
void *load_grow(struct load *l, void *array, uint32_t nr, uint32_t *room, size_t size);

/* Sets *why, unless there is a reason already. */
void load_error(struct load *l, const char **why, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/* Bounds the loader's work, since a file's parts may overlap, or refer to each other without end.
 * Subtracts n from the steps that may still be spent on the object. If too few steps are left, sets
 * *why and returns false. A loop needs this if the file decides how often the whole loop runs. */
bool load_work(struct load *l, uint64_t n, const char **why);
/* The same for a name that is compared with n names. A long name needs more steps. */
bool load_compare(struct load *l, uint64_t n, const char *name, const char **why);

/* Sets those fields of prog that follow from the name of its section. After an error, sets
 * prog->why. */
void load_section_name(struct load *l, struct pb_bpf_object_prog *prog, uint32_t default_type);

int load_funcs(struct load *l);
/* Returns the function that contains instruction `insn` of a section, or NULL. */
struct load_func *load_func_at(const struct load *l, uint32_t section, uint64_t insn);

int load_maps(struct load *l);
int load_maps_btf(struct load *l, uint32_t section);
int load_map_slots(struct load *l);
struct pb_bpf_object_map *load_map_add(struct load *l, uint32_t section, uint64_t off,
				       uint64_t size);
void load_map_types(struct load *l, struct pb_bpf_object_map *map);

int load_externs(struct load *l);
struct utsname;
/* Returns the kernel's LINUX_VERSION_CODE as libbpf does, or 0 if it is unknown. signature: the
 * text of /proc/version_signature, which Ubuntu has; "" if there is no such file. */
uint32_t load_kernel_version(const char *signature, const struct utsname *u);
struct load_extern *load_extern_of(const struct load *l, uint32_t sym);

/* Calls fn for each relocation of a section, or of all sections if `section` is 0. Stops when fn
 * returns an error. */
int load_each_rel(struct load *l, uint32_t section,
		  int (*fn)(struct load *l, uint32_t section, const Elf64_Rel *rel));
int load_relocs(struct load *l);

int load_ext(struct load *l);
/* Resolves a CO-RE relocation of an instruction. Returns 0 or -ENOMEM; other errors are in
 * f->why. */
int load_core(struct load *l, struct load_func *f, uint32_t insn, const struct bpf_core_relo *relo);
/* Returns the target's types, for CO-RE. The first call opens them. NULL: there are none. */
const struct pb_bpf_btf *load_target(struct load *l);

int load_progs(struct load *l);
#endif
