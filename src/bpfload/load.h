/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Turns a compiled .bpf.o (an object) into programs that are fully relocated, apart from the
 * addresses of maps. A reference to a map or variable becomes the number of one of the object's
 * maps. Subprograms are placed after the program that calls them. CO-RE relocations are resolved
 * against the types of a target.
 *
 * An object can be opened if its file is consistent, even if some of its programs or maps can't be
 * used. The `why` of such a program or map has the reason. All other programs and maps stay usable.
 *
 * Context: any thread, libc. Only one thread at a time may use an object. The file's bytes are not
 * trusted. All strings that the object has are printable, and live as long as the object.
 */
#ifndef PB_BPFLOAD_LOAD_H
#define PB_BPFLOAD_LOAD_H
#include "bpf/map/map.h"
#include "bpf/verifier/verify.h"

struct pb_bpf_btf;

enum pb_bpf_object_map_kind {
	PB_BPF_MAP_DECLARED,		/* in section .maps */
	PB_BPF_MAP_LEGACY,		/* in section maps */
	PB_BPF_MAP_DATA,		/* .data, .data.* */
	PB_BPF_MAP_RODATA,
	PB_BPF_MAP_BSS,
	PB_BPF_MAP_KCONFIG,
	PB_BPF_MAP_INNER,		/* a template: describes the maps that a map of maps
					 * holds */
};

/* An initial element of a map of maps or of a map of programs. */
struct pb_bpf_object_slot {
	uint32_t index;			/* the key. A map with larger keys isn't made */
	uint32_t number;		/* number of the map or of the program */
	bool prog;
};

struct pb_bpf_object_map {
	const char *name;		/* the name that libbpf gives the map, for example
					 * "object.rodata" */
	const char *section;
	uint8_t kind;			/* enum pb_bpf_object_map_kind */
	bool pin_by_name;
	struct pb_bpf_map_attr attr;	/* the declared attributes; see pb_bpf_object_map_attr() */
	uint32_t numa_node;
	uint64_t extra;			/* the declared map_extra */
	const struct pb_bpf_object_map *inner;	/* the template of the inner maps; NULL: not
						 * declared, or not a map of maps */
	const void *contents;		/* initial value of a map of variables, value_size bytes;
					 * NULL: zeros */
	const struct pb_bpf_object_slot *slots;
	uint32_t nr_slots;
	struct pb_bpf_map_types types;	/* type ids of kptrs refer to the target's BTF; all other
					 * type ids refer to the object's BTF */
	const char *why;		/* NULL, or the reason why the map can't be made */
};

/* A CO-RE relocation that found nothing in the target. The loader replaces its instruction by a
 * call that any verifier rejects. */
#define PB_BPF_POISON	0xbad2310
struct pb_bpf_object_poison {
	uint32_t insn;
	const char *text;		/* the relocation, in libbpf's words */
};

struct pb_bpf_object_prog {
	const char *name, *section;
	const char *target;		/* TARGET of SEC("kprobe/TARGET"); NULL: no target */
	uint32_t type, attach_type;	/* BPF_PROG_TYPE_UNSPEC: the section names no type */
	uint32_t flags;			/* BPF_F_SLEEPABLE, BPF_F_XDP_HAS_FRAGS */
	bool returns;			/* true for kretprobe and uretprobe, also with .multi, and
					 * for kretsyscall */
	bool user;			/* true for uprobe and uretprobe, also with .multi or
					 * .session, and for usdt */
	bool multi;			/* true for sections with .multi or .session in the name:
					 * the target's function is a pattern */
	bool session;			/* true for kprobe.session and uprobe.session: one program
					 * runs at both ends of a call */
	bool special;			/* true for ksyscall, kretsyscall and usdt: the target isn't
					 * a function */
	bool guessed;			/* the loader has guessed the type from the beginning of the
					 * section's name, as libbpf did before 1.0 */
	bool autoload;			/* false: SEC("?...") */
	const char *why;		/* NULL, or the reason why the program can't be loaded */
	int err;			/* if `why` is set: the kernel's -errno; 0 means -EINVAL */
	struct bpf_insn *insns;		/* if an LD_IMM64 loads a map, its imm is the map's
					 * number */
	uint32_t nr;
	struct pb_bpf_func *funcs;	/* in the form that pb_bpf_verify() takes; none without
					 * BTF */
	uint32_t nr_funcs;
	struct pb_bpf_line *lines;
	uint32_t nr_lines;
	struct pb_bpf_object_poison *poison;
	uint32_t nr_poison;
};

/* The place where a program is to be attached. path and func point into the program's `target`.
 * They need not end with a 0, so use their lengths. */
struct pb_bpf_target {
	const char *path, *func;	/* path NULL: the target has no path. If the program's
					 * `multi` is set, func is a pattern */
	size_t path_len, func_len;
	uint64_t off;			/* bytes after the function's start */
};

struct pb_bpf_object {
	const char *name, *license;
	bool gpl;
	uint32_t version;		/* the number in section `version` */
	struct pb_bpf_object_prog *progs;
	uint32_t nr_progs;
	struct pb_bpf_object_map *maps;
	uint32_t nr_maps;
	struct pb_bpf_btf *btf;		/* NULL: the object has no BTF */
};

/* All fields may be zero. */
struct pb_bpf_object_opts {
	const char *name;		/* NULL: the file's name, up to the first dot; for an object
					 * in memory: "object" */
	const char *target;		/* file with the target's BTF; NULL:
					 * /sys/kernel/btf/vmlinux */
	const struct pb_bpf_btf *target_btf;	/* used instead of `target`. The loader adds an
						 * index to this BTF (pb_bpf_btf_index()) */
	const char *types;		/* file with BTF, usually the traced program. The loader
					 * searches its BTF before the target's BTF. NULL: no
					 * file */
	const char *kconfig;		/* lines CONFIG_X=value, for variables in .kconfig */
	uint32_t kernel_version;	/* value of LINUX_KERNEL_VERSION; 0: the running kernel's */
	uint32_t type;			/* type of programs whose section names no type */
};

/*
 * Returns 0 or -errno. -EINVAL: the file isn't an eBPF object, is inconsistent, or takes too much
 * work or memory. -ENOMEM: no memory. Other errors: the file, or the file opts->types, can't be
 * opened or read. After an error, `err` has the reason, which doesn't name the object's file.
 * `size` is the size of `err`, and may be 0.
 */
int pb_bpf_object_open(const char *path, const struct pb_bpf_object_opts *opts,
		       struct pb_bpf_object **object, char *err, size_t size);
int pb_bpf_object_open_memory(const void *bytes, size_t nr, const struct pb_bpf_object_opts *opts,
			      struct pb_bpf_object **object, char *err, size_t size);
void pb_bpf_object_close(struct pb_bpf_object *object);

/*
 * Sets a variable's initial value, before maps are made. The value is a number in C's notation,
 * true or false, or text for an array of characters. The function is meant for constants (const
 * volatile), but other variables can be set as well. Returns 0, -ENOENT (no variable has this
 * name), -EINVAL (the variable is neither a number nor text, or the value is not a number), -ERANGE
 * (the value doesn't fit), or -ENOMEM.
 */
int pb_bpf_object_set(struct pb_bpf_object *object, const char *name, const char *value);

/* Returns the attributes with which the map is made. If a perf event array has no number of
 * entries, it gets one entry for each of `cpus` processors. A ring buffer's size of 1 to 2^31 bytes
 * is rounded up to a power of two of at least 4096 bytes. pb_bpf_map_attr_settle() does the same
 * for attributes from the caller. */
struct pb_bpf_map_attr pb_bpf_object_map_attr(const struct pb_bpf_object_map *map, uint32_t cpus);
struct pb_bpf_map_attr pb_bpf_map_attr_settle(struct pb_bpf_map_attr attr, uint32_t cpus);

/*
 * Parses the target: FUNCTION[+OFFSET] for the kprobe family, PATH:FUNCTION[+OFFSET] for the uprobe
 * family. OFFSET is a number in C's notation. Returns 0, -ENOENT (the section names no target), or
 * -EINVAL (the target has another form, or programs of this kind aren't attached to functions).
 */
int pb_bpf_object_target(const struct pb_bpf_object_prog *prog, struct pb_bpf_target *target);


/*
 * If the verifier rejected the program because a CO-RE relocation had failed, returns the text of
 * this relocation. Finds the relocation by the line of the log that shows a call of function
 * PB_BPF_POISON, for example "12: (85) call unknown#195896080". NULL: the log has no such line.
 */
const char *pb_bpf_object_explain(const struct pb_bpf_object_prog *prog, const char *log);

/* Returns the number of the program or of the map with this name, or -ENOENT. */
int pb_bpf_object_prog(const struct pb_bpf_object *object, const char *name);
int pb_bpf_object_map(const struct pb_bpf_object *object, const char *name);
#endif
