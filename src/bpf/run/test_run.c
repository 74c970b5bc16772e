/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Builds packets and contexts, runs a program on them, and copies out the results. */
#include <asm/errno.h>
#include <stddef.h>
#include <sys/mman.h>
#include "base/base.h"
#include "base/mem.h"
#include "bpf/helper/csum.h"
#include "bpf/helper/prog_type.h"
#include "bpf/map/map.h"
#include "bpf/run/image.h"
#include "bpf/run/test_run.h"

#define PAGE		4096u
#define ETH_HEADER	14u
#define SKB_ROOM	64u	/* NET_SKB_PAD */
#define XDP_ROOM	256u	/* XDP_PACKET_HEADROOM */
#define XDP_FRAME	40u	/* the part of XDP_ROOM that the kernel reserves */
#define SHARED_INFO	320u	/* bytes of the kernel's struct skb_shared_info */
#define MAX_META	(XDP_ROOM - XDP_FRAME)
#define MAX_PACKET	0x10000u
#define MAX_SEGS	65535u
#define LOOPBACK	1
#define TCP_CLOSE	7
#define NET16(v)	__builtin_bswap16(v)
#define LOW_OF(member)	offsetof(struct __sk_buff, member)
#define END_OF(member) \
	(offsetof(struct __sk_buff, member) + sizeof(((struct __sk_buff *)0)->member))

/* | inaccessible | slack | head room | packet | tail room | slack | inaccessible | */
struct buffer {
	uint8_t *map;
	size_t size;
	uint8_t *head, *data, *end;
};

static int buffer_make(struct buffer *b, const struct pb_bpf_test_run *t, uint32_t head,
		       uint32_t tail)
{
	uint32_t n = t->data_size_in;
	size_t used;

	if (!t->data_in)
		return -EFAULT;
	if (t->tight)
		head = tail = 0;
	used = (size_t)head + n + tail;
	b->size = pb_align_up(used, (size_t)PAGE) + 2 * PAGE;
	b->map = pb_bpf_pages->map(b->size);
	if (!b->map)
		return -ENOMEM;
	b->end = b->map + b->size - PAGE;
	b->head = t->begin_tight ? b->map + PAGE : b->end - used;
	b->end = b->head + used;
	b->data = b->head + head;
	if (pb_bpf_pages->protect(b->map, PAGE, PROT_NONE) ||
	    pb_bpf_pages->protect(b->map + b->size - PAGE, PAGE, PROT_NONE)) {
		pb_bpf_pages->unmap(b->map, b->size);
		return -ENOMEM;
	}
	memcpy(b->data, t->data_in, n);
	return 0;
}

static void buffer_free(struct buffer *b)
{
	pb_bpf_pages->unmap(b->map, b->size);
}

static bool is_zero(const void *p, size_t from, size_t to)
{
	for (; from < to; from++)
		if (((const uint8_t *)p)[from])
			return false;
	return true;
}

/* Copies the caller's context, at most `size` bytes. If the context is larger than `size`, the
 * bytes after the first `size` must be zero. */
static int read_ctx(const struct pb_bpf_test_run *t, void *ctx, uint32_t size)
{
	if (!t->ctx_in)
		return 0;
	if (t->ctx_size_in > PAGE ||
	    (t->ctx_size_in > size && !is_zero(t->ctx_in, size, t->ctx_size_in)))
		return -E2BIG;
	memcpy(ctx, t->ctx_in, t->ctx_size_in < size ? t->ctx_size_in : size);
	return 0;
}

static int write_out(void *out, uint32_t *room, const void *from, uint32_t size)
{
	uint32_t n = *room && *room < size ? *room : size;

	if (out)
		memcpy(out, from, n);
	*room = size;
	return n < size ? -ENOSPC : 0;
}

static int write_ctx(struct pb_bpf_test_run *t, const void *ctx, uint32_t size)
{
	uint32_t n = t->ctx_size_out < size ? t->ctx_size_out : size;

	if (!t->ctx_out)
		return 0;
	memcpy(t->ctx_out, ctx, n);
	t->ctx_size_out = size;
	return n < size ? -ENOSPC : 0;
}

static void run_all(struct pb_bpf_test_run *t, void *ctx)
{
	uint32_t repeat = t->repeat ? t->repeat : 1;
	struct pb_bpf_run run = { .host = t->host, .cookie = t->cookie, .cpu_slot = t->cpu_slot };
	uint64_t begin, each;

	run.thread = (uint32_t)t->host->pid_tgid(&run);
	begin = t->host->clock(&run, PB_BPF_MONOTONIC);
	for (uint32_t i = 0; i < repeat; i++) {
		run.prog = t->prog;
		run.ctx = ctx;
		run.tail_calls = 0;
		t->retval = (uint32_t)(t->interpret ? pb_bpf_interpret(&run) : pb_bpf_enter(&run));
	}
	each = (t->host->clock(&run, PB_BPF_MONOTONIC) - begin) / repeat;
	t->duration = each > UINT32_MAX ? UINT32_MAX : (uint32_t)each;
}

/* ---- sk_buff ------------------------------------------------------------------------ */

/* Returns false if the caller has set a field that callers may not set. */
static bool may_be_set(const struct __sk_buff *s)
{
	return is_zero(s, 0, LOW_OF(mark)) && is_zero(s, END_OF(mark), LOW_OF(priority)) &&
	       is_zero(s, END_OF(ifindex), LOW_OF(cb)) && is_zero(s, END_OF(cb), LOW_OF(tstamp)) &&
	       is_zero(s, END_OF(gso_segs), LOW_OF(gso_size)) &&
	       is_zero(s, END_OF(gso_size), LOW_OF(hwtstamp)) &&
	       is_zero(s, END_OF(hwtstamp), sizeof(*s));
}

static int take_fields(struct pb_bpf_skb *skb, const struct __sk_buff *in)
{
	struct __sk_buff *s = &skb->s;

	if (!may_be_set(in) ||
	    (in->wire_len && (in->wire_len < s->len || in->wire_len > MAX_PACKET)) ||
	    in->gso_segs > MAX_SEGS)
		return -EINVAL;
	s->mark = in->mark;
	s->priority = in->priority;
	s->ingress_ifindex = in->ingress_ifindex;
	memcpy(s->cb, in->cb, sizeof(s->cb));
	s->tstamp = in->tstamp;
	s->wire_len = in->wire_len ? in->wire_len : s->len;
	s->gso_segs = in->gso_segs;
	s->gso_size = (uint16_t)in->gso_size;
	s->hwtstamp = in->hwtstamp;
	return 0;
}

/* Copies out the fields that the kernel returns. */
static void copy_fields_out(const struct pb_bpf_skb *skb, struct __sk_buff *out)
{
	const struct __sk_buff *s = &skb->s;

	out->mark = s->mark;
	out->priority = s->priority;
	out->ingress_ifindex = s->ingress_ifindex;
	out->ifindex = s->ifindex;
	memcpy(out->cb, s->cb, sizeof(s->cb));
	out->tstamp = s->tstamp;
	out->wire_len = s->wire_len;
	out->gso_segs = s->gso_segs;
	out->hwtstamp = s->hwtstamp;
}

/* Sets the packet's type and protocol from its Ethernet header, as the loopback device does. This
 * device's MAC address is 0. */
static void read_ethernet(struct pb_bpf_skb *skb)
{
	static const uint8_t all[6] = { 0xff, 0xff, 0xff, 0xff, 0xff, 0xff };
	const uint8_t *eth = skb->mac;
	uint16_t type;

	memcpy(&type, eth + 12, 2);
	if (!is_zero(eth, 0, 6))
		skb->s.pkt_type = !(eth[0] & 1) ? 3 : memcmp(eth, all, 6) ? 2 : 1;
	if (NET16(type) >= 0x600)
		skb->s.protocol = type;
	else if (skb->pkt.data_end - skb->net >= 2 && skb->net[0] == 0xff && skb->net[1] == 0xff)
		skb->s.protocol = NET16(0x0001);
	else
		skb->s.protocol = NET16(0x0004);
}

/* Copies the addresses of the packet's socket into the context. In the kernel, a program's read of
 * these fields leads to the socket. */
static void copy_addresses(struct pb_bpf_skb *skb)
{
	const struct bpf_sock *sk = (const void *)skb->s.sk;

	skb->s.family = sk->family;
	skb->s.local_ip4 = sk->src_ip4;
	skb->s.remote_ip4 = sk->dst_ip4;
	memcpy(skb->s.local_ip6, sk->src_ip6, sizeof(sk->src_ip6));
	memcpy(skb->s.remote_ip6, sk->dst_ip6, sizeof(sk->dst_ip6));
	skb->s.local_port = sk->src_port;
	skb->s.remote_port = (uint32_t)sk->dst_port << 16;	/* as in the kernel, the upper half
								 * has the port */
}

/* Makes a socket for the packet, with the packet's addresses. */
static int make_socket(struct pb_bpf_skb *skb, struct pb_bpf_sock *sk)
{
	size_t there = (size_t)(skb->pkt.data_end - skb->net);

	*sk = (struct pb_bpf_sock){ .full = true, .cookie = 1 };
	sk->s.state = TCP_CLOSE;
	sk->s.rx_queue_mapping = -1;
	if (skb->s.protocol == NET16(0x0800)) {
		if (there < 20)
			return -EINVAL;
		sk->s.family = 2;
		memcpy(&sk->s.src_ip4, skb->net + 12, 4);
		memcpy(&sk->s.dst_ip4, skb->net + 16, 4);
	} else if (skb->s.protocol == NET16(0x86dd)) {
		if (there < 40)
			return -EINVAL;
		sk->s.family = 10;
		memcpy(sk->s.src_ip6, skb->net + 8, 16);
		memcpy(sk->s.dst_ip6, skb->net + 24, 16);
	}
	if (!skb->s.sk)
		skb->s.sk = &sk->s;
	copy_addresses(skb);
	return 0;
}

static bool is_link_level(uint32_t type)
{
	return type == BPF_PROG_TYPE_SCHED_CLS || type == BPF_PROG_TYPE_SCHED_ACT;
}

static void make_skb(struct pb_bpf_skb *skb, const struct pb_bpf_test_run *t,
		     const struct buffer *b, const struct __sk_buff *ctx)
{
	if (t->about) {
		*skb = *t->about;
		skb->has_csum = false;
		skb->csum_levels = 0;
	} else {
		*skb = (struct pb_bpf_skb){ 0 };
	}
	skb->s = (struct __sk_buff){ .ifindex = ctx->ifindex > LOOPBACK ? ctx->ifindex : LOOPBACK,
				     .sk = t->about ? t->about->s.sk : NULL };
	skb->pkt = (struct pb_bpf_pkt){ b->data, b->data + t->data_size_in, b->data, b->head,
		b->end };
	skb->mac = b->data;
	skb->net = b->data + ETH_HEADER;
	read_ethernet(skb);
}

/* Skips the link-layer header, for program types whose packets begin after it. */
static void begin_at_net(struct pb_bpf_skb *skb)
{
	skb->pkt.data = skb->pkt.data_meta = skb->net;
	skb->s.len = (uint32_t)(skb->pkt.data_end - skb->pkt.data);
}

static uint32_t sum_of(const struct pb_bpf_skb *skb)
{
	return pb_csum_partial(skb->net, (uint32_t)(skb->pkt.data_end - skb->net), 0);
}

static int finish_skb(struct pb_bpf_test_run *t, struct pb_bpf_skb *skb, struct __sk_buff *ctx)
{
	int err, err2;

	if (!is_link_level(t->prog->type->type)) {
		skb->pkt.data -= ETH_HEADER;
		memset(skb->pkt.data, 0, ETH_HEADER);
	}
	if (t->flags & BPF_F_TEST_SKB_CHECKSUM_COMPLETE &&
	    pb_csum_fold(skb->csum) != pb_csum_fold(sum_of(skb)))
		return -EBADMSG;
	copy_fields_out(skb, ctx);
	t->redirect_ifindex = skb->redirect_ifindex;
	err = write_out(t->data_out, &t->data_size_out, skb->pkt.data,
			(uint32_t)(skb->pkt.data_end - skb->pkt.data));
	err2 = err ? 0 : write_ctx(t, ctx, sizeof(*ctx));
	return err ? err : err2;
}

static int run_skb(struct pb_bpf_test_run *t)
{
	struct __sk_buff ctx = { 0 };
	struct pb_bpf_sock sk;
	struct pb_bpf_skb skb;
	struct buffer b;
	int err;

	if (t->flags & ~(uint32_t)BPF_F_TEST_SKB_CHECKSUM_COMPLETE || t->cpu || t->batch_size ||
	    t->data_size_in < ETH_HEADER || t->data_size_in > PAGE - SKB_ROOM - SHARED_INFO)
		return -EINVAL;
	err = read_ctx(t, &ctx, sizeof(ctx));
	if (!err && ctx.ifindex > LOOPBACK && !(t->about && t->about->s.ifindex == ctx.ifindex))
		err = -ENODEV;
	if (!err)
		err = buffer_make(&b, t, MAX_PACKET, MAX_PACKET);
	if (err)
		return err;
	make_skb(&skb, t, &b, &ctx);
	err = make_socket(&skb, &sk);
	skb.s.len = t->data_size_in;
	if (!is_link_level(t->prog->type->type))
		begin_at_net(&skb);
	if (!err && (t->ctx_in || t->ctx_out))
		err = take_fields(&skb, &ctx);
	if (!err) {
		skb.has_csum = t->flags & BPF_F_TEST_SKB_CHECKSUM_COMPLETE;
		skb.csum = skb.has_csum ? sum_of(&skb) : 0;
		run_all(t, &skb);
		err = finish_skb(t, &skb, &ctx);
	}
	buffer_free(&b);
	return err;
}

/* ---- xdp ---------------------------------------------------------------------------- */

static int check_md(const struct pb_bpf_test_run *t, const struct xdp_md *md)
{
	if (!t->ctx_in && !t->ctx_out)
		return 0;
	if (md->data_meta || md->data_end > t->data_size_in || md->data > md->data_end ||
	    md->data % 4 || md->data > MAX_META || md->egress_ifindex ||
	    (!md->ingress_ifindex && md->rx_queue_index))
		return -EINVAL;
	if (md->ingress_ifindex > LOOPBACK)
		return -ENODEV;
	return md->rx_queue_index ? -EINVAL : 0;
}

static int run_xdp(struct pb_bpf_test_run *t)
{
	struct xdp_md md = { 0 };
	struct pb_bpf_xdp x = { 0 };
	struct buffer b;
	uint32_t room;
	int err;

	if (t->attach_type == BPF_XDP_DEVMAP || t->attach_type == BPF_XDP_CPUMAP || t->flags ||
	    t->batch_size)
		return -EINVAL;
	err = read_ctx(t, &md, sizeof(md));
	if (!err)
		err = check_md(t, &md);
	if (!err && (t->data_size_in - md.data < ETH_HEADER || t->data_size_in > MAX_PACKET))
		err = -EINVAL;
	room = PAGE - XDP_ROOM - SHARED_INFO;
	if (!err)
		err = buffer_make(&b, t, XDP_ROOM - XDP_FRAME - md.data,
				  t->data_size_in - md.data < room ? room -
				  (t->data_size_in - md.data) : 0);
	if (err)
		return err;
	x.md.ingress_ifindex = md.ingress_ifindex ? md.ingress_ifindex : LOOPBACK;
	x.pkt = (struct pb_bpf_pkt){ b.data + md.data, b.data + t->data_size_in, b.data, b.head,
		b.end };
	run_all(t, &x);
	md.data = (uint32_t)(x.pkt.data - x.pkt.data_meta);
	md.data_end = (uint32_t)(x.pkt.data_end - x.pkt.data_meta);
	t->redirect_ifindex = x.redirect_ifindex;
	err = write_out(t->data_out, &t->data_size_out, x.pkt.data_meta, md.data_end);
	if (!err)
		err = write_ctx(t, &md, sizeof(md));
	buffer_free(&b);
	return err;
}

/* ---- contexts without packets --------------------------------------------------------- */

static int run_raw_tp(struct pb_bpf_test_run *t)
{
	uint64_t args[12] = { 0 };

	if (t->data_in || t->data_out || t->ctx_out || t->duration || t->repeat || t->batch_size)
		return -EINVAL;
	if (t->ctx_size_in < t->prog->ctx_needed || t->ctx_size_in < t->ctx_needed ||
	    t->ctx_size_in > sizeof(args))
		return -EINVAL;
	if (!(t->flags & BPF_F_TEST_RUN_ON_CPU) && t->cpu)
		return -EINVAL;
	if (t->ctx_in)
		memcpy(args, t->ctx_in, t->ctx_size_in);
	run_all(t, args);
	t->duration = 0;
	return 0;
}

/* Runs a program on registers or a record from the caller, and returns them as the run has left
 * them. The kernel can't do this. */
static int run_ctx(struct pb_bpf_test_run *t)
{
	uint64_t ctx[8192 / 8] = { 0 };
	uint32_t size = t->prog->type->ctx_size;
	int err;

	if (!t->ctx_in)
		return -PB_BPF_ENOTSUPP;
	if (t->data_in || t->data_out || t->flags || t->cpu || t->batch_size)
		return -EINVAL;
	err = read_ctx(t, ctx, size);
	if (err)
		return err;
	if (t->prog->type->any_from)
		ctx[0] = 0;		/* helpers look here for the address of the registers; the
					 * caller's record has none */
	run_all(t, ctx);
	return write_ctx(t, ctx, size);
}

int pb_bpf_test_run(struct pb_bpf_test_run *t)
{
	/* a context and its size must be given together */
	if (!t->ctx_in != !t->ctx_size_in || !t->ctx_out != !t->ctx_size_out)
		return -EINVAL;
	switch (t->prog->type->type) {
	case BPF_PROG_TYPE_SOCKET_FILTER: case BPF_PROG_TYPE_SCHED_CLS:
	case BPF_PROG_TYPE_SCHED_ACT:
	case BPF_PROG_TYPE_CGROUP_SKB:
		return run_skb(t);
	case BPF_PROG_TYPE_XDP:
		return run_xdp(t);
	case BPF_PROG_TYPE_RAW_TRACEPOINT:
		return run_raw_tp(t);
	}
	return run_ctx(t);
}
