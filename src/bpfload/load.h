/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Turns a compiled .bpf.o into programs whose instructions need nothing but maps.
 * All relocation is done here. A reference to a map or variable becomes the number of one of the
 * object's maps. Subprograms are placed after the program that calls them. CO-RE is resolved
 * against the types of a target.
 *
 * An object opens if its file is consistent. If a program or a map can't be used, its `why` has the
 * reason, and all other programs and maps stay usable.
 *
 * Context: any thread, libc; one thread at a time for one object. The bytes are not
 * trusted. Texts are printable, and live as long as the object.
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
	PB_BPF_MAP_INNER,		/* describes the maps that a map of maps holds */
};

/* An initial element of a map of maps, or of programs. */
struct pb_bpf_object_slot {
	uint32_t index;
	uint32_t number;		/* of the map, or of the program */
	bool prog;
};

struct pb_bpf_object_map {
	const char *name;		/* libbpf's name, "object.rodata" */
	const char *section;
	uint8_t kind;			/* enum pb_bpf_object_map_kind */
	bool pin_by_name;
	struct pb_bpf_map_attr attr;	/* as declared, see pb_bpf_object_map_attr() */
	uint32_t numa_node;
	uint64_t extra;
	const struct pb_bpf_object_map *inner;	/* NULL: not declared, or not a map of maps */
	const void *contents;		/* initial value of a map of variables, value_size bytes;
					 * NULL: zeros */
	const struct pb_bpf_object_slot *slots;
	uint32_t nr_slots;
	struct pb_bpf_map_types types;	/* with type ids of the object's BTF; kptrs have type ids of
					 * the target's BTF */
	const char *why;		/* NULL, or why the map can't be made */
};

/* A CO-RE relocation that found nothing. Its instruction becomes a call that any verifier
 * rejects. */
#define PB_BPF_POISON	0xbad2310
struct pb_bpf_object_poison {
	uint32_t insn;
	const char *text;		/* the relocation, in libbpf's words */
};

struct pb_bpf_object_prog {
	const char *name, *section;
	const char *target;		/* of SEC("kprobe/TARGET"); NULL: none */
	uint32_t type, attach_type;	/* BPF_PROG_TYPE_UNSPEC: the section names no type */
	uint32_t flags;			/* BPF_F_SLEEPABLE, BPF_F_XDP_HAS_FRAGS */
	bool returns;			/* kretprobe, uretprobe, and their .multi */
	bool user;			/* uprobe, uretprobe, .multi and .session of these; usdt */
	bool multi;			/* kprobe.multi, uprobe.multi, ... */
	bool session;			/* kprobe.session, uprobe.session: one program at both ends
					 * of a call */
	bool special;			/* ksyscall, kretsyscall, usdt: the target is no function */
	bool guessed;			/* the type follows from the section name's beginning, as in
					 * libbpf before 1.0 */
	bool autoload;			/* false: SEC("?...") */
	const char *why;		/* NULL, or why the program can't be loaded */
	int err;			/* with why: the kernel's -errno; 0: -EINVAL */
	struct bpf_insn *insns;		/* an LD_IMM64 of a map has the map's number */
	uint32_t nr;
	struct pb_bpf_func *funcs;	/* only with BTF; as pb_bpf_verify() takes them */
	uint32_t nr_funcs;
	struct pb_bpf_line *lines;
	uint32_t nr_lines;
	struct pb_bpf_object_poison *poison;
	uint32_t nr_poison;
};

/* Where a program is to be attached. The strings are parts of `target`, and don't end with a 0. */
struct pb_bpf_target {
	const char *path, *func;	/* path NULL: the target has no path. func is a pattern if
					 * the section is a .multi */
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
	struct pb_bpf_btf *btf;		/* NULL: none */
};

/* All fields may be zero. */
struct pb_bpf_object_opts {
	const char *name;		/* NULL: the file's name, up to the first dot */
	const char *target;		/* file whose BTF is the target's; NULL:
					 * /sys/kernel/btf/vmlinux */
	const struct pb_bpf_btf *target_btf;	/* used instead of that file; the loader indexes
						 * it */
	const char *types;		/* file whose BTF is searched before the target's, usually
					 * the traced program; NULL: none */
	const char *kconfig;		/* lines CONFIG_X=value, for variables in .kconfig */
	uint32_t kernel_version;	/* value of LINUX_KERNEL_VERSION; 0: the running kernel's */
	uint32_t type;			/* type of programs whose section names none */
};

/*
 * Returns 0, or -errno with the reason in `err` (size bytes, may be 0): -EINVAL (not an eBPF
 * object, or an inconsistent one), -ENOMEM, or the error of opening or reading the file.
 */
int pb_bpf_object_open(const char *path, const struct pb_bpf_object_opts *opts,
		       struct pb_bpf_object **object, char *err, size_t size);
int pb_bpf_object_open_memory(const void *bytes, size_t nr, const struct pb_bpf_object_opts *opts,
			      struct pb_bpf_object **object, char *err, size_t size);
void pb_bpf_object_close(struct pb_bpf_object *object);

/*
 * Sets a variable's initial value, before maps are made. The value is a number as in C, true or
 * false, or text for an array of characters. This is meant for constants (const volatile), but
 * other variables can be set as well. Returns 0, -ENOENT (no variable of that name), -EINVAL (the
 * variable is neither a number nor text, or the value is no number), -ERANGE (the value doesn't
 * fit), -ENOMEM.
 */
int pb_bpf_object_set(struct pb_bpf_object *object, const char *name, const char *value);

/* The attributes that the map is made with. What the object leaves open (the entries of perf event
 * arrays, the size of ring buffers) is set for `cpus` processors and pages of 4 KiB.
 * pb_bpf_map_attr_settle() does the same for attributes that the caller gives. */
struct pb_bpf_map_attr pb_bpf_object_map_attr(const struct pb_bpf_object_map *map, uint32_t cpus);
struct pb_bpf_map_attr pb_bpf_map_attr_settle(struct pb_bpf_map_attr attr, uint32_t cpus);

/*
 * Parses the target: FUNCTION[+OFFSET] for the kprobe family, PATH:FUNCTION[+OFFSET] for the uprobe
 * family, with offsets as in C. Returns 0, -ENOENT (the section names no target), or -EINVAL (the
 * target isn't of that form, or programs of this kind have none).
 */
int pb_bpf_object_target(const struct pb_bpf_object_prog *prog, struct pb_bpf_target *target);


/*
 * Returns the failed CO-RE relocation that made the verifier reject the program, or NULL. In that
 * case the log says that function PB_BPF_POISON is unknown: "12: (85) call unknown#195896080".
 */
const char *pb_bpf_object_explain(const struct pb_bpf_object_prog *prog, const char *log);

/* The number of the program, or of the map, of that name; -ENOENT: there is none. */
int pb_bpf_object_prog(const struct pb_bpf_object *object, const char *name);
int pb_bpf_object_map(const struct pb_bpf_object *object, const char *name);
#endif
