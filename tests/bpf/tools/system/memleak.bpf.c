/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Lists the blocks that malloc and related functions allocated, and that the program didn't free.
 * Groups these blocks by the stack of their allocation, and sums up their number and sizes. User
 * space sets the maximal number of blocks, the maximal number of stacks, and the maximal depth of a
 * stack.
 */
#include "../tool.h"

const volatile u64 min_size = 0;
const volatile u64 max_size = -1;

struct block {
	u64 size, ns;
	int stack;
};

/* both numbers are in one word, so that one atomic operation changes both */
union totals {
	struct {
		u64 bytes : 40;
		u64 blocks : 24;
	};
	u64 word;
};

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1024);
	__type(key, u32);
	__type(value, u64);
} asked SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__type(key, u64);
	__type(value, struct block);
} blocks SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 512);
	__type(key, u64);
	__type(value, union totals);
} by_stack SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_STACK_TRACE);
	__type(key, u32);
} stacks SEC(".maps");

static union totals none;

static void change(u64 stack, u64 size, bool more)
{
	union totals by = { .bytes = size, .blocks = 1 },
		*t = bpf_map_lookup_elem(&by_stack, &stack);

	if (!t) {
		bpf_map_update_elem(&by_stack, &stack, &none, BPF_NOEXIST);
		t = bpf_map_lookup_elem(&by_stack, &stack);
	}
	if (!t)
		return;
	if (more)
		__sync_fetch_and_add(&t->word, by.word);
	else
		__sync_fetch_and_sub(&t->word, by.word);
}

static int begin(u64 size)
{
	u32 tid = (u32)bpf_get_current_pid_tgid();

	if (size >= min_size && size <= max_size)
		bpf_map_update_elem(&asked, &tid, &size, BPF_ANY);
	return 0;
}

static int end(void *ctx, u64 address)
{
	u32 tid = (u32)bpf_get_current_pid_tgid();
	u64 *size = bpf_map_lookup_elem(&asked, &tid);
	struct block b;

	if (!size)
		return 0;
	__builtin_memset(&b, 0, sizeof(b));
	b.size = *size;
	b.ns = bpf_ktime_get_ns();
	bpf_map_delete_elem(&asked, &tid);
	if (!address)
		return 0;
	b.stack = bpf_get_stackid(ctx, &stacks, BPF_F_USER_STACK);
	bpf_map_update_elem(&blocks, &address, &b, BPF_ANY);
	change((u64)b.stack, b.size, true);
	return 0;
}

static int gone(u64 address)
{
	struct block *b = bpf_map_lookup_elem(&blocks, &address);

	if (!b)
		return 0;
	change((u64)b->stack, b->size, false);
	bpf_map_delete_elem(&blocks, &address);
	return 0;
}

SEC("uprobe/libc.so.6:malloc") int BPF_KPROBE(on_malloc, u64 size) { return begin(size); }
SEC("uretprobe/libc.so.6:malloc") int BPF_KRETPROBE(on_malloc_ret, u64 p) { return end(ctx, p); }
SEC("uprobe/libc.so.6:calloc")
int BPF_KPROBE(on_calloc, u64 nr, u64 each) { return begin(nr * each); }
SEC("uretprobe/libc.so.6:calloc") int BPF_KRETPROBE(on_calloc_ret, u64 p) { return end(ctx, p); }
SEC("uretprobe/libc.so.6:realloc") int BPF_KRETPROBE(on_realloc_ret, u64 p) { return end(ctx, p); }
SEC("uprobe/libc.so.6:free") int BPF_KPROBE(on_free, u64 p) { return gone(p); }
SEC("uprobe/libc.so.6:realloc") int BPF_KPROBE(on_realloc, u64 p, u64 size)
{
	gone(p);
	return begin(size);
}
