/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Has three loops: over the bytes of a text with bpf_loop, over the elements of a map, and in a
 * global function. */
#include "../tool.h"

#define LONGEST	96

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 256);
	__type(key, u32);
	__type(value, u64);
} letters SEC(".maps");

struct text {
	char c[LONGEST];
	u32 n;
	u64 sum;
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct text);
} scratch SEC(".maps");

u64 texts, all_letters, different, most, sums, by_hand;

static long one_letter(u32 i, struct text **at)
{
	struct text *t = *at;
	u32 letter;

	if (i >= LONGEST - 1)
		return 1;
	letter = (u8)t->c[i];
	if (!letter)
		return 1;
	count_in(&letters, &letter, 1);
	t->sum += letter;
	return 0;
}

struct best {
	u64 n, all, most;
};

static long one_element(void *map, const u32 *key, u64 *count, struct best *b)
{
	b->n++;
	b->all += *count;
	if (*count > b->most)
		b->most = *count;
	return 0;
}

/* A global function: the verifier checks it separately. `t` may be NULL or a pointer to any struct
 * text. */
__attribute__((noinline)) int sum_of(const struct text *t)
{
	u32 sum = 0;

	if (!t)
		return -1;
	for (int i = 0; i < LONGEST; i++) {
		if (!t->c[i])
			break;
		sum += (u8)t->c[i];
	}
	return sum;
}

SEC("uprobe/calls:say") int BPF_KPROBE(on_say, const char *text)
{
	struct best b = { 0 };
	struct text *t;
	u32 zero = 0;

	t = bpf_map_lookup_elem(&scratch, &zero);
	if (!t)
		return 0;
	t->sum = 0;
	if (bpf_probe_read_user_str(t->c, sizeof(t->c), text) < 0)
		return 0;
	bpf_loop(LONGEST, one_letter, &t, 0);
	bpf_for_each_map_elem(&letters, one_element, &b, 0);
	texts++;
	sums += t->sum;
	by_hand += sum_of(t);
	different = b.n;
	all_letters = b.all;
	most = b.most;
	return 0;
}
