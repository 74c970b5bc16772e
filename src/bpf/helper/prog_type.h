/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Program types: a table of their names, the layouts of their contexts, and the helpers that they
 * may call.
 *
 * A program is written for a context with the kernel's layout (linux/bpf.h). This layout is called
 * the context's *shape*. The structure that a program actually gets is Patchbay's. pb_bpf_resolve()
 * rewrites each access to a field of the shape into an access to the structure. So the fields data,
 * data_end and data_meta, which are __u32 in the shape, can be pointers at other places of the
 * structure. All other fields are at the same place in shape and structure.
 */
#ifndef PB_BPF_HELPER_PROG_TYPE_H
#define PB_BPF_HELPER_PROG_TYPE_H
#include <linux/bpf.h>
#include <stdbool.h>
#include <stdint.h>

/* The loader's privileges, under the kernel's names. */
enum pb_bpf_caps {
	PB_BPF_CAP_BPF = 1,		/* programs may have loops and calls of all kinds, and may
					 * be larger */
	PB_BPF_CAP_PERFMON = 2,		/* programs may see addresses, and get no protection against
					 * speculation */
	PB_BPF_CAP_NET_ADMIN = 4,	/* the loader may load sched_cls, sched_act and xdp
					 * programs */
	PB_BPF_CAP_ALL = 7,
};

/* Sets of helpers. A helper is in one or more sets, and a program type allows all helpers of some
 * sets. */
enum pb_bpf_helper_set {
	PB_BPF_SET_BASE = 1u << 0,	/* for every type, without any privilege */
	PB_BPF_SET_CAP_BPF = 1u << 1,	/* for every type, with CAP_BPF */
	PB_BPF_SET_PERFMON = 1u << 2,	/* for every type, with CAP_BPF and CAP_PERFMON */
	PB_BPF_SET_NET_PERFMON = 1u << 3,/* for types that have the set NET, with CAP_PERFMON */
	/* the following sets need no privilege; all but KPROBE_MULTI may be in pb_bpf_type's
	 * `helpers` */
	PB_BPF_SET_TRACING = 1u << 4,	/* kprobe, tracepoint, raw_tracepoint, perf_event */
	PB_BPF_SET_KPROBE = 1u << 5,
	PB_BPF_SET_KPROBE_MULTI = 1u << 6,	/* kprobe, if attached to many functions */
	PB_BPF_SET_TRACEPOINT = 1u << 7,
	PB_BPF_SET_RAW_TRACEPOINT = 1u << 8,
	PB_BPF_SET_PERF_EVENT = 1u << 9,
	PB_BPF_SET_NET = 1u << 10,	/* socket_filter, xdp, sched_cls, sched_act, cgroup_skb */
	PB_BPF_SET_SOCKET_FILTER = 1u << 11,	/* socket_filter, cgroup_skb */
	PB_BPF_SET_XDP = 1u << 12,
	PB_BPF_SET_SCHED_CLS = 1u << 13,	/* sched_cls, sched_act */
	PB_BPF_SET_CGROUP_SKB = 1u << 14,
	PB_BPF_SET_FENTRY = 1u << 15,	/* no type has this set yet */
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
	PB_BPF_FIELD_NARROW = 4,	/* programs may read 1, 2 or 4 aligned bytes of an
					 * element */
	PB_BPF_FIELD_ANY = 8,		/* programs may access any aligned 1, 2, 4 or 8 bytes */
	PB_BPF_FIELD_READ_PRIV = 16,	/* a read needs CAP_BPF */
	PB_BPF_FIELD_WRITE_PRIV = 32,	/* a write needs CAP_BPF */
	PB_BPF_FIELD_NARROW_START = 64,	/* like NARROW, but only from the element's first byte */
	PB_BPF_FIELD_WIDE = 128,	/* programs may also read 4 bytes: the field with the
					 * padding after it */
	PB_BPF_FIELD_FULL = 256,	/* only full sockets have the field */
	PB_BPF_FIELD_DEVMAP = 512,	/* only for programs whose attach type is BPF_XDP_DEVMAP */
};

struct pb_bpf_field {
	const char *name;
	uint16_t off, size;		/* place and size in the shape */
	uint16_t each;			/* for an array, or a row of fields of one size: the size of
					 * an element. A program may access only a whole element, or
					 * with NARROW a part of an element. For other fields: 0 */
	uint16_t at, width;		/* at: place in Patchbay's structure; width: bytes in which
					 * the kernel keeps the field */
	uint16_t flags, kind;
	uint32_t below;			/* a write of a value >= `below` has no effect; 0: no
					 * limit */
};

struct pb_bpf_type {
	uint32_t type;			/* BPF_PROG_TYPE_ */
	const char *name, *alias;	/* bpftool's name, and a short name */
	uint32_t helpers;		/* bits of enum pb_bpf_helper_set, from PB_BPF_SET_TRACING
					 * on */
	bool unpriv;			/* programs may be loaded without CAP_BPF */
	bool packet;			/* programs and their helpers may access packets
					 * directly */
	bool packet_writable;
	bool ld_abs;			/* programs may use LD_ABS and LD_IND */
	uint16_t ctx_size;		/* bytes of the shape */
	/* Used if `fields` is NULL, because the context is registers or a record. Then programs may
	 * read any aligned bytes from offset any_from on. The loaded value is a scalar. */
	uint16_t any_from;
	const struct pb_bpf_field *fields;
	uint32_t nr_fields;
};

/* Find a type by its number, or by bpftool's name or the alias. NULL: the type isn't supported. */
const struct pb_bpf_type *pb_bpf_type_of(uint32_t type);
const struct pb_bpf_type *pb_bpf_type_named(const char *name);
/* Returns the type in row nr of the table. NULL: the table has no such row. */
const struct pb_bpf_type *pb_bpf_type_at(uint32_t nr);

/* An access that is allowed, and the access that replaces it. */
struct pb_bpf_ctx_access {
	uint8_t kind;			/* enum pb_bpf_field_kind; a field that isn't a SCALAR must
					 * be read whole */
	uint8_t width;			/* bytes to load or store at `at`; 8 for pointers */
	uint16_t at;			/* place in Patchbay's structure */
	uint8_t field_size;		/* if the field's flags allow narrow reads: its size (the
					 * kernel's ctx_field_size); otherwise 0 */
	uint32_t below;			/* a write of a value >= `below` has no effect; 0: no
					 * limit */
	const char *name;		/* the field's name; NULL: the field has no name */
};

/*
 * Checks whether a program may read or write `size` bytes at `off` of the context's shape, like the
 * kernel's is_valid_access. If it may, returns 0 and describes in *out the access that replaces it.
 * Otherwise returns -EACCES. caps: enum pb_bpf_caps.
 */
int pb_bpf_ctx_access(const struct pb_bpf_type *type, uint32_t caps, uint32_t attach_type, int off,
		      int size, bool write, struct pb_bpf_ctx_access *out);

enum pb_bpf_sock_kind {
	PB_BPF_SOCK_COMMON,		/* struct bpf_sock of a socket of any kind */
	PB_BPF_SOCK_FULL,		/* struct bpf_sock of a full socket (packet.h) */
	PB_BPF_SOCK_TCP,		/* struct bpf_tcp_sock */
	PB_BPF_SOCK_XDP,		/* struct bpf_xdp_sock */
};

/* Like pb_bpf_ctx_access(), but for sockets. Sockets have the kernel's layout. Programs never write
 * to sockets. */
int pb_bpf_sock_access(enum pb_bpf_sock_kind kind, int off, int size, bool write,
		       struct pb_bpf_ctx_access *out);
#endif
