/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Program types: a table of their names, the layouts of their contexts, and the helpers that they
 * may call.
 *
 * Programs see a context with the kernel's layout (linux/bpf.h), called its shape here. The
 * structure that a program actually gets is Patchbay's. pb_bpf_resolve() rewrites an access to a
 * field into one access to the place where the structure has it. So the structure can have a
 * pointer where the shape has a __u32. All other fields are where the shape has them.
 */
#ifndef PB_BPF_HELPER_PROG_TYPE_H
#define PB_BPF_HELPER_PROG_TYPE_H
#include <linux/bpf.h>
#include <stdbool.h>
#include <stdint.h>

/* The loader's privileges, under the kernel's names. */
enum pb_bpf_caps {
	PB_BPF_CAP_BPF = 1,		/* loops and calls of all kinds, larger programs */
	PB_BPF_CAP_PERFMON = 2,		/* may see addresses; no protection against speculation */
	PB_BPF_CAP_NET_ADMIN = 4,	/* may load program types that see the network */
	PB_BPF_CAP_ALL = 7,
};

/* Sets of helpers. A program type allows whole sets; a helper is in one or more. */
enum pb_bpf_helper_set {
	PB_BPF_SET_BASE = 1u << 0,	/* every type, without any privilege */
	PB_BPF_SET_CAP_BPF = 1u << 1,	/* every type, with CAP_BPF */
	PB_BPF_SET_PERFMON = 1u << 2,	/* every type, with CAP_BPF and CAP_PERFMON */
	PB_BPF_SET_NET_PERFMON = 1u << 3,/* types that have the set NET, with CAP_PERFMON */
	/* sets that pb_bpf_type's `helpers` may have; they need no privilege */
	PB_BPF_SET_TRACING = 1u << 4,	/* kprobe, tracepoint, raw_tracepoint, perf_event */
	PB_BPF_SET_KPROBE = 1u << 5,
	PB_BPF_SET_KPROBE_MULTI = 1u << 6,	/* kprobe attached to many functions */
	PB_BPF_SET_TRACEPOINT = 1u << 7,
	PB_BPF_SET_RAW_TRACEPOINT = 1u << 8,
	PB_BPF_SET_PERF_EVENT = 1u << 9,
	PB_BPF_SET_NET = 1u << 10,	/* socket_filter, xdp, sched_cls, cgroup_skb */
	PB_BPF_SET_SOCKET_FILTER = 1u << 11,	/* socket_filter, cgroup_skb */
	PB_BPF_SET_XDP = 1u << 12,
	PB_BPF_SET_SCHED_CLS = 1u << 13,
	PB_BPF_SET_CGROUP_SKB = 1u << 14,
	PB_BPF_SET_FENTRY = 1u << 15,	/* no type has it yet */
};

enum pb_bpf_field_kind {
	PB_BPF_FIELD_SCALAR,
	PB_BPF_FIELD_PKT,		/* packet data */
	PB_BPF_FIELD_PKT_META,
	PB_BPF_FIELD_PKT_END,
	PB_BPF_FIELD_FLOW_KEYS,		/* struct bpf_flow_keys */
	PB_BPF_FIELD_SOCK_COMMON,	/* struct bpf_sock or NULL */
	PB_BPF_FIELD_SOCKET,
};

enum pb_bpf_field_flags {
	PB_BPF_FIELD_READ = 1,
	PB_BPF_FIELD_WRITE = 2,
	PB_BPF_FIELD_NARROW = 4,	/* 1, 2 or 4 aligned bytes of an element may be read */
	PB_BPF_FIELD_ANY = 8,		/* any aligned 1, 2, 4 or 8 bytes may be accessed */
	PB_BPF_FIELD_READ_PRIV = 16,	/* read with CAP_BPF only */
	PB_BPF_FIELD_WRITE_PRIV = 32,	/* written with CAP_BPF only */
	PB_BPF_FIELD_NARROW_START = 64,	/* like NARROW, but only from the element's first byte */
	PB_BPF_FIELD_WIDE = 128,	/* may also be read as 4 bytes, with the padding after
					 * it */
	PB_BPF_FIELD_FULL = 256,	/* only full sockets have it */
	PB_BPF_FIELD_DEVMAP = 512,	/* only for programs attached to BPF_XDP_DEVMAP */
};

struct pb_bpf_field {
	const char *name;
	uint16_t off, size;		/* in the shape */
	uint16_t each;			/* of an array: an element's size, the unit of access */
	uint16_t at, width;		/* at: place in Patchbay's structure; width: bytes in which
					 * the kernel keeps the field */
	uint16_t flags, kind;
	uint32_t below;			/* a write of this value or a larger one isn't done; 0: no
					 * limit */
};

struct pb_bpf_type {
	uint32_t type;			/* BPF_PROG_TYPE_ */
	const char *name, *alias;	/* bpftool's name; a short one */
	uint32_t helpers;		/* enum pb_bpf_helper_set, besides BASE, CAP_BPF, PERFMON */
	bool unpriv;			/* may be loaded without CAP_BPF */
	bool packet;			/* programs and their helpers may access packets
					 * directly */
	bool packet_writable;
	bool ld_abs;			/* LD_ABS and LD_IND may be used */
	uint16_t ctx_size;		/* of the shape */
	/* if it has no fields: any aligned read between here and ctx_size is a scalar (registers,
	 * records) */
	uint16_t any_from;
	const struct pb_bpf_field *fields;
	uint32_t nr_fields;
};

/* Find a type by number, or by bpftool's name or the alias. NULL: not supported. */
const struct pb_bpf_type *pb_bpf_type_of(uint32_t type);
const struct pb_bpf_type *pb_bpf_type_named(const char *name);
/* The type in row nr of the table; NULL: there are no more. */
const struct pb_bpf_type *pb_bpf_type_at(uint32_t nr);

/* An access that is allowed, and what it is rewritten to. */
struct pb_bpf_ctx_access {
	uint8_t kind;			/* enum pb_bpf_field_kind; all except SCALAR are read
					 * whole */
	uint8_t width;			/* bytes to load or store there; 8 for pointers */
	uint16_t at;			/* place in Patchbay's structure */
	uint8_t field_size;		/* the kernel's ctx_field_size; 0: no part can be read */
	uint32_t below;			/* a write of this value or a larger one isn't done; 0: no
					 * limit */
	const char *name;		/* of the field; NULL: it has no name */
};

/*
 * Checks, like the kernel's is_valid_access, whether a program may read or write `size` bytes at
 * `off` of the context's shape. Returns 0 or -EACCES. caps: enum pb_bpf_caps.
 */
int pb_bpf_ctx_access(const struct pb_bpf_type *type, uint32_t caps, uint32_t attach_type, int off,
		      int size, bool write, struct pb_bpf_ctx_access *out);

enum pb_bpf_sock_kind {
	PB_BPF_SOCK_COMMON,		/* struct bpf_sock, any kind of socket */
	PB_BPF_SOCK_FULL,		/* struct bpf_sock */
	PB_BPF_SOCK_TCP,		/* struct bpf_tcp_sock */
	PB_BPF_SOCK_XDP,		/* struct bpf_xdp_sock */
};

/* Like pb_bpf_ctx_access(), but for sockets, which have the kernel's layout and are never
 * written. */
int pb_bpf_sock_access(enum pb_bpf_sock_kind kind, int off, int size, bool write,
		       struct pb_bpf_ctx_access *out);
#endif
