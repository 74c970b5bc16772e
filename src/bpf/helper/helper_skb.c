/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Helpers for packets in an sk_buff: bytes, checksums, and facts about packets. */
#include "bpf/helper/csum.h"
#include "bpf/helper/helper_priv.h"

#define MAX_LEVELS	4	/* SKB_MAX_CSUM_LEVEL + 1 */
#define MANGLED_0	0xffff	/* replaces 0, which in UDP means "no checksum" */

static struct pb_bpf_skb *skb_of(uint64_t r1)
{
	return PB_BPF_PTR(r1);
}

static uint32_t length(const struct pb_bpf_skb *skb)
{
	return (uint32_t)(skb->pkt.data_end - skb->pkt.data);
}

static bool is_inside(const struct pb_bpf_skb *skb, uint64_t offset, uint64_t len)
{
	return offset <= length(skb) && len <= length(skb) - offset;
}

/* r1 skb, r2 offset, r3 buffer, r4 its size */
PB_BPF_HELPER(skb_load_bytes)
{
	struct pb_bpf_skb *skb = skb_of(r1);

	if ((uint32_t)r2 > INT32_MAX || !is_inside(skb, (uint32_t)r2, (uint32_t)r4)) {
		memset(PB_BPF_PTR(r3), 0, (uint32_t)r4);
		return PB_BPF_ERR(EFAULT);
	}
	memcpy(PB_BPF_PTR(r3), skb->pkt.data + (uint32_t)r2, (uint32_t)r4);
	return 0;
}

/* r1 skb, r2 offset, r3 buffer, r4 its size, r5 the header to which r2 is relative */
PB_BPF_HELPER(skb_load_bytes_relative)
{
	struct pb_bpf_skb *skb = skb_of(r1);
	const uint8_t *start = (uint32_t)r5 == BPF_HDR_START_MAC ? skb->mac :
			       (uint32_t)r5 == BPF_HDR_START_NET ? skb->net : NULL;
	uint32_t off = (uint32_t)r2, len = (uint32_t)r4;

	if (off > 0xffff || !start || (uint64_t)(skb->pkt.data_end - start) < (uint64_t)off + len) {
		memset(PB_BPF_PTR(r3), 0, len);
		return PB_BPF_ERR(EFAULT);
	}
	memcpy(PB_BPF_PTR(r3), start + off, len);
	return 0;
}

static void forget_hash(struct pb_bpf_skb *skb)
{
	skb->s.hash = 0;
	skb->hash_known = false;
}

/* r1 skb, r2 offset, r3 data, r4 its size, r5 flags */
PB_BPF_HELPER(skb_store_bytes)
{
	struct pb_bpf_skb *skb = skb_of(r1);
	uint32_t off = (uint32_t)r2, len = (uint32_t)r4;
	uint8_t *to = skb->pkt.data + off;
	bool sum = skb->has_csum && r5 & BPF_F_RECOMPUTE_CSUM;

	if (r5 & ~(uint64_t)(BPF_F_RECOMPUTE_CSUM | BPF_F_INVALIDATE_HASH))
		return PB_BPF_ERR(EINVAL);
	if (off > INT32_MAX || !is_inside(skb, off, len))
		return PB_BPF_ERR(EFAULT);
	if (sum)
		skb->csum = pb_csum_sub(skb->csum, pb_csum_shift(pb_csum_partial(to, len, 0), off));
	memcpy(to, PB_BPF_PTR(r3), len);
	if (sum)
		skb->csum = pb_csum_add(skb->csum, pb_csum_shift(pb_csum_partial(to, len, 0), off));
	if (r5 & BPF_F_INVALIDATE_HASH)
		forget_hash(skb);
	return 0;
}

/* r2 the length that the program needs; 0: the current length. The whole packet is always readable
 * and writable. */
PB_BPF_HELPER(skb_pull_data)
{
	return (uint32_t)r2 > length(skb_of(r1)) ? PB_BPF_ERR(ENOMEM) : 0;
}

/* A word that may be unaligned: packets begin at any address. */
struct word { uint16_t v; } __attribute__((packed, may_alias));

/* Returns the address of the checksum at this offset, or NULL. */
static struct word *csum_at(struct pb_bpf_skb *skb, uint32_t off)
{
	if (off > 0xffff || off & 1 || !is_inside(skb, off, 2))
		return NULL;
	return (struct word *)(skb->pkt.data + off);
}

/* Returns the checksum after a word has changed from `from` to `to`. */
static uint16_t replaced(uint16_t sum, uint32_t from, uint32_t to)
{
	return pb_csum_fold(pb_csum_add(pb_csum_sub((uint32_t)~(uint32_t)sum, from), to));
}

static uint16_t replaced_by_diff(uint16_t sum, uint32_t diff)
{
	return pb_csum_fold(pb_csum_add(diff, ~(uint32_t)sum));
}

static uint16_t replaced2(uint16_t sum, uint16_t from, uint16_t to)
{
	uint32_t s = (uint16_t)~sum;

	s += (uint16_t)~from;
	s = (s & 0xffff) + (s >> 16);
	s += to;
	return (uint16_t)~((s & 0xffff) + (s >> 16));
}

/* r1 skb, r2 offset of the checksum, r3 old value, r4 new value, r5 width of the values (in
 * l4_csum_replace also flags). If the width is 0, r3 is 0 and r4 is a result of bpf_csum_diff */
PB_BPF_HELPER(l3_csum_replace)
{
	struct word *sum = csum_at(skb_of(r1), (uint32_t)r2);

	if (r5 & ~(uint64_t)BPF_F_HDR_FIELD_MASK)
		return PB_BPF_ERR(EINVAL);
	if (!sum)
		return PB_BPF_ERR(EFAULT);
	switch (r5) {
	case 0:
		if (r3)
			return PB_BPF_ERR(EINVAL);
		sum->v = replaced_by_diff(sum->v, (uint32_t)r4);
		return 0;
	case 2:
		sum->v = replaced2(sum->v, (uint16_t)r3, (uint16_t)r4);
		return 0;
	case 4:
		sum->v = replaced(sum->v, (uint32_t)r3, (uint32_t)r4);
		return 0;
	}
	return PB_BPF_ERR(EINVAL);
}

/* Updates the packet's sum (skb->csum) after the packet's checksum field was changed to match a new
 * pseudo header. The packet's sum includes the checksum field, but not the bytes of the pseudo
 * header. */
static void sum_of_pseudo(struct pb_bpf_skb *skb, uint32_t from, uint32_t to)
{
	if (skb->has_csum)
		skb->csum = ~pb_csum_add(pb_csum_sub(~skb->csum, from), to);
}

PB_BPF_HELPER(l4_csum_replace)
{
	struct pb_bpf_skb *skb = skb_of(r1);
	struct word *sum = csum_at(skb, (uint32_t)r2);
	uint32_t width = r5 & BPF_F_HDR_FIELD_MASK, mask = width == 2 ? 0xffff : 0xffffffff;

	if (r5 & ~(uint64_t)(BPF_F_MARK_MANGLED_0 | BPF_F_MARK_ENFORCE | BPF_F_PSEUDO_HDR |
			     BPF_F_HDR_FIELD_MASK | BPF_F_IPV6))
		return PB_BPF_ERR(EINVAL);
	if (!sum)
		return PB_BPF_ERR(EFAULT);
	if (r5 & BPF_F_MARK_MANGLED_0 && !(r5 & BPF_F_MARK_ENFORCE) && !sum->v)
		return 0;
	if ((width != 0 && width != 2 && width != 4) || (!width && r3))
		return PB_BPF_ERR(EINVAL);
	if (!width) {
		sum->v = replaced_by_diff(sum->v, (uint32_t)r4);
		/* for IPv6 the packet's sum stays the same, because the changes of the address in
		 * the packet and of the checksum field cancel out */
		if (r5 & BPF_F_PSEUDO_HDR && !(r5 & BPF_F_IPV6) && skb->has_csum)
			skb->csum = ~pb_csum_add((uint32_t)r4, ~skb->csum);
	} else {
		sum->v = replaced(sum->v, (uint32_t)r3 & mask, (uint32_t)r4 & mask);
		if (r5 & BPF_F_PSEUDO_HDR)
			sum_of_pseudo(skb, (uint32_t)r3 & mask, (uint32_t)r4 & mask);
	}
	if (r5 & BPF_F_MARK_MANGLED_0 && !sum->v)
		sum->v = MANGLED_0;
	return 0;
}

/* r1 old data, r2 its size, r3 new data, r4 its size, r5 initial sum */
PB_BPF_HELPER(csum_diff)
{
	const uint8_t *from = PB_BPF_PTR(r1);
	uint32_t nr = (uint32_t)r2, total = nr + (uint32_t)r4;
	uint64_t sum = 0;

	/* the verifier, as the kernel's, accepts NULL with a size that isn't 0 */
	if ((nr | (uint32_t)r4) & 3 || total > 512 || (!r1 && nr) || (!r3 && (uint32_t)r4))
		return PB_BPF_ERR(EINVAL);
	for (uint32_t i = 0; i < nr / 4; i++) {
		uint32_t word;

		memcpy(&word, from + 4 * i, 4);
		sum += ~word;
	}
	sum = (sum & 0xffffffff) + (sum >> 32);
	sum = pb_csum_add((uint32_t)((sum & 0xffffffff) + (sum >> 32)),
			  pb_csum_partial(PB_BPF_PTR(r3), (uint32_t)r4, 0));
	return pb_csum_add((uint32_t)sum, (uint32_t)r5);
}

PB_BPF_HELPER(csum_update)
{
	struct pb_bpf_skb *skb = skb_of(r1);

	if (!skb->has_csum)
		return PB_BPF_ERR(PB_BPF_ENOTSUPP);
	skb->csum = pb_csum_add(skb->csum, (uint32_t)r2);
	return skb->csum;
}

/* r2 what to do. The kernel's csum_level begins at 0, so it is csum_levels - 1. */
PB_BPF_HELPER(csum_level)
{
	struct pb_bpf_skb *skb = skb_of(r1);

	switch (r2) {
	case BPF_CSUM_LEVEL_QUERY:
		return skb->csum_levels ? skb->csum_levels - 1u : PB_BPF_ERR(EACCES);
	case BPF_CSUM_LEVEL_INC:
		skb->csum_levels += !skb->has_csum && skb->csum_levels < MAX_LEVELS;
		return 0;
	case BPF_CSUM_LEVEL_DEC:
		skb->csum_levels -= skb->csum_levels > 0;
		return 0;
	case BPF_CSUM_LEVEL_RESET:
		skb->csum_levels = 0;
		return 0;
	}
	return PB_BPF_ERR(EINVAL);
}

/* Hashes bytes 8 ... 43 from the network header on, without bytes 10 and 11 (IPv4's checksum).
 * In a packet without IP options or IPv6 extension headers, these bytes include the addresses and
 * ports. Any hash function will do. */
PB_BPF_HELPER(get_hash_recalc)
{
	struct pb_bpf_skb *skb = skb_of(r1);
	const uint8_t *p = skb->net;
	uint32_t n = (uint32_t)(skb->pkt.data_end - p), h = 0x811c9dc5;

	if (skb->hash_known)
		return skb->s.hash;
	for (uint32_t i = 8; i < n && i < 44; i++)
		h = (h ^ (i == 10 || i == 11 ? 0 : p[i])) * 0x01000193;
	skb->s.hash = h ? h : 1;
	skb->hash_known = true;
	return skb->s.hash;
}

PB_BPF_HELPER(set_hash_invalid)
{
	forget_hash(skb_of(r1));
	return 0;
}

PB_BPF_HELPER(set_hash)
{
	skb_of(r1)->s.hash = (uint32_t)r2;
	skb_of(r1)->hash_known = true;
	return 0;
}

PB_BPF_HELPER(get_cgroup_classid)
{
	return skb_of(r1)->classid;
}

PB_BPF_HELPER(skb_cgroup_classid)
{
	return skb_of(r1)->s.sk ? skb_of(r1)->classid : 0;
}

PB_BPF_HELPER(get_route_realm)
{
	return skb_of(r1)->realm;
}

PB_BPF_HELPER(get_socket_cookie)
{
	const struct pb_bpf_sock *sk = (const void *)skb_of(r1)->s.sk;

	return sk ? sk->cookie : 0;
}

PB_BPF_HELPER(get_socket_uid)
{
	return skb_of(r1)->s.sk ? skb_of(r1)->uid : 65534;	/* the overflow uid */
}

PB_BPF_HELPER(skb_cgroup_id)
{
	const struct pb_bpf_skb *skb = skb_of(r1);

	return skb->s.sk && skb->nr_cgroups ? skb->cgroups[skb->nr_cgroups - 1] : 0;
}

PB_BPF_HELPER(skb_ancestor_cgroup_id)
{
	const struct pb_bpf_skb *skb = skb_of(r1);

	return skb->s.sk && (uint32_t)r2 < skb->nr_cgroups ? skb->cgroups[(uint32_t)r2] : 0;
}

/* r2 a cgroup_array, r3 index */
PB_BPF_HELPER(skb_under_cgroup)
{
	const struct pb_bpf_skb *skb = skb_of(r1);
	struct pb_bpf_map *map = PB_BPF_PTR(r2);
	uint32_t index = (uint32_t)r3;
	uint64_t *cgroup;

	if (!skb->s.sk)
		return PB_BPF_ERR(ENOENT);
	if (index >= map->attr.max_entries)
		return PB_BPF_ERR(E2BIG);
	cgroup = map->ops->lookup(map, &index, run);
	if (!cgroup)
		return PB_BPF_ERR(EAGAIN);
	for (uint32_t i = 0; i < skb->nr_cgroups; i++)
		if (skb->cgroups[i] == *cgroup)
			return 1;
	return 0;
}

/* r2 index, r3 struct bpf_xfrm_state, r4 its size, r5 flags */
PB_BPF_HELPER(skb_get_xfrm_state)
{
	const struct pb_bpf_skb *skb = skb_of(r1);
	uint32_t i = (uint32_t)r2;

	if (i >= skb->nr_xfrm || r5 || (uint32_t)r4 != sizeof(*skb->xfrm)) {
		memset(PB_BPF_PTR(r3), 0, (uint32_t)r4);
		return PB_BPF_ERR(EINVAL);
	}
	memcpy(PB_BPF_PTR(r3), &skb->xfrm[i], sizeof(*skb->xfrm));
	return 0;
}

/* Both the old type and the new type must be at most PACKET_OTHERHOST. */
PB_BPF_HELPER(skb_change_type)
{
	struct pb_bpf_skb *skb = skb_of(r1);

	if (skb->s.pkt_type > 3 || (uint32_t)r2 > 3)
		return PB_BPF_ERR(EINVAL);
	skb->s.pkt_type = (uint32_t)r2;
	return 0;
}

/* r2 timestamp, r3 its type */
PB_BPF_HELPER(skb_set_tstamp)
{
	struct pb_bpf_skb *skb = skb_of(r1);

	if (skb->s.protocol != 0x0008 && skb->s.protocol != 0xdd86)
		return PB_BPF_ERR(EOPNOTSUPP);
	if ((uint32_t)r3 == BPF_SKB_TSTAMP_DELIVERY_MONO) {
		if (!r2)
			return PB_BPF_ERR(EINVAL);
	} else if ((uint32_t)r3 != BPF_SKB_TSTAMP_UNSPEC || r2) {
		return PB_BPF_ERR(EINVAL);
	}
	skb->s.tstamp = r2;
	skb->s.tstamp_type = (uint8_t)r3;
	return 0;
}
