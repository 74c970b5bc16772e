/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What programs that see packets are handed: the kernel's shape, as they see its
 * fields, and after it what its pointers stand for. The process that runs such a program
 * fills it; helpers change it.
 *
 *   head ... data_meta ... data ........ data_end ... end
 *        room          meta      packet           room
 *
 * There is no allocation in a run: where the kernel would take a larger buffer,
 * helpers say -ENOMEM when the room is used up. Words of the network are in its byte
 * order where the kernel's are.
 */
#ifndef PB_BPF_CORE_PACKET_H
#define PB_BPF_CORE_PACKET_H
#include <linux/bpf.h>
#include <stdbool.h>
#include <stdint.h>

struct pb_bpf_pkt {
	uint8_t *data, *data_end, *data_meta;
	uint8_t *head, *end;		/* of the memory around it */
};

/* What programs have as a socket; a struct bpf_sock to them. */
struct pb_bpf_sock {
	struct bpf_sock s;
	struct bpf_tcp_sock *tcp;	/* NULL: it isn't TCP */
	struct pb_bpf_sock *listener;	/* NULL: none; itself, if it listens */
	bool full;			/* not one that waits or asks */
	uint64_t cookie;
};

struct pb_bpf_tunnel {			/* what bpf_skb_get_tunnel_key returns and _set_ stores */
	struct bpf_tunnel_key key;
	bool known, ipv6, has_opt;
	uint64_t flags;			/* of bpf_skb_set_tunnel_key */
	uint8_t opt[256];
	uint32_t opt_len;
};

enum { PB_BPF_MAX_CGROUPS = 16 };

/* Of socket_filter, sched_cls, sched_act, cgroup_skb. */
struct pb_bpf_skb {
	struct __sk_buff s;		/* s.sk: struct pb_bpf_sock * or NULL; s.len goes with
					 * pkt */
	struct pb_bpf_pkt pkt;
	uint8_t *mac, *net;		/* the headers; mac may be NULL: there is none */
	uint32_t csum;			/* with has_csum: the sum of all bytes
					 * (CHECKSUM_COMPLETE) */
	bool has_csum;
	bool hash_known;		/* s.hash, as the card or a program has it */
	bool encapsulated;
	/* what the world says about it, for helpers that ask */
	uint64_t cgroups[PB_BPF_MAX_CGROUPS];	/* of its socket, the root's first, its own last */
	uint32_t nr_cgroups;
	uint32_t classid, realm, uid;
	const struct bpf_xfrm_state *xfrm;
	uint32_t nr_xfrm;
	struct pb_bpf_tunnel rx, tx;	/* rx: where it came in; tx: what the program chooses */
	/* the program's other choices */
	uint32_t redirect_ifindex;
	uint64_t redirect_flags;
	uint32_t clones;
};

/* Of xdp. */
struct pb_bpf_xdp {
	struct xdp_md md;
	struct pb_bpf_pkt pkt;
	/* what bpf_redirect and bpf_redirect_map chose */
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
