/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Helpers for the sockets that the context describes, and for tunnels. */
#include <stddef.h>
#include "bpf/helper/helper_priv.h"

#define TCP_LISTEN	10

PB_BPF_HELPER(sk_fullsock)
{
	struct pb_bpf_sock *sk = PB_BPF_PTR(r1);

	return sk->full ? r1 : 0;
}

PB_BPF_HELPER(tcp_sock)
{
	struct pb_bpf_sock *sk = PB_BPF_PTR(r1);

	return sk->full ? (uint64_t)sk->tcp : 0;
}

PB_BPF_HELPER(get_listener_sock)
{
	struct pb_bpf_sock *sk = PB_BPF_PTR(r1);

	return sk->s.state == TCP_LISTEN ? r1 : (uint64_t)sk->listener;
}

/* Patchbay has no table of sockets. So a lookup never finds a socket, and a program never has a
 * socket to release. */
PB_BPF_HELPER(sk_lookup_tcp)
{
	return 0;
}

PB_BPF_HELPER(sk_lookup_udp)
{
	return 0;
}

PB_BPF_HELPER(skc_lookup_tcp)
{
	return 0;
}

PB_BPF_HELPER(sk_release)
{
	return 0;
}

/* Returns whether an older version of struct bpf_tunnel_key had this size. A key with an IPv6
 * address must have room for the whole address. */
static bool is_older_key(uint32_t size, bool ipv6)
{
	switch (size) {
	case offsetof(struct bpf_tunnel_key, local_ipv6[0]):
	case offsetof(struct bpf_tunnel_key, tunnel_label):
	case offsetof(struct bpf_tunnel_key, tunnel_ext):
		return true;
	case offsetof(struct bpf_tunnel_key, remote_ipv6[1]):
		return !ipv6;
	}
	return false;
}

static int get_key(const struct pb_bpf_tunnel *t, struct bpf_tunnel_key *key, uint32_t size,
		   uint64_t flags)
{
	bool ipv6 = flags & BPF_F_TUNINFO_IPV6;

	if (!t->known || flags & ~(uint64_t)(BPF_F_TUNINFO_IPV6 | BPF_F_TUNINFO_FLAGS))
		return -EINVAL;
	if (t->ipv6 != ipv6)
		return -EPROTO;
	if (size != sizeof(*key) && !is_older_key(size, ipv6))
		return -EINVAL;
	*key = t->key;
	if (!(flags & BPF_F_TUNINFO_FLAGS))
		key->tunnel_ext = 0;
	if (!ipv6) {
		memset(&key->remote_ipv6[1], 0, 12);
		memset(&key->local_ipv6[1], 0, 12);
		key->tunnel_label = 0;
	}
	return 0;
}

/* r2 key, r3 its size, r4 flags */
PB_BPF_HELPER(skb_get_tunnel_key)
{
	struct bpf_tunnel_key key;
	int err = get_key(&((struct pb_bpf_skb *)PB_BPF_PTR(r1))->rx, &key, (uint32_t)r3, r4);

	if (err)
		memset(PB_BPF_PTR(r2), 0, (uint32_t)r3);
	else
		memcpy(PB_BPF_PTR(r2), &key, (uint32_t)r3);
	return (uint64_t)(int64_t)err;
}

/* The kernel's flags of tunnels (TUNNEL_), in network byte order. */
#define TUN_CSUM	0x0100
#define TUN_KEY		0x0400
#define TUN_SEQ		0x0800
#define TUN_NO_FRAGMENT	0x0001
#define TUN_NO_CACHE	0x0020
#define TUN_OPTIONS	0x00d8	/* options of any kind */

/* Called after a program has set a tunnel key. As in the kernel, later reads get this key, with
 * local and remote addresses exchanged. */
static void take_key(struct pb_bpf_skb *skb, const struct bpf_tunnel_key *key, uint64_t flags)
{
	struct pb_bpf_tunnel *t = &skb->rx;

	*t = (struct pb_bpf_tunnel){ .known = true, .ipv6 = flags & BPF_F_TUNINFO_IPV6 };
	t->key = *key;
	memcpy(t->key.remote_ipv6, key->local_ipv6, 16);
	memcpy(t->key.local_ipv6, key->remote_ipv6, 16);
	t->key.tunnel_label &= 0xfffff;
	t->key.tunnel_flags = TUN_KEY | TUN_NO_CACHE | (flags & BPF_F_ZERO_CSUM_TX ? 0 : TUN_CSUM) |
			      (flags & BPF_F_DONT_FRAGMENT ? TUN_NO_FRAGMENT : 0) |
			      (flags & BPF_F_SEQ_NUMBER ? TUN_SEQ : 0);
}

PB_BPF_HELPER(skb_set_tunnel_key)
{
	struct pb_bpf_skb *skb = PB_BPF_PTR(r1);
	struct pb_bpf_tunnel *t = &skb->tx;
	struct bpf_tunnel_key key = { 0 };
	uint32_t size = (uint32_t)r3;

	if (r4 & ~(uint64_t)(BPF_F_TUNINFO_IPV6 | BPF_F_ZERO_CSUM_TX | BPF_F_DONT_FRAGMENT |
			     BPF_F_SEQ_NUMBER))
		return PB_BPF_ERR(EINVAL);
	if (size != sizeof(key) && !is_older_key(size, false))
		return PB_BPF_ERR(EINVAL);
	memcpy(&key, PB_BPF_PTR(r2), size);
	if ((!(r4 & BPF_F_TUNINFO_IPV6) && key.tunnel_label) || key.tunnel_ext)
		return PB_BPF_ERR(EINVAL);
	t->key = key;
	t->known = true;
	t->ipv6 = r4 & BPF_F_TUNINFO_IPV6;
	t->flags = r4;
	t->opt_len = 0;
	take_key(skb, &key, r4);
	return 0;
}

/* r2 buffer, r3 its size */
PB_BPF_HELPER(skb_get_tunnel_opt)
{
	const struct pb_bpf_tunnel *t = &((struct pb_bpf_skb *)PB_BPF_PTR(r1))->rx;
	uint32_t size = (uint32_t)r3;
	int err = !t->known || !t->has_opt ? -ENOENT : size < t->opt_len ? -ENOMEM : 0;

	memset(PB_BPF_PTR(r2), 0, size);
	if (err)
		return (uint64_t)(int64_t)err;
	memcpy(PB_BPF_PTR(r2), t->opt, t->opt_len);
	return t->opt_len;
}

PB_BPF_HELPER(skb_set_tunnel_opt)
{
	struct pb_bpf_skb *skb = PB_BPF_PTR(r1);
	struct pb_bpf_tunnel *t = &skb->tx;
	uint32_t size = (uint32_t)r3;

	if (!t->known || size % 4)
		return PB_BPF_ERR(EINVAL);
	if (size > sizeof(t->opt) - 1)		/* IP_TUNNEL_OPTS_MAX is 255 */
		return PB_BPF_ERR(ENOMEM);
	memcpy(t->opt, PB_BPF_PTR(r2), size);
	memcpy(skb->rx.opt, t->opt, size);
	t->opt_len = skb->rx.opt_len = size;
	skb->rx.has_opt = true;
	skb->rx.key.tunnel_flags |= TUN_OPTIONS;
	return 0;
}
