/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Helpers for packets of xdp programs. */
#include "bpf/helper/helper_priv.h"

#define ETH_HEADER	14
#define MAX_META	255	/* largest size of the metadata in bytes (Linux before 6.9 allows
				 * only 32). The size must also be a multiple of 4 */

static struct pb_bpf_pkt *pkt_of(uint64_t r1)
{
	return &((struct pb_bpf_xdp *)PB_BPF_PTR(r1))->pkt;
}

PB_BPF_HELPER(xdp_get_buff_len)
{
	return (uint64_t)(pkt_of(r1)->data_end - pkt_of(r1)->data);
}

/* r2 number of bytes, signed */
PB_BPF_HELPER(xdp_adjust_head)
{
	struct pb_bpf_pkt *p = pkt_of(r1);
	int64_t meta = p->data - p->data_meta, by = (int32_t)r2;

	if (by < p->head + meta - p->data || by > p->data_end - ETH_HEADER - p->data)
		return PB_BPF_ERR(EINVAL);
	if (meta)
		memmove(p->data_meta + by, p->data_meta, (size_t)meta);
	p->data_meta += by;
	p->data += by;
	return 0;
}

PB_BPF_HELPER(xdp_adjust_meta)
{
	struct pb_bpf_pkt *p = pkt_of(r1);
	int64_t by = (int32_t)r2, meta = p->data - p->data_meta - by;

	if (by < p->head - p->data_meta || meta < 0)
		return PB_BPF_ERR(EINVAL);
	if (meta % 4 || meta > MAX_META)
		return PB_BPF_ERR(EACCES);
	p->data_meta += by;
	return 0;
}

PB_BPF_HELPER(xdp_adjust_tail)
{
	struct pb_bpf_pkt *p = pkt_of(r1);
	int64_t by = (int32_t)r2;

	if (by > p->end - p->data_end || by < p->data + ETH_HEADER - p->data_end)
		return PB_BPF_ERR(EINVAL);
	if (by > 0)
		memset(p->data_end, 0, (size_t)by);
	p->data_end += by;
	return 0;
}

/* Checks that the packet has len bytes at off. Returns 0, -EFAULT or -EINVAL. */
static int check(const struct pb_bpf_pkt *p, uint32_t off, uint32_t len)
{
	if (off > 0xffff || len > 0xffff)
		return -EFAULT;
	return off + len > p->data_end - p->data ? -EINVAL : 0;
}

/* r2 offset, r3 buffer, r4 its size */
PB_BPF_HELPER(xdp_load_bytes)
{
	int err = check(pkt_of(r1), (uint32_t)r2, (uint32_t)r4);

	if (err)
		pb_bpf_hide(run, PB_BPF_PTR(r3), (uint32_t)r4);
	else
		memcpy(PB_BPF_PTR(r3), pkt_of(r1)->data + (uint32_t)r2, (uint32_t)r4);
	return (uint64_t)(int64_t)err;
}

PB_BPF_HELPER(xdp_store_bytes)
{
	int err = check(pkt_of(r1), (uint32_t)r2, (uint32_t)r4);

	if (!err)
		memcpy(pkt_of(r1)->data + (uint32_t)r2, PB_BPF_PTR(r3), (uint32_t)r4);
	return (uint64_t)(int64_t)err;
}

/* r1 a map of devices, r2 key, r3 flags (the action if the key is absent) */
PB_BPF_HELPER(redirect_map)
{
	struct pb_bpf_map *map = PB_BPF_PTR(r1);
	struct pb_bpf_xdp *xdp = run->ctx;
	uint32_t key = (uint32_t)r2, *entry;

	if (r3 & ~3ull)
		return XDP_ABORTED;
	entry = map->ops->lookup(map, &key, run);
	if (!entry)
		return r3;
	xdp->redirect_ifindex = *entry;
	xdp->redirect_flags = r3;
	xdp->redirect_map = map;
	return XDP_REDIRECT;
}
