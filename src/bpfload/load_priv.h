/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Shared by the files of the loader. An object is opened in these steps; each step prepares what
 * the next step reads:
 *
 *   load.c        the file, licence, version, BTF (its own relocations applied)
 *   load_func.c   all functions of the file: programs and subprograms
 *   load_map*.c   maps, variables as maps, what BTF says of their values
 *   load_extern.c symbols that the object doesn't define: .kconfig, .ksyms
 *   load_reloc.c  maps, variables and calls in each function's instructions
 *   load_ext.c    .BTF.ext: functions, lines, CO-RE (load_core*.c) in them
 *   load_prog.c   programs: each is followed by the functions that it calls
 */
#ifndef PB_BPFLOAD_LOAD_PRIV_H
#define PB_BPFLOAD_LOAD_PRIV_H
#include "bpfload/load.h"
#include "bpfload/load_btf.h"
#include "bpfload/load_elf.h"

/* An instruction that refers to a function: a call, or its address. */
struct load_ref {
	uint32_t insn, func;
};

struct load_func {
	const char *name;
	uint32_t section, start, nr;	/* start: first instruction, counted from the section's
					 * start; nr: number of instructions */
	struct bpf_insn *insns;		/* copies; relocation changes them */
	bool global, hidden;		/* hidden: verified as if it were static */
	bool entry;			/* a program */
	const char *why;		/* NULL, or why the function and its callers fail */
	int err;			/* with why: the kernel's -errno for it, or 0 */
	uint8_t *relocated;		/* a bit for each instruction: it has a relocation; NULL: no
					 * instruction has one */
	struct load_ref *refs;		/* in ascending order of insn */
	uint32_t nr_refs, room_refs;
	uint32_t btf;			/* BTF_KIND_FUNC's number, or 0 */
	uint8_t ctx_args, sure_args;	/* a bit for each argument tagged arg:ctx, arg:nonnull */
	struct pb_bpf_line *lines;	/* in ascending order of insn, which counts from the
					 * function's start */
	uint32_t nr_lines;
	struct pb_bpf_object_poison *poison;
	uint32_t nr_poison, room_poison;
	uint32_t seen, at;		/* set by load_prog.c: in the program with number seen - 1,
					 * the function begins at instruction `at` */
};

enum load_extern_kind { LOAD_KCONFIG, LOAD_KSYM, LOAD_KFUNC, LOAD_UNKNOWN };

struct load_extern {
	const char *name;
	uint32_t sym, kind, btf;	/* btf: of the variable or function, or 0 */
	bool weak, known;
	uint32_t size, align, off;	/* of a kconfig variable; off: in the map */
	uint64_t value;			/* of a ksym */
	int32_t kfunc;			/* enum pb_bpf_kfunc_id, or 0 */
};

/* The types of one BTF, the target's or the traced program's, that a type of the object may stand
 * for. */
struct core_candidates {
	const struct pb_bpf_btf *btf;
	uint32_t *types, nr;		/* types NULL: not looked for yet */
};

struct load_chunk;

struct load {
	struct pb_bpf_object object;	/* first: callers hold a pointer to it */
	struct pb_bpf_object_opts opts;
	struct load_chunk *chunks;	/* memory that is freed with the object */
	uint8_t *bytes;			/* the file, aligned to 8 */
	struct pb_bpf_elf elf;
	struct load_func *funcs;	/* by section, then start */
	uint32_t nr_funcs;
	struct map_place {		/* where a map is declared */
		uint32_t section;
		uint64_t off, size;
	} *places;			/* of the object's maps, by number */
	uint32_t room_maps, maps_btf;	/* maps_btf: DATASEC .maps */
	struct load_extern *externs;
	uint32_t *extern_of;		/* by symbol: 1 + the extern's number; 0: none */
	uint32_t nr_externs;
	int32_t kconfig;		/* number of the map of .kconfig, or -1 */
	struct pb_bpf_btf *types;	/* the BTF of the file opts.types */
	struct pb_bpf_btf *own_target;	/* a target that was opened here, to be closed; or NULL */
	const struct pb_bpf_btf *target;
	struct core_candidates *candidates; /* indexed by the number of a type of the object */
	const char *no_target;		/* why there is no target */
	bool target_tried;
	uint32_t line_off;		/* the last source line that was read, as an offset in BTF's
					 * strings */
	const char *line;		/* the text of that source line */
	uint64_t room;			/* instructions that may still be put in programs */
	uint64_t work;			/* steps that may still be spent, see load_work() */
	char *err;
	size_t err_size;
};

/* Zeroed memory, aligned to 8, that is freed with the object; NULL: no memory. */
void *load_alloc(struct load *l, size_t size);
/* Return a text that is safe for a terminal: load_text() a copy, load_printf() a formatted text.
 * NULL: no memory. */
const char *load_text(struct load *l, const char *text);
const char *load_printf(struct load *l, const char *format,
			...) __attribute__((format(printf, 2, 3)));
/* Refuses to open the object: fills err, returns -EINVAL. */
int load_refuse(struct load *l, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Makes room for one more element in an array, which grows by doubling. Returns the array; NULL: no
 * memory. */
void *load_grow(struct load *l, void *array, uint32_t nr, uint32_t *room, size_t size);

/* Sets *why, unless there is a reason already. */
void load_error(struct load *l, const char **why, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/* Takes n steps of the work that an object may cost. This ends the work on files whose parts refer
 * to each other without end. False: all steps are spent, and *why says so. */
bool load_work(struct load *l, uint64_t n, const char **why);

/* Sets those fields of prog that follow from its section's name, and prog->why on failure. */
void load_section_name(struct load *l, struct pb_bpf_object_prog *prog, uint32_t default_type);

int load_funcs(struct load *l);
/* The function that contains that instruction of a section, or NULL. */
struct load_func *load_func_at(const struct load *l, uint32_t section, uint64_t insn);

int load_maps(struct load *l);
int load_maps_btf(struct load *l, uint32_t section);
int load_map_slots(struct load *l);
struct pb_bpf_object_map *load_map_add(struct load *l, uint32_t section, uint64_t off,
				       uint64_t size);
void load_map_types(struct load *l, struct pb_bpf_object_map *map);

int load_externs(struct load *l);
struct load_extern *load_extern_of(const struct load *l, uint32_t sym);

/* Calls fn for each relocation of a section, and stops at fn's first error. */
int load_each_rel(const struct load *l, uint32_t section,
		  int (*fn)(struct load *l, uint32_t section, const Elf64_Rel *rel));
int load_relocs(struct load *l);

int load_ext(struct load *l);
/* Does a CO-RE relocation of an instruction. Returns 0 or -ENOMEM; other errors are in f->why. */
int load_core(struct load *l, struct load_func *f, uint32_t insn, const struct bpf_core_relo *relo);
/* The target's types, for CO-RE; opened by the first call. NULL: none. */
const struct pb_bpf_btf *load_target(struct load *l);

int load_progs(struct load *l);
#endif
