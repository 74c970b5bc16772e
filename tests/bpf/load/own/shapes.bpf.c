/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Has examples of the parts of an object: maps, variables, externs, functions, sections.
 * test_load.c checks what the loader finds. */
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

struct counted {
	struct bpf_spin_lock lock;
	int n;
	struct bpf_timer timer;
};

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 16);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, long);
	__type(value, struct counted);
	__uint(pinning, LIBBPF_PIN_BY_NAME);
} counts SEC(".maps");

struct inner {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 4);
	__type(key, int);
	__type(value, int);
} first SEC(".maps"), second SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY_OF_MAPS);
	__uint(max_entries, 3);
	__uint(key_size, 4);
	__array(values, struct inner);
} outer SEC(".maps") = { .values = { [2] = &first, [0] = &second } };

SEC("socket") int tail(struct __sk_buff *skb);

struct {
	__uint(type, BPF_MAP_TYPE_PROG_ARRAY);
	__uint(max_entries, 2);
	__uint(key_size, 4);
	__array(values, int(struct __sk_buff *));
} jumps SEC(".maps") = { .values = { [1] = tail } };

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 5000);
} ring SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERF_EVENT_ARRAY);
	__uint(key_size, 4);
	__uint(value_size, 4);
} events SEC(".maps");

const volatile int limit = 5;
int total;
static volatile int calls = 7;
int separate SEC(".data.separate") = 9;

extern int LINUX_KERNEL_VERSION __kconfig;
extern int CONFIG_HZ __kconfig;
extern int CONFIG_ABSENT __kconfig __weak;
extern char CONFIG_NAME[8] __kconfig;
extern const void somewhere __ksym __weak;
extern const void nowhere __ksym;
extern int kernel_function(int x) __ksym;

static __noinline int twice(int x)
{
	calls++;
	return x * limit;
}

__noinline int visible(struct __sk_buff *skb, struct counted *c, int n, const struct bpf_dynptr *d)
{
	return c ? c->n : twice(n);
}

__attribute__((visibility("hidden"))) __noinline int hidden(int x)
{
	return x + total;
}

static int step(__u32 i, void *arg)
{
	total += (int)i;
	return 0;
}

SEC("socket") int filter(struct __sk_buff *skb)
{
	long key = 1;
	struct counted *c = bpf_map_lookup_elem(&counts, &key);
	struct bpf_dynptr d;

	bpf_dynptr_from_mem(&total, sizeof(total), 0, &d);
	bpf_loop(10, step, 0, 0);
	bpf_tail_call(skb, &jumps, 1);
	return visible(skb, c, separate, &d) + twice(3) + hidden(4);
}

/* the compiler drops the parameters that aren't used, but not from the types */
static __noinline int seven(int a, int b, int c, int d, int e, int f, int g)
{
	calls++;
	return g * limit;
}

SEC("socket") int tail(struct __sk_buff *skb)
{
	return twice((int)skb->len) + seven(1, 2, 3, 4, 5, 6, (int)skb->mark);
}

SEC("?kprobe/function") int asked(void *ctx)
{
	return LINUX_KERNEL_VERSION + CONFIG_ABSENT + CONFIG_NAME[0] + (&somewhere ? 1 : 0);
}

SEC("uretprobe//usr/bin/program:function+8") int user(void *ctx)
{
	return CONFIG_HZ;
}

SEC("kretprobe.multi/a*") int many(void *ctx)
{
	return 0;
}

SEC("xdp.frags") int frags(struct xdp_md *ctx)
{
	return XDP_PASS;
}

SEC("socket1") int old_name(struct __sk_buff *skb)
{
	return 0;
}

SEC("nothing") int no_type(void *ctx)
{
	return 0;
}

SEC("fentry/function") int not_ours(void *ctx)
{
	return 0;
}

SEC("raw_tp/event") int symbol(void *ctx)
{
	return &nowhere == ctx;
}

SEC("tp/group/event") int kfunc(void *ctx)
{
	return kernel_function(1);
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
__u32 VERSION SEC("version") = 0x60102;
