/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Program types and their contexts. The rules are those of Linux 6.1: is_valid_access in
 * net/core/filter.c and kernel/trace/bpf_trace.c.
 */
#include <asm/errno.h>
#include <asm/ptrace.h>
#include <linux/bpf_perf_event.h>
#include <stddef.h>
#include "base/mem.h"
#include "bpf/core/packet.h"
#include "bpf/helper/prog_type.h"

#define TRACE_SIZE	8192	/* size of the largest record of a tracepoint
				 * (PERF_MAX_TRACE_SIZE) */
#define RAW_TP_ARGS	12	/* MAX_BPF_FUNC_ARGS */

#define R	PB_BPF_FIELD_READ
#define W	PB_BPF_FIELD_WRITE
#define RN	(PB_BPF_FIELD_READ | PB_BPF_FIELD_NARROW)
#define SIZE(shape, member)	sizeof(((struct shape *)0)->member)

/* A field that is at the same offset in Patchbay's structure and in the shape (prog_type.h). */
#define FIELD(shape, member, width_, flags_, ...) \
	{ .name = #member, .off = offsetof(struct shape, member), .size = SIZE(shape, member), \
	  .at = offsetof(struct shape, member), .width = (width_), .flags = (flags_), __VA_ARGS__ }
/* A field whose value is a pointer in struct pb_bpf_pkt. handed: Patchbay's structure. */
#define FIELD_PKT(shape, handed, member, flags_, kind_) \
	{ .name = #member, .off = offsetof(struct shape, member), .size = 4, \
	  .at = offsetof(struct handed, pkt.member), .flags = (flags_), \
		  .kind = PB_BPF_FIELD_##kind_ }
#define SKB(member, flags_, ...) \
	FIELD(__sk_buff, member, SIZE(__sk_buff, member), flags_, __VA_ARGS__)
/* A field that the kernel keeps in 16 bits. */
#define SKB16(member, flags_, ...)	FIELD(__sk_buff, member, 2, flags_, __VA_ARGS__)
#define SKB_PKT(member, flags_, kind_)	FIELD_PKT(__sk_buff, pb_bpf_skb, member, flags_, kind_)

/* The fields that all types with a __sk_buff have. */
#define SKB_FIELDS(mark_, priority_, tc_index_, queue_mapping_) \
	SKB(len, RN), FIELD(__sk_buff, pkt_type, 1, RN), SKB(mark, mark_), \
	SKB16(queue_mapping, queue_mapping_, .below = 0xffff), \
	SKB16(protocol, RN), SKB(vlan_present, RN), SKB16(vlan_tci, RN), SKB16(vlan_proto, RN), \
	SKB(priority, priority_), SKB(ingress_ifindex, RN), SKB(ifindex, RN), \
	SKB16(tc_index, tc_index_), \
	SKB(cb, R | W | PB_BPF_FIELD_ANY), SKB(hash, RN), SKB(napi_id, RN), SKB16(gso_segs, RN), \
	SKB16(gso_size, RN), SKB(sk, R, .kind = PB_BPF_FIELD_SOCK_COMMON)

static const struct pb_bpf_field socket_filter_fields[] = {
	SKB_FIELDS(RN, RN, RN, RN),
};

static const struct pb_bpf_field sched_cls_fields[] = {
	SKB_FIELDS(RN | W, RN | W, RN | W, RN | W),
	SKB16(tc_classid, RN | W), SKB(wire_len, RN), SKB(tstamp, R | W), SKB(tstamp_type, R),
	SKB(hwtstamp, R), SKB_PKT(data, R, PKT), SKB_PKT(data_end, R, PKT_END),
	SKB_PKT(data_meta, R, PKT_META),
};

static const struct pb_bpf_field cgroup_skb_fields[] = {
	SKB_FIELDS(RN | W, RN | W, RN, RN),
	SKB16(family, RN), SKB(remote_ip4, R), SKB(local_ip4, R), SKB(remote_ip6, R, .each = 4),
	SKB(local_ip6, R, .each = 4), SKB16(remote_port, RN), SKB16(local_port, RN),
	SKB(tstamp, R | W | PB_BPF_FIELD_WRITE_PRIV), SKB(hwtstamp, R),
	SKB_PKT(data, R | PB_BPF_FIELD_READ_PRIV, PKT),
	SKB_PKT(data_end, R | PB_BPF_FIELD_READ_PRIV, PKT_END),
};

#define XDP(member, flags_)	FIELD(xdp_md, member, 4, flags_)
#define XDP_PKT(member, kind_)	FIELD_PKT(xdp_md, pb_bpf_xdp, member, R, kind_)

static const struct pb_bpf_field xdp_fields[] = {
	XDP_PKT(data, PKT), XDP_PKT(data_end, PKT_END), XDP_PKT(data_meta, PKT_META),
	XDP(ingress_ifindex, R), XDP(rx_queue_index, R),
	XDP(egress_ifindex, R | PB_BPF_FIELD_DEVMAP),
};

static const struct pb_bpf_field perf_event_fields[] = {
	FIELD(bpf_perf_event_data, regs, 8, R, .each = 8),
	FIELD(bpf_perf_event_data, sample_period, 8, RN), FIELD(bpf_perf_event_data, addr, 8, RN),
};

#define FIELDS(table)	.fields = table, .nr_fields = sizeof(table) / sizeof(table[0])
#define SET(name)	PB_BPF_SET_##name

static const struct pb_bpf_type types[] = {
	{ BPF_PROG_TYPE_SOCKET_FILTER, "socket_filter", "socket", SET(NET) | SET(SOCKET_FILTER),
	  .unpriv = true, .ld_abs = true, .ctx_size = sizeof(struct __sk_buff),
	  FIELDS(socket_filter_fields) },
	{ BPF_PROG_TYPE_KPROBE, "kprobe", "uprobe", SET(TRACING) | SET(KPROBE),
	  .ctx_size = sizeof(struct pt_regs) },
	{ BPF_PROG_TYPE_SCHED_CLS, "sched_cls", "cls", SET(NET) | SET(SCHED_CLS), .packet = true,
	  .packet_writable = true, .ld_abs = true, .ctx_size = sizeof(struct __sk_buff),
	  FIELDS(sched_cls_fields) },
	{ BPF_PROG_TYPE_SCHED_ACT, "sched_act", "act", SET(NET) | SET(SCHED_CLS), .packet = true,
	  .packet_writable = true, .ld_abs = true, .ctx_size = sizeof(struct __sk_buff),
	  FIELDS(sched_cls_fields) },
	{ BPF_PROG_TYPE_TRACEPOINT, "tracepoint", "tp", SET(TRACING) | SET(TRACEPOINT),
	  .ctx_size = TRACE_SIZE, .any_from = 8 },
	{ BPF_PROG_TYPE_XDP, "xdp", "xdp", SET(NET) | SET(XDP), .packet = true,
		.packet_writable = true,
	  .ctx_size = sizeof(struct xdp_md), FIELDS(xdp_fields) },
	{ BPF_PROG_TYPE_PERF_EVENT, "perf_event", "perf", SET(TRACING) | SET(PERF_EVENT),
	  .ctx_size = sizeof(struct bpf_perf_event_data), FIELDS(perf_event_fields) },
	{ BPF_PROG_TYPE_CGROUP_SKB, "cgroup_skb", "cgroup/skb",
	  SET(NET) | SET(SOCKET_FILTER) | SET(CGROUP_SKB), .unpriv = true, .packet = true,
	  .ctx_size = sizeof(struct __sk_buff), FIELDS(cgroup_skb_fields) },
	{ BPF_PROG_TYPE_RAW_TRACEPOINT, "raw_tracepoint", "raw_tp",
		SET(TRACING) | SET(RAW_TRACEPOINT),
	  .ctx_size = RAW_TP_ARGS * 8 },
};

const struct pb_bpf_type *pb_bpf_type_at(uint32_t nr)
{
	return nr < sizeof(types) / sizeof(types[0]) ? &types[nr] : NULL;
}

const struct pb_bpf_type *pb_bpf_type_of(uint32_t type)
{
	const struct pb_bpf_type *t;

	for (uint32_t i = 0; (t = pb_bpf_type_at(i)); i++)
		if (t->type == type)
			return t;
	return NULL;
}

const struct pb_bpf_type *pb_bpf_type_named(const char *name)
{
	const struct pb_bpf_type *t;

	for (uint32_t i = 0; (t = pb_bpf_type_at(i)); i++)
		if (pb_streq(t->name, name) || pb_streq(t->alias, name))
			return t;
	return NULL;
}

static const struct pb_bpf_field *field_at(const struct pb_bpf_field *fields, uint32_t nr, int off)
{
	for (uint32_t i = 0; i < nr; i++)
		if (off >= fields[i].off && off - fields[i].off < fields[i].size)
			return &fields[i];
	return NULL;
}

static int each(const struct pb_bpf_field *f)
{
	return f->each ? f->each : f->size;
}

static bool size_fits(const struct pb_bpf_field *f, int off, int size, bool write)
{
	if (f->flags & PB_BPF_FIELD_ANY)
		return off + size <= f->off + f->size;
	if (size == each(f))
		return true;
	if (write)
		return false;
	if (f->flags & PB_BPF_FIELD_WIDE && size == 4)
		return true;
	if (f->flags & PB_BPF_FIELD_NARROW_START)
		return size < each(f) && off == f->off;
	return f->flags & PB_BPF_FIELD_NARROW && size < each(f);
}

static int field_access(const struct pb_bpf_field *f, int off, int size, bool write,
			struct pb_bpf_ctx_access *out)
{
	bool part = f->flags & (PB_BPF_FIELD_NARROW | PB_BPF_FIELD_NARROW_START);

	if (!(f->flags & (write ? W : R)) || !size_fits(f, off, size, write))
		return -EACCES;
	*out = (struct pb_bpf_ctx_access){
		.kind = (uint8_t)f->kind, .at = f->at, .width = 8, .name = f->name,
		.field_size = (uint8_t)(part ? each(f) : 0), .below = write ? f->below : 0,
	};
	if (f->kind == PB_BPF_FIELD_SCALAR) {
		/* The kernel may keep a field in fewer bytes (f->width) than programs see. As in
		 * the kernel, a narrow read of at least f->width bytes gets the kept bytes, even if
		 * the read doesn't begin at the field's start. */
		if (write || size < f->width || size == each(f) || !part)
			out->at = (uint16_t)(f->at + off - f->off);
		out->width = (uint8_t)(write && size > f->width ? f->width : size);
	}
	return 0;
}

static bool has_rights(const struct pb_bpf_field *f, uint32_t caps, uint32_t attach_type,
		       bool write)
{
	uint32_t priv = write ? PB_BPF_FIELD_WRITE_PRIV : PB_BPF_FIELD_READ_PRIV;

	if (f->flags & priv && !(caps & PB_BPF_CAP_BPF))
		return false;
	return !(f->flags & PB_BPF_FIELD_DEVMAP) || attach_type == BPF_XDP_DEVMAP;
}

int pb_bpf_ctx_access(const struct pb_bpf_type *type, uint32_t caps, uint32_t attach_type, int off,
		      int size, bool write, struct pb_bpf_ctx_access *out)
{
	const struct pb_bpf_field *f;

	if (off < 0 || off >= type->ctx_size || off % size)
		return -EACCES;
	if (!type->fields) {
		if (write || off < type->any_from || off + size > type->ctx_size)
			return -EACCES;
		*out = (struct pb_bpf_ctx_access){ .at = (uint16_t)off, .width = (uint8_t)size };
		return 0;
	}
	f = field_at(type->fields, type->nr_fields, off);
	if (!f || !has_rights(f, caps, attach_type, write))
		return -EACCES;
	return field_access(f, off, size, write, out);
}

/* Sockets */
#define RS	(R | PB_BPF_FIELD_NARROW_START)
#define SOCK(member, flags_, ...)	FIELD(bpf_sock, member, 4, flags_, __VA_ARGS__)
/* The fields from `first` to `last`, as one row of the table. Each of them has each_ bytes. */
#define TCP(first, last, each_) \
	{ .name = #first, .off = offsetof(struct bpf_tcp_sock, first), \
	  .size = offsetof(struct bpf_tcp_sock, last) + SIZE(bpf_tcp_sock, last) - \
		  offsetof(struct bpf_tcp_sock, first), \
	  .each = (each_), .at = offsetof(struct bpf_tcp_sock, first), .flags = R }

static const struct pb_bpf_field sock_fields[] = {
	SOCK(bound_dev_if, R), SOCK(family, RS), SOCK(type, RS | PB_BPF_FIELD_FULL),
	SOCK(protocol, RS | PB_BPF_FIELD_FULL), SOCK(mark, R | PB_BPF_FIELD_FULL),
	SOCK(priority, R | PB_BPF_FIELD_FULL), SOCK(src_ip4, RN), SOCK(src_ip6, RN, .each = 4),
	SOCK(src_port, RS), SOCK(dst_port, RN | PB_BPF_FIELD_WIDE), SOCK(dst_ip4, RN),
	SOCK(dst_ip6, RN, .each = 4), SOCK(state, RS), SOCK(rx_queue_mapping, RS),
};

static const struct pb_bpf_field tcp_fields[] = {
	TCP(snd_cwnd, sacked_out, 4), TCP(bytes_received, bytes_acked, 8),
	TCP(dsack_dups, icsk_retransmits, 4),
};

static const struct pb_bpf_field xdp_sock_fields[] = { FIELD(bpf_xdp_sock, queue_id, 4, R) };

int pb_bpf_sock_access(enum pb_bpf_sock_kind kind, int off, int size, bool write,
		       struct pb_bpf_ctx_access *out)
{
	static const struct { const struct pb_bpf_field *fields; uint32_t nr; } of[] = {
#define TABLE(t) { t, sizeof(t) / sizeof(t[0]) }
		[PB_BPF_SOCK_COMMON] = TABLE(sock_fields), [PB_BPF_SOCK_FULL] = TABLE(sock_fields),
		[PB_BPF_SOCK_TCP] = TABLE(tcp_fields), [PB_BPF_SOCK_XDP] = TABLE(xdp_sock_fields),
#undef TABLE
	};
	const struct pb_bpf_field *f = off < 0 || off % size ? NULL :
				       field_at(of[kind].fields, of[kind].nr, off);

	if (!f || (kind == PB_BPF_SOCK_COMMON && f->flags & PB_BPF_FIELD_FULL))
		return -EACCES;
	return field_access(f, off, size, write, out);
}
