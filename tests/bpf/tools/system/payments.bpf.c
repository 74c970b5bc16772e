/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Each value of the map `accounts` has a sum and the double of the sum. A spin lock keeps these two
 * numbers consistent while several processes add. */
#include "../tool.h"

struct account {
	struct bpf_spin_lock lock;
	u32 torn;
	u64 number, sum, twice;
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 4);
	__type(key, u32);
	__type(value, struct account);
} accounts SEC(".maps");

SEC("tc") int pay(struct __sk_buff *skb)
{
	u32 account = bpf_get_prandom_u32() & 3, amount = skb->len;
	struct account *a = bpf_map_lookup_elem(&accounts, &account);

	if (!a)
		return 0;
	bpf_spin_lock(&a->lock);
	if (a->twice != 2 * a->sum)
		a->torn++;
	a->number++;
	a->sum += amount;
	a->twice += 2 * amount;
	bpf_spin_unlock(&a->lock);
	return 0;
}
