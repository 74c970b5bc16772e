/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Helpers that change the length, headers or destination of packets in an sk_buff. */
#include "bpf/helper/csum.h"
#include "bpf/helper/helper_priv.h"

#define ETH_HEADER	14
#define VLAN_HEADER	4
#define IP4_HEADER	20
#define IP6_HEADER	40
#define MAX_LEN		16064	/* BPF_SKB_MAX_LEN */
/* protocols in network byte order */
#define PROTO_IP	0x0008
#define PROTO_IP6	0xdd86
#define PROTO_8021Q	0x0081
#define PROTO_8021AD	0xa888
#define PROTO_802_2	0x0400
#define PROTO_802_3	0x0100
#define TC_SHOT		2	/* TC_ACT_SHOT */
#define TC_REDIRECT	7	/* TC_ACT_REDIRECT */

static struct pb_bpf_skb *skb_of(uint64_t r1)
{
	return PB_BPF_PTR(r1);
}

static uint32_t length(const struct pb_bpf_skb *skb)
{
	return (uint32_t)(skb->pkt.data_end - skb->pkt.data);
}

static uint32_t headroom(const struct pb_bpf_skb *skb)
{
	return (uint32_t)(skb->pkt.data - skb->pkt.head);
}

static bool is_gso(const struct pb_bpf_skb *skb)
{
	return skb->s.gso_size;
}

/* Called after the packet's beginning or end has moved. */
static void moved(struct pb_bpf_skb *skb)
{
	skb->pkt.data_meta = skb->pkt.data;
	skb->s.len = length(skb);
}

static uint32_t mac_header_len(const struct pb_bpf_skb *skb)
{
	return (uint32_t)(skb->net - skb->mac);
}

/* Inserts `len` zero bytes at offset `off` of the packet. The bytes before `off` move to lower
 * addresses. */
static int push(struct pb_bpf_skb *skb, uint32_t off, uint32_t len)
{
	uint8_t *data = skb->pkt.data;
	uint32_t old = length(skb), n = off < old ? off : old;

	if (headroom(skb) < len)
		return -ENOMEM;
	memmove(data - len, data, n);
	memset(data - len + n, 0, off < old ? len : old + len - n);
	skb->pkt.data -= len;
	moved(skb);
	return 0;
}

static int pop(struct pb_bpf_skb *skb, uint32_t off, uint32_t len)
{
	uint8_t *data = skb->pkt.data;

	if (length(skb) < off + len)
		return -ENOMEM;
	/* as in the kernel, an odd offset makes no difference here */
	if (skb->has_csum)
		skb->csum = pb_csum_sub(skb->csum, pb_csum_partial(data + off, len, 0));
	memmove(data + len, data, off);
	skb->pkt.data += len;
	moved(skb);
	return 0;
}

/* Like push(), but for an offset before or in the network header. mac and net move with the bytes
 * before `off`. */
static int push_net(struct pb_bpf_skb *skb, uint32_t off, uint32_t len)
{
	int err = push(skb, off, len);

	if (!err) {
		skb->mac -= len;
		skb->net -= len;
	}
	return err;
}

static int pop_net(struct pb_bpf_skb *skb, uint32_t off, uint32_t len)
{
	int err = pop(skb, off, len);

	if (!err) {
		skb->mac += len;
		skb->net += len;
	}
	return err;
}

static void forget_hash(struct pb_bpf_skb *skb)
{
	skb->s.hash = 0;
	skb->hash_known = false;
}

/* r2 protocol in network byte order, r3 flags */
PB_BPF_HELPER(skb_change_proto)
{
	struct pb_bpf_skb *skb = skb_of(r1);
	uint16_t to = (uint16_t)r2;
	uint32_t diff = IP6_HEADER - IP4_HEADER;
	int err = -PB_BPF_ENOTSUPP;

	if (r3)
		return PB_BPF_ERR(EINVAL);
	if (skb->s.protocol == PROTO_IP && to == PROTO_IP6)
		err = push_net(skb, mac_header_len(skb), diff);
	else if (skb->s.protocol == PROTO_IP6 && to == PROTO_IP)
		err = pop_net(skb, mac_header_len(skb), diff);
	if (!err) {
		skb->s.protocol = to;
		forget_hash(skb);
	}
	return (uint64_t)(int64_t)err;
}

static uint32_t net_base_len(const struct pb_bpf_skb *skb)
{
	return skb->s.protocol == PROTO_IP ? IP4_HEADER : IP6_HEADER;
}

static int check_encap(const struct pb_bpf_skb *skb, uint32_t len, uint64_t flags)
{
	uint8_t inner_mac = (uint8_t)(flags >> BPF_ADJ_ROOM_ENCAP_L2_SHIFT);

	if (flags & BPF_F_ADJ_ROOM_ENCAP_L3_IPV4 && flags & BPF_F_ADJ_ROOM_ENCAP_L3_IPV6)
		return -EINVAL;
	if (flags & BPF_F_ADJ_ROOM_ENCAP_L4_GRE && flags & BPF_F_ADJ_ROOM_ENCAP_L4_UDP)
		return -EINVAL;
	if (flags & BPF_F_ADJ_ROOM_ENCAP_L2_ETH && inner_mac < ETH_HEADER)
		return -EINVAL;
	if (skb->encapsulated)
		return -EALREADY;
	return inner_mac > len ? -EINVAL : 0;
}

/* grow() and shrink() refuse a GSO packet, as the kernel does if the packet's GSO type is neither
 * TCP nor UDP_L4. A test run's packet has no GSO type. */
static int grow(struct pb_bpf_skb *skb, uint32_t off, uint32_t len, uint64_t flags)
{
	const uint64_t v4 = BPF_F_ADJ_ROOM_ENCAP_L3_IPV4, v6 = BPF_F_ADJ_ROOM_ENCAP_L3_IPV6;
	bool encap = flags & (v4 | v6);
	int err = is_gso(skb) ? -PB_BPF_ENOTSUPP : encap ? check_encap(skb, len, flags) : 0;

	if (!err)
		err = push_net(skb, off, len);
	if (!err && encap) {
		skb->encapsulated = true;
		skb->s.protocol = flags & v6 ? PROTO_IP6 : PROTO_IP;
	}
	return err;
}

static int shrink(struct pb_bpf_skb *skb, uint32_t off, uint32_t len, uint64_t flags)
{
	if (flags & ~(uint64_t)(BPF_F_ADJ_ROOM_FIXED_GSO | BPF_F_ADJ_ROOM_NO_CSUM_RESET))
		return -EINVAL;
	return is_gso(skb) ? -PB_BPF_ENOTSUPP : pop_net(skb, off, len);
}

/* r2 number of bytes, signed, r3 place (BPF_ADJ_ROOM_), r4 flags */
PB_BPF_HELPER(skb_adjust_room)
{
	const uint64_t common = BPF_F_ADJ_ROOM_FIXED_GSO | BPF_F_ADJ_ROOM_NO_CSUM_RESET;
	const uint64_t encap = BPF_F_ADJ_ROOM_ENCAP_L3_IPV4 | BPF_F_ADJ_ROOM_ENCAP_L3_IPV6 |
			       BPF_F_ADJ_ROOM_ENCAP_L4_GRE | BPF_F_ADJ_ROOM_ENCAP_L4_UDP |
			       BPF_F_ADJ_ROOM_ENCAP_L2_ETH |
			       (uint64_t)BPF_ADJ_ROOM_ENCAP_L2_MASK << BPF_ADJ_ROOM_ENCAP_L2_SHIFT;
	struct pb_bpf_skb *skb = skb_of(r1);
	int32_t diff = (int32_t)r2;
	uint32_t by = diff < 0 ? -(uint32_t)diff : (uint32_t)diff, off, l3;
	int err;

	if (r4 & ~(common | encap))
		return PB_BPF_ERR(EINVAL);
	if (by > 0xfff)
		return PB_BPF_ERR(EFAULT);
	if ((skb->s.protocol != PROTO_IP && skb->s.protocol != PROTO_IP6) ||
	    ((uint32_t)r3 != BPF_ADJ_ROOM_NET && (uint32_t)r3 != BPF_ADJ_ROOM_MAC))
		return PB_BPF_ERR(PB_BPF_ENOTSUPP);
	off = mac_header_len(skb) + ((uint32_t)r3 == BPF_ADJ_ROOM_NET ? net_base_len(skb) : 0);
	l3 = (uint32_t)(skb->pkt.data_end - skb->net);
	if (diff < 0 && (by >= l3 || l3 - by < net_base_len(skb)))
		return PB_BPF_ERR(PB_BPF_ENOTSUPP);
	if (diff >= 0 && length(skb) + by > MAX_LEN && !is_gso(skb))
		return PB_BPF_ERR(PB_BPF_ENOTSUPP);
	err = (diff < 0 ? shrink : grow)(skb, off, by, r4);
	if (!err && !(r4 & BPF_F_ADJ_ROOM_NO_CSUM_RESET))
		skb->csum_levels = 0;
	return (uint64_t)(int64_t)err;
}

/* r2 length, r3 flags */
PB_BPF_HELPER(skb_change_tail)
{
	struct pb_bpf_skb *skb = skb_of(r1);
	uint32_t len = (uint32_t)r2, old = length(skb);
	uint32_t least = skb->net > skb->pkt.data ? (uint32_t)(skb->net - skb->pkt.data) : 0;
	uint8_t *end = skb->pkt.data + len;

	if (r3 || len > MAX_LEN || len < least)
		return PB_BPF_ERR(EINVAL);
	if (skb->encapsulated)
		return PB_BPF_ERR(PB_BPF_ENOTSUPP);
	if (end > skb->pkt.end)
		return PB_BPF_ERR(ENOMEM);
	if (len > old)
		memset(skb->pkt.data_end, 0, len - old);
	/* as in the kernel, the packet no longer has a sum, but skb->csum stays. So a test run that
	 * checks the sum fails if the removed bytes weren't zero */
	if (len != old)
		skb->has_csum = false;
	skb->pkt.data_end = end;
	moved(skb);
	if (is_gso(skb))
		skb->s.gso_size = skb->s.gso_segs = 0;
	return 0;
}

/* r2 bytes to add, for a link-layer header, r3 flags */
PB_BPF_HELPER(skb_change_head)
{
	struct pb_bpf_skb *skb = skb_of(r1);
	uint32_t by = (uint32_t)r2, len = length(skb) + by;
	int err;

	if (r3 || (len > MAX_LEN && !is_gso(skb)) || len < by)
		return PB_BPF_ERR(EINVAL);
	err = push(skb, 0, by);
	if (err)
		return (uint64_t)(int64_t)err;
	skb->mac = skb->pkt.data;
	return 0;
}

static bool is_vlan(uint32_t proto)
{
	return proto == PROTO_8021Q || proto == PROTO_8021AD;
}

static uint16_t get16(const uint8_t *p)
{
	uint16_t v;

	memcpy(&v, p, 2);
	return v;
}

static void set_tag(struct pb_bpf_skb *skb, uint32_t proto, uint16_t tci)
{
	skb->s.vlan_proto = proto;
	skb->s.vlan_tci = tci;
	skb->s.vlan_present = 1;
}

/* Moves the VLAN tag from the metadata (s.vlan_tci) into the packet. */
static int insert_tag(struct pb_bpf_skb *skb)
{
	uint16_t proto = (uint16_t)skb->s.vlan_proto,
		tci = __builtin_bswap16((uint16_t)skb->s.vlan_tci);
	uint8_t *tag;
	int err;

	if (skb->pkt.data != skb->mac)
		return -EINVAL;
	err = push(skb, 12, VLAN_HEADER);
	if (err)
		return err;
	skb->mac -= VLAN_HEADER;
	skb->net -= VLAN_HEADER;	/* net is now the address of the tag's TCI. Linux 6.1
					 * differs: it leaves net unchanged */
	tag = skb->pkt.data + 12;
	memcpy(tag, &proto, 2);
	memcpy(tag + 2, &tci, 2);
	skb->s.protocol = proto;
	if (skb->has_csum)
		skb->csum = pb_csum_add(skb->csum, pb_csum_partial(tag, VLAN_HEADER, 0));
	return 0;
}

/* r2 protocol in network byte order, r3 tag */
PB_BPF_HELPER(skb_vlan_push)
{
	struct pb_bpf_skb *skb = skb_of(r1);
	uint16_t proto = is_vlan((uint16_t)r2) ? (uint16_t)r2 : PROTO_8021Q;
	int err = skb->s.vlan_present ? insert_tag(skb) : 0;

	if (!err)
		set_tag(skb, proto, (uint16_t)r3);
	return (uint64_t)(int64_t)err;
}

/* Returns the protocol that a frame's type field means. If the field is less than 1536, it is a
 * length, and the frame's protocol is 802.2 or Novell's raw 802.3. */
static uint16_t inner_protocol(const struct pb_bpf_skb *skb, uint16_t type)
{
	const uint8_t *rest = skb->pkt.data + 12 + VLAN_HEADER + 2;

	if (__builtin_bswap16(type) >= 1536)
		return type;
	return skb->pkt.data_end - rest >= 2 && get16(rest) == 0xffff ? PROTO_802_3 : PROTO_802_2;
}

/* Removes the VLAN tag from the packet. */
static int remove_tag(struct pb_bpf_skb *skb, uint16_t *tci)
{
	const uint8_t *tag = skb->pkt.data + 12;
	uint16_t proto;

	if (skb->pkt.data != skb->mac)
		return -EINVAL;
	if (length(skb) < ETH_HEADER + VLAN_HEADER)
		return -ENOMEM;
	*tci = __builtin_bswap16(get16(tag + 2));
	proto = inner_protocol(skb, get16(tag + 4));
	pop(skb, 12, VLAN_HEADER);
	skb->s.protocol = proto;
	skb->mac += VLAN_HEADER;
	if (skb->net - skb->pkt.data < ETH_HEADER)
		skb->net = skb->pkt.data + ETH_HEADER;
	return 0;
}

PB_BPF_HELPER(skb_vlan_pop)
{
	struct pb_bpf_skb *skb = skb_of(r1);
	uint32_t proto;
	uint16_t tci;
	int err;

	if (skb->s.vlan_present) {
		skb->s.vlan_present = 0;
		skb->s.vlan_tci = 0;
		skb->s.vlan_proto = 0;
	} else {
		err = is_vlan(skb->s.protocol) ? remove_tag(skb, &tci) : 0;
		if (err)
			return (uint64_t)(int64_t)err;
	}
	/* the next tag, if any, moves to the metadata */
	proto = skb->s.protocol;
	if (!is_vlan(proto))
		return 0;
	err = remove_tag(skb, &tci);
	if (!err)
		set_tag(skb, proto, tci);
	return (uint64_t)(int64_t)err;
}

/* Sets ECN in the network header to "congestion experienced". Returns 1. 0: ECN can't be set. */
PB_BPF_HELPER(skb_ecn_set_ce)
{
	struct pb_bpf_skb *skb = skb_of(r1);
	uint8_t *ip = skb->net;
	uint32_t there = (uint32_t)(skb->pkt.data_end - ip), from, to;
	uint16_t sum;

	if (skb->s.protocol == PROTO_IP && there >= IP4_HEADER) {
		uint8_t ecn = ip[1] & 3;

		if (ecn != 1 && ecn != 2)
			return ecn == 3;
		/* the header's checksum becomes smaller by what TOS grows */
		memcpy(&sum, ip + 10, 2);
		sum = pb_csum16_add(sum, (uint16_t)~((3 - ecn) << 8));
		memcpy(ip + 10, &sum, 2);
		ip[1] |= 3;
		return 1;
	}
	if (skb->s.protocol == PROTO_IP6 && there >= IP6_HEADER) {
		if (!(ip[1] & 0x30))
			return 0;
		memcpy(&from, ip, 4);
		ip[1] |= 0x30;
		memcpy(&to, ip, 4);
		/* the packet's sum changes. In IPv4 it stays the same, because the change of the
		 * header's checksum cancels the change of ECN */
		if (skb->has_csum)
			skb->csum = pb_csum_add(pb_csum_sub(skb->csum, from), to);
		return 1;
	}
	return 0;
}

/* r1 skb, r2 device, r3 flags */
PB_BPF_HELPER(clone_redirect)
{
	struct pb_bpf_skb *skb = skb_of(r1);
	int err;

	if (r3 & ~(uint64_t)BPF_F_INGRESS)
		return PB_BPF_ERR(EINVAL);
	if (is_gso(skb))
		return PB_BPF_ERR(EBADMSG);
	err = run->host->clone ? run->host->clone(run, (uint32_t)r2, r3) : -EINVAL;
	skb->clones += !err;
	return (uint64_t)(int64_t)err;
}

static uint64_t redirect(struct pb_bpf_run *run, uint64_t ifindex, uint64_t flags)
{
	struct pb_bpf_skb *skb = run->ctx;

	skb->redirect_ifindex = (uint32_t)ifindex;
	skb->redirect_flags = flags;
	return TC_REDIRECT;
}

/* r1 device, r2 flags */
PB_BPF_HELPER(redirect)
{
	struct pb_bpf_xdp *xdp = run->ctx;

	if (run->prog->type->type != BPF_PROG_TYPE_XDP)
		return r2 & ~(uint64_t)BPF_F_INGRESS ? TC_SHOT : redirect(run, r1, r2);
	if (r2)
		return XDP_ABORTED;
	xdp->redirect_ifindex = (uint32_t)r1;
	xdp->redirect_flags = 0;
	xdp->redirect_map = NULL;
	return XDP_REDIRECT;
}

/* Internal flags in redirect_flags: redirect_neigh or redirect_peer has chosen the destination. The
 * kernel has such flags, too. */
#define TO_NEIGH	(1u << 16)
#define TO_PEER		(1u << 17)

PB_BPF_HELPER(redirect_peer)
{
	return r2 ? TC_SHOT : redirect(run, r1, TO_PEER);
}

/* r1 device, r2 struct bpf_redir_neigh, r3 its size, r4 flags */
PB_BPF_HELPER(redirect_neigh)
{
	if (r4 || (r3 && (uint32_t)r3 < sizeof(struct bpf_redir_neigh)))
		return TC_SHOT;
	return redirect(run, r1, TO_NEIGH);
}
