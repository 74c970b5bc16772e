/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Objects: a compiled .bpf.o becomes programs whose instructions only need maps.
 * All relocation is done here: maps and variables are numbers of the object's maps,
 * subprograms stand after the program that calls them, CO-RE has been resolved
 * against the types of a target.
 *
 * An object opens when its file makes sense; what we can't do with one of its
 * programs or maps is reported in its `why` and does not affect others.
 *
 * Context: any thread, libc; one thread at a time for one object. The bytes may be
 * anybody's. Texts are printable, and live as long as the object.
 */
#ifndef PB_BPFLOAD_LOAD_H
#define PB_BPFLOAD_LOAD_H
#include "bpf/map/map.h"
#include "bpf/verifier/verify.h"

struct pb_bpf_btf;

enum pb_bpf_object_map_kind {
	PB_BPF_MAP_DECLARED,		/* in .maps */
	PB_BPF_MAP_LEGACY,		/* in maps */
	PB_BPF_MAP_DATA,		/* .data, .data.* */
	PB_BPF_MAP_RODATA,
	PB_BPF_MAP_BSS,
	PB_BPF_MAP_KCONFIG,
	PB_BPF_MAP_INNER,		/* what the maps in a map are like */
};

/* What is in a map of maps, or of programs, from the beginning. */
struct pb_bpf_object_slot {
	uint32_t index;
	uint32_t number;		/* of the map, or of the program */
	bool prog;
};

struct pb_bpf_object_map {
	const char *name;		/* libbpf's, "object.rodata" */
	const char *section;
	uint8_t kind;			/* enum pb_bpf_object_map_kind */
	bool pin_by_name;
	struct pb_bpf_map_attr attr;	/* as declared, see pb_bpf_object_map_attr() */
	uint32_t numa_node;
	uint64_t extra;
	const struct pb_bpf_object_map *inner;	/* NULL: not said, or no map of maps */
	const void *contents;		/* value_size bytes of the only value; NULL: zeros */
	const struct pb_bpf_object_slot *slots;
	uint32_t nr_slots;
	struct pb_bpf_map_types types;	/* ids are the object's; kptrs' the target's */
	const char *why;		/* NULL, or why it can't be made */
};

/* A CO-RE relocation that found nothing: its instruction is a call that no verifier passes. */
#define PB_BPF_POISON	0xbad2310
struct pb_bpf_object_poison {
	uint32_t insn;
	const char *text;		/* the relocation, in libbpf's words */
};

struct pb_bpf_object_prog {
	const char *name, *section;
	const char *target;		/* of SEC("kprobe/TARGET"); NULL: none */
	uint32_t type, attach_type;	/* BPF_PROG_TYPE_UNSPEC: the section doesn't say */
	uint32_t flags;			/* BPF_F_SLEEPABLE, BPF_F_XDP_HAS_FRAGS */
	bool returns;			/* kretprobe, uretprobe, and their .multi */
	bool user;			/* uprobe, uretprobe, and theirs; usdt */
	bool multi;			/* kprobe.multi, uprobe.multi, ... */
	bool session;			/* kprobe.session, uprobe.session: one program at both ends
					 * of a call */
	bool special;			/* ksyscall, kretsyscall, usdt: the target is no function */
	bool guessed;			/* by how the section's name begins, as libbpf did before
					 * 1.0 */
	bool autoload;			/* false: SEC("?...") */
	const char *why;		/* NULL, or why it can't be loaded */
	int err;			/* with why: the kernel's -errno; 0: -EINVAL */
	struct bpf_insn *insns;		/* LD_IMM64 of maps: their numbers in `maps` */
	uint32_t nr;
	struct pb_bpf_func *funcs;	/* with BTF; as pb_bpf_verify() takes them */
	uint32_t nr_funcs;
	struct pb_bpf_line *lines;
	uint32_t nr_lines;
	struct pb_bpf_object_poison *poison;
	uint32_t nr_poison;
};

/* Where a program is to be attached: pieces of `target`, without a 0 after them. */
struct pb_bpf_target {
	const char *path, *func;	/* path NULL: not said. func of a .multi: a pattern */
	size_t path_len, func_len;
	uint64_t off;			/* after the function's start */
};

struct pb_bpf_object {
	const char *name, *license;
	bool gpl;
	uint32_t version;		/* of section `version` */
	struct pb_bpf_object_prog *progs;
	uint32_t nr_progs;
	struct pb_bpf_object_map *maps;
	uint32_t nr_maps;
	struct pb_bpf_btf *btf;		/* NULL: none */
};

/* All zeros will do. */
struct pb_bpf_object_opts {
	const char *name;		/* NULL: the file's, to the first dot */
	const char *target;		/* file whose BTF is the target's; NULL:
					 * /sys/kernel/btf/vmlinux */
	const struct pb_bpf_btf *target_btf;	/* instead of it; indexed if it wasn't */
	const char *types;		/* file whose BTF is looked in before the target's,
					 * the traced program's; NULL: none */
	const char *kconfig;		/* lines CONFIG_X=value, for what the object asks */
	uint32_t kernel_version;	/* what LINUX_KERNEL_VERSION is; 0: the running kernel's */
	uint32_t type;			/* of programs whose section names none */
};

/*
 * 0, or -errno with `err` (size bytes, may be 0) saying why: -EINVAL no object for
 * eBPF or an inconsistent one, -ENOMEM, and of the file open()'s.
 */
int pb_bpf_object_open(const char *path, const struct pb_bpf_object_opts *opts,
		       struct pb_bpf_object **object, char *err, size_t size);
int pb_bpf_object_open_memory(const void *bytes, size_t nr, const struct pb_bpf_object_opts *opts,
			      struct pb_bpf_object **object, char *err, size_t size);
void pb_bpf_object_close(struct pb_bpf_object *object);

/*
 * Gives a variable its value, before maps are made: a number as C writes it, true, false;
 * text for an array of characters. Constants (const volatile) are meant, others can be set
 * as well. 0, -ENOENT: there is none of that name, -EINVAL: it is neither, or that is no
 * number, -ERANGE: it doesn't fit, -ENOMEM.
 */
int pb_bpf_object_set(struct pb_bpf_object *object, const char *name, const char *value);

/* What the map is made with: what was left open (entries of perf event arrays, the
 * room of ring buffers) is settled for `cpus` processors and pages of 4 KiB. */
struct pb_bpf_map_attr pb_bpf_object_map_attr(const struct pb_bpf_object_map *map, uint32_t cpus);
struct pb_bpf_map_attr pb_bpf_map_attr_settle(struct pb_bpf_map_attr attr, uint32_t cpus);

/*
 * FUNCTION[+OFFSET] of kprobe and its kin, PATH:FUNCTION[+OFFSET] of uprobe; offsets as C
 * writes numbers. -ENOENT: the section says no target; -EINVAL: it isn't of that form, or
 * programs of this kind have none.
 */
int pb_bpf_object_target(const struct pb_bpf_object_prog *prog, struct pb_bpf_target *target);


/*
 * The relocation after a verifier's refusal, or NULL: its log says that function
 * PB_BPF_POISON is unknown, "12: (85) call unknown#195896080".
 */
const char *pb_bpf_object_explain(const struct pb_bpf_object_prog *prog, const char *log);

/* Number of the program, map of that name, or -ENOENT. */
int pb_bpf_object_prog(const struct pb_bpf_object *object, const char *name);
int pb_bpf_object_map(const struct pb_bpf_object *object, const char *name);
#endif
