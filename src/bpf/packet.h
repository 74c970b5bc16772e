/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What programs that see packets are handed: the kernel's shape, as they see its
 * fields, and behind it what its pointers stand for. Whoever runs such a program
 * fills it; helpers change it.
 *
 *   head ... data_meta ... data ........ data_end ... end
 *        room          meta      packet           room
 */
#ifndef PB_BPF_PACKET_H
#define PB_BPF_PACKET_H
#include <linux/bpf.h>
#include <stdbool.h>
#include <stdint.h>

struct pb_bpf_pkt {
	uint8_t *data, *data_end, *data_meta;
	uint8_t *head, *end;		/* of the memory around it */
};

struct pb_bpf_tunnel {			/* what bpf_skb_get_tunnel_key tells, set_ changes */
	struct bpf_tunnel_key key;
	bool known, ipv6;
	uint8_t opt[256];
	uint32_t opt_len;
};

/* Of socket_filter, sched_cls, sched_act, cgroup_skb. */
struct pb_bpf_skb {
	struct __sk_buff s;		/* s.sk: struct bpf_sock * or NULL */
	struct pb_bpf_pkt pkt;
	uint8_t *mac;			/* the link layer's header; NULL: none */
	uint16_t mac_len;		/* bytes from there to the network's header */
	uint32_t csum;			/* with has_csum, over all of it */
	bool has_csum, hash_set;
	/* what the world says about it, for helpers that ask */
	uint64_t cgroup_id, cookie;
	uint64_t ancestors[16];		/* cgroups above, the root's first */
	uint32_t nr_ancestors, classid, realm, uid, xfrm_spi;
	struct pb_bpf_tunnel rx, tx;
	/* what the program wants done */
	uint32_t redirect_ifindex, redirect_flags, clones;
};

/* Of xdp. */
struct pb_bpf_xdp {
	struct xdp_md md;
	struct pb_bpf_pkt pkt;
	/* what bpf_redirect and bpf_redirect_map chose */
	uint32_t redirect_ifindex, redirect_flags, redirect_key;
	void *redirect_map;		/* struct pb_bpf_map */
};
#endif
