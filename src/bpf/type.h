/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Program types: a table of what each is called, how its context is laid out and
 * which helpers it may call.
 *
 * A context's shape is the kernel's (linux/bpf.h). What a program is handed is a
 * structure of ours; the verifier's rewriting turns an access to a field into one
 * access to the place where it lies. So a pointer can stand where the shape has a
 * __u32, and everything else lies where the shape has it.
 */
#ifndef PB_BPF_TYPE_H
#define PB_BPF_TYPE_H
#include <linux/bpf.h>
#include <stdbool.h>
#include <stdint.h>

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
	PB_BPF_FIELD_NARROW = 4,	/* a part of it may be read: 1, 2, 4 bytes, aligned */
	PB_BPF_FIELD_ANY = 8,		/* an array: any aligned 1, 2, 4, 8 bytes inside */
	PB_BPF_FIELD_WRITE_PERFMON = 16,/* writable with CAP_PERFMON/CAP_BPF only */
	PB_BPF_FIELD_READ_PRIV = 32,	/* readable with privilege only */
	PB_BPF_FIELD_WIDE = 64,		/* an array of u32 that may be accessed as u64, too */
};

struct pb_bpf_field {
	const char *name;
	uint16_t off, size;		/* in the shape */
	uint16_t at, width;		/* in what is handed over; width: bytes to load there (of pointers 8) */
	uint8_t kind, flags;
};

struct pb_bpf_type {
	uint32_t type;			/* BPF_PROG_TYPE_ */
	const char *name;		/* bpftool's word */
	uint32_t helpers;		/* enum pb_bpf_helper_set, besides BASE, CAP_BPF, PERFMON */
	bool unpriv;			/* may be loaded without CAP_BPF */
	bool packet;			/* its helpers and itself access packets directly, with rights: */
	bool packet_writable;
	bool ld_abs;			/* LD_ABS and LD_IND may be used */
	uint16_t ctx_size;		/* of the shape; 0: `any_scalar` words up to 8 × MAX_BPF_FUNC_ARGS or size */
	bool any_scalar;		/* any aligned read inside is a scalar (tracepoints: up to a page) */
	const struct pb_bpf_field *fields;
	uint32_t nr_fields;
	bool (*may_call)(uint32_t helper, uint32_t attach_type);	/* exceptions to the sets; NULL: none */
};

/* NULL: none of ours. */
const struct pb_bpf_type *pb_bpf_type_of(uint32_t type);
const struct pb_bpf_type *pb_bpf_type_named(const char *name);
#endif
