/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The contexts of programs that see packets. Each context begins with the kernel's structure, whose
 * fields programs access. After this structure come the packet's real addresses (`pkt`), and data
 * that only helpers use. The process that runs a program fills the context, and helpers change it.
 *
 *   head ... data_meta ... data ........ data_end ... end
 *        room          meta      packet           room
 *
 * A run allocates nothing. If a packet grows, helpers use the room around it, where the kernel
 * would allocate a larger buffer. If there is no room left, the helpers for an sk_buff return
 * -ENOMEM, and the helpers for xdp return -EINVAL. Each field has the same byte order as in the
 * kernel, which for some fields is network byte order.
 */
#ifndef PB_BPF_CORE_PACKET_H
#define PB_BPF_CORE_PACKET_H
#include <linux/bpf.h>
#include <stdbool.h>
#include <stdint.h>

struct pb_bpf_pkt {
	uint8_t *data, *data_end, *data_meta;
	uint8_t *head, *end;		/* the memory around the packet */
};

/* A socket. Programs see it as a struct bpf_sock. */
struct pb_bpf_sock {
	struct bpf_sock s;
	struct bpf_tcp_sock *tcp;	/* NULL: the socket isn't a TCP socket */
	struct pb_bpf_sock *listener;	/* the socket that listens (perhaps this socket itself);
					 * NULL: none */
	bool full;			/* a full socket: neither TIME_WAIT nor a request */
	uint64_t cookie;
};

struct pb_bpf_tunnel {			/* the data that bpf_skb_get_tunnel_key returns and
					 * bpf_skb_set_tunnel_key stores */
	struct bpf_tunnel_key key;
	bool known, ipv6, has_opt;
	uint64_t flags;			/* flags of bpf_skb_set_tunnel_key */
	uint8_t opt[256];
	uint32_t opt_len;
};

enum { PB_BPF_MAX_CGROUPS = 16 };

/* The context of socket_filter, sched_cls, sched_act and cgroup_skb programs. */
struct pb_bpf_skb {
	struct __sk_buff s;		/* s.sk is a struct pb_bpf_sock * or NULL; s.len is kept
					 * equal to pkt's length */
	struct pb_bpf_pkt pkt;
	uint8_t *mac, *net;		/* the headers; if mac is NULL, there is no link-layer
					 * header */
	uint32_t csum;			/* if has_csum is set: the sum of all bytes
					 * (CHECKSUM_COMPLETE) */
	bool has_csum;
	uint8_t csum_levels;		/* count of verified checksums (CHECKSUM_UNNECESSARY), at
					 * most 4; 0 if has_csum is set */
	bool hash_known;		/* the network card or a program has set s.hash */
	bool encapsulated;		/* bpf_skb_adjust_room has added an outer header */
	/* facts about the packet, for helpers */
	uint64_t cgroups[PB_BPF_MAX_CGROUPS];	/* cgroups of the packet's socket, from the root to
						 * the innermost */
	uint32_t nr_cgroups;
	uint32_t classid, realm, uid;
	const struct bpf_xfrm_state *xfrm;
	uint32_t nr_xfrm;
	struct pb_bpf_tunnel rx, tx;	/* rx: the tunnel by which the packet came in; tx: the
					 * tunnel that the program chose */
	/* other choices of the program */
	uint32_t redirect_ifindex;
	uint64_t redirect_flags;
	uint32_t clones;		/* count of copies that bpf_clone_redirect has sent */
};

/* The context of xdp programs. */
struct pb_bpf_xdp {
	struct xdp_md md;
	struct pb_bpf_pkt pkt;
	/* set by bpf_redirect and bpf_redirect_map */
	uint32_t redirect_ifindex;
	uint64_t redirect_flags;
	void *redirect_map;		/* struct pb_bpf_map, or NULL */
};

static inline struct pb_bpf_pkt *pb_bpf_pkt_of(uint32_t prog_type, void *ctx)
{
	return prog_type == BPF_PROG_TYPE_XDP ? &((struct pb_bpf_xdp *)ctx)->pkt
					      : &((struct pb_bpf_skb *)ctx)->pkt;
}
#endif
