/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* LD_ABS and LD_IND: loads from a packet, in network byte order. program.h has the contract of
 * pb_bpf_ld_abs(). */
#include <linux/filter.h>
#include "bpf/core/packet.h"
#include "bpf/core/program.h"

/* Returns the address to which the offset *off is relative (the base), and changes *off to the
 * distance from this base. A negative offset refers to a header, as in classic filters
 * (linux/filter.h). NULL: there is no such header. */
static const uint8_t *origin(const struct pb_bpf_skb *skb, int64_t *off)
{
	const uint8_t *mac = skb->mac;

	if (*off >= 0)
		return skb->pkt.data;
	if (*off >= SKF_NET_OFF) {
		*off -= SKF_NET_OFF;
		return skb->net;
	}
	if (*off >= SKF_LL_OFF && mac) {
		*off -= SKF_LL_OFF;
		return mac;
	}
	return NULL;
}

uint64_t pb_bpf_ld_abs(uint64_t ctx, uint64_t offset, uint64_t width, uint64_t r4, uint64_t r5,
		       struct pb_bpf_run *run)
{
	const struct pb_bpf_skb *skb = (const struct pb_bpf_skb *)ctx;
	int64_t off = (int32_t)offset;
	const uint8_t *p = origin(skb, &off);
	uint64_t v = 0;

	if (!p || p < skb->pkt.head || p > skb->pkt.data_end ||
	    off + (int64_t)width > skb->pkt.data_end - p)
		return 1ull << 63;
	for (uint64_t i = 0; i < width; i++)
		v = v << 8 | p[(uint64_t)off + i];
	return v;
}
