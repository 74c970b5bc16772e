// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Programs for run_helpers. Most programs return a hash of results of helpers, results of map
 * operations, and fields of contexts. Patchbay and the kernel must get the same hash.
 */
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

#define MIX(h, v)	((h) = ((h) ^ (__u32)(v)) * 0x01000193)
#define SEED		0x811c9dc5u
#define TC		SEC("tc")

struct value { long n; char text[24]; };
struct locked { struct bpf_spin_lock lock; int n; };

#define MAP(map, kind, k, v, entries) \
	struct { __uint(type, BPF_MAP_TYPE_##kind); __uint(max_entries, entries); __type(key, k); \
		 __type(value, v); } map SEC(".maps")
MAP(array, ARRAY, __u32, struct value, 4);
MAP(hash, HASH, __u32, struct value, 4);
MAP(percpu, PERCPU_ARRAY, __u32, long, 2);
MAP(percpu_hash, PERCPU_HASH, __u32, long, 4);
MAP(lru, LRU_HASH, __u32, long, 64);
MAP(locks, ARRAY, __u32, struct locked, 2);
struct { __uint(type, BPF_MAP_TYPE_QUEUE); __uint(max_entries, 3);
	 __type(value, long); } queue SEC(".maps");
struct { __uint(type, BPF_MAP_TYPE_STACK); __uint(max_entries, 3);
	 __type(value, long); } stack SEC(".maps");
struct { __uint(type, BPF_MAP_TYPE_RINGBUF); __uint(max_entries, 4096); } ring SEC(".maps"),
	other_ring SEC(".maps");
struct { __uint(type, BPF_MAP_TYPE_PERF_EVENT_ARRAY); __uint(max_entries, 4); __uint(key_size, 4);
	 __uint(value_size, 4); } events SEC(".maps");
struct { __uint(type, BPF_MAP_TYPE_STACK_TRACE); __uint(max_entries, 16); __uint(key_size, 4);
	 __uint(value_size, 80); } stacks SEC(".maps");
struct lpm_key { __u32 len; __u8 addr[4]; };
struct { __uint(type, BPF_MAP_TYPE_LPM_TRIE); __uint(max_entries, 8);
	 __uint(map_flags, BPF_F_NO_PREALLOC);
	 __type(key, struct lpm_key); __type(value, long); } lpm SEC(".maps");

int variable = 3;
long zeroed;
const volatile int constant = 5;

TC int maps(struct __sk_buff *skb)
{
	struct value v = { .n = 7, .text = "seven" }, *p;
	__u32 h = SEED, k = 1, none = 9;

	MIX(h, bpf_map_update_elem(&array, &k, &v, BPF_ANY));
	MIX(h, bpf_map_update_elem(&array, &k, &v, BPF_NOEXIST));
	MIX(h, bpf_map_update_elem(&array, &none, &v, BPF_ANY));
	MIX(h, bpf_map_update_elem(&array, &k, &v, 9));
	MIX(h, bpf_map_delete_elem(&array, &k));
	p = bpf_map_lookup_elem(&array, &k);
	MIX(h, p ? p->n + p->text[2] : -1);
	MIX(h, !bpf_map_lookup_elem(&array, &none));
	MIX(h, bpf_map_delete_elem(&hash, &k));
	MIX(h, bpf_map_update_elem(&hash, &k, &v, BPF_EXIST));
	MIX(h, bpf_map_update_elem(&hash, &k, &v, BPF_NOEXIST));
	MIX(h, bpf_map_update_elem(&hash, &k, &v, BPF_NOEXIST));
	v.n = 8;
	MIX(h, bpf_map_update_elem(&hash, &k, &v, BPF_EXIST));
	p = bpf_map_lookup_elem(&hash, &k);
	MIX(h, p ? p->n : -1);
	for (int i = 10; i < 16; i++) {
		k = i;
		MIX(h, bpf_map_update_elem(&hash, &k, &v, BPF_ANY));
	}
	for (int i = 10; i < 16; i++) {
		k = i;
		MIX(h, bpf_map_delete_elem(&hash, &k));
	}
	return h;
}

TC int more_maps(struct __sk_buff *skb)
{
	struct lpm_key a = { 16, { 10, 1 } }, b = { 8, { 10 } }, c = { 32, { 10, 1, 2, 3 } },
		d = { 32, { 10, 2 } };
	__u32 h = SEED, k = 1;
	long v = 5, *p;

	MIX(h, bpf_map_update_elem(&percpu, &k, &v, BPF_ANY));
	p = bpf_map_lookup_elem(&percpu, &k);
	MIX(h, p ? (*p)++ : -1);
	p = bpf_map_lookup_percpu_elem(&percpu, &k, 100000);
	MIX(h, !p);
	MIX(h, bpf_map_update_elem(&percpu_hash, &k, &v, BPF_NOEXIST));
	p = bpf_map_lookup_elem(&percpu_hash, &k);
	MIX(h, p ? *p : -1);
	MIX(h, bpf_map_update_elem(&lru, &k, &v, BPF_ANY));
	p = bpf_map_lookup_elem(&lru, &k);
	MIX(h, p ? *p : -1);
	MIX(h, bpf_map_update_elem(&lpm, &a, &v, BPF_ANY));
	v = 6;
	MIX(h, bpf_map_update_elem(&lpm, &b, &v, BPF_ANY));
	p = bpf_map_lookup_elem(&lpm, &c);
	MIX(h, p ? *p : -1);
	p = bpf_map_lookup_elem(&lpm, &d);
	MIX(h, p ? *p : -1);
	MIX(h, bpf_map_delete_elem(&lpm, &c));
	MIX(h, bpf_map_delete_elem(&lpm, &a));
	p = bpf_map_lookup_elem(&lpm, &c);
	MIX(h, p ? *p : -1);
	return h;
}

TC int queues(struct __sk_buff *skb)
{
	__u32 h = SEED;
	long v = 0;

	MIX(h, bpf_map_pop_elem(&queue, &v));
	MIX(h, bpf_map_peek_elem(&stack, &v));
	for (int i = 1; i < 6; i++) {
		v = i;
		MIX(h, bpf_map_push_elem(&queue, &v, BPF_ANY));
		MIX(h, bpf_map_push_elem(&stack, &v, BPF_ANY));
	}
	v = 9;
	MIX(h, bpf_map_push_elem(&queue, &v, BPF_EXIST));
	MIX(h, bpf_map_push_elem(&stack, &v, BPF_NOEXIST));
	for (int i = 0; i < 5; i++) {
		MIX(h, bpf_map_peek_elem(&queue, &v));
		MIX(h, v);
		MIX(h, bpf_map_pop_elem(&queue, &v));
		MIX(h, v);
		MIX(h, bpf_map_pop_elem(&stack, &v));
		MIX(h, v);
	}
	return h;
}

struct bpf_map;
struct sum { __u32 h, stop; };

static long each(struct bpf_map *map, __u32 *key, struct value *value, struct sum *s)
{
	MIX(s->h, *key);
	MIX(s->h, value->n);
	return *key == s->stop;
}

static long add_index(__u32 i, struct sum *s)
{
	MIX(s->h, i);
	return i == s->stop;
}

TC int callbacks(struct __sk_buff *skb)
{
	struct value v = { .n = 1 };
	struct sum s = { SEED, 2 };

	for (int i = 0; i < 4; i++) {
		__u32 k = i;

		v.n = k * 3;
		bpf_map_update_elem(&array, &k, &v, BPF_ANY);
	}
	MIX(s.h, bpf_for_each_map_elem(&array, each, &s, 0));
	s.stop = 99;
	MIX(s.h, bpf_for_each_map_elem(&array, each, &s, 0));
	MIX(s.h, bpf_for_each_map_elem(&array, each, &s, 1));
	MIX(s.h, bpf_loop(10, add_index, &s, 0));
	s.stop = 5;
	MIX(s.h, bpf_loop(10, add_index, &s, 0));
	MIX(s.h, bpf_loop(0, add_index, &s, 0));
	MIX(s.h, bpf_loop(10, add_index, &s, 1));
	MIX(s.h, bpf_loop((8 << 20) + 1, add_index, &s, 0));
	return s.h;
}

TC int variables(struct __sk_buff *skb)
{
	__u32 h = SEED;

	MIX(h, variable);
	variable += constant;
	zeroed++;
	MIX(h, variable);
	MIX(h, zeroed);
	__sync_fetch_and_add(&variable, 7);
	MIX(h, variable);
	return h;
}

TC int locked(struct __sk_buff *skb)
{
	__u32 k = 1, h = SEED;
	struct locked *l = bpf_map_lookup_elem(&locks, &k);

	if (!l)
		return 0;
	bpf_spin_lock(&l->lock);
	MIX(h, l->n++);
	bpf_spin_unlock(&l->lock);
	bpf_spin_lock(&l->lock);
	MIX(h, l->n += 5);
	bpf_spin_unlock(&l->lock);
	return h;
}

TC int ringbuf(struct __sk_buff *skb)
{
	__u32 h = SEED;
	long v = 7, *p;

	MIX(h, bpf_ringbuf_query(&ring, BPF_RB_RING_SIZE));
	MIX(h, bpf_ringbuf_query(&ring, BPF_RB_AVAIL_DATA));
	MIX(h, bpf_ringbuf_query(&ring, 77));
	MIX(h, bpf_ringbuf_output(&ring, &v, sizeof(v), 0));
	MIX(h, bpf_ringbuf_output(&ring, &v, sizeof(v), 64));
	MIX(h, bpf_ringbuf_query(&ring, BPF_RB_AVAIL_DATA));
	p = bpf_ringbuf_reserve(&ring, 20, 0);
	if (p) {
		*p = 5;
		bpf_ringbuf_submit(p, BPF_RB_NO_WAKEUP);
	}
	MIX(h, !!p);
	p = bpf_ringbuf_reserve(&ring, 8, 0);
	if (p)
		bpf_ringbuf_discard(p, 0);
	MIX(h, !bpf_ringbuf_query(&ring, BPF_RB_CONS_POS));
	MIX(h, bpf_ringbuf_query(&ring, BPF_RB_PROD_POS));
	p = bpf_ringbuf_reserve(&ring, 4096, 0);
	if (p)
		bpf_ringbuf_discard(p, 0);
	MIX(h, !!p);
	p = bpf_ringbuf_reserve(&ring, 8, 1);
	if (p)
		bpf_ringbuf_discard(p, 0);
	MIX(h, !!p);
	for (int i = 0; i < 300; i++)
		MIX(h, bpf_ringbuf_output(&ring, &v, sizeof(v), BPF_RB_NO_WAKEUP));
	MIX(h, bpf_ringbuf_query(&ring, BPF_RB_PROD_POS));
	return h;
}

TC int dynptrs(struct __sk_buff *skb)
{
	struct bpf_dynptr d, r;
	__u32 h = SEED, k = 2;
	struct value *v = bpf_map_lookup_elem(&array, &k);
	char buf[8] = "abcdefg";
	long *p;

	if (!v)
		return 0;
	MIX(h, bpf_dynptr_from_mem(v->text, sizeof(v->text), 0, &d));
	MIX(h, bpf_dynptr_write(&d, 3, buf, 8, 0));
	MIX(h, bpf_dynptr_write(&d, 20, buf, 8, 0));
	MIX(h, bpf_dynptr_read(buf, 4, &d, 5, 0));
	MIX(h, bpf_dynptr_read(buf, 4, &d, 22, 0));
	MIX(h, bpf_dynptr_read(buf, 4, &d, 0, 1));
	MIX(h, *(__u32 *)buf);
	p = bpf_dynptr_data(&d, 8, 8);
	MIX(h, p ? *p : -1);
	MIX(h, !bpf_dynptr_data(&d, 24, 1));
	MIX(h, bpf_ringbuf_reserve_dynptr(&other_ring, 16, 0, &r));
	MIX(h, bpf_dynptr_write(&r, 0, buf, 8, 0));
	bpf_ringbuf_submit_dynptr(&r, 0);
	MIX(h, bpf_ringbuf_reserve_dynptr(&other_ring, 16, 3, &r));
	bpf_ringbuf_discard_dynptr(&r, 0);
	return h;
}

TC int reads(struct __sk_buff *skb)
{
	__u32 h = SEED, k = 3;
	struct value v = { .n = 77, .text = "some text" }, *p;
	char buf[16];

	bpf_map_update_elem(&array, &k, &v, BPF_ANY);
	p = bpf_map_lookup_elem(&array, &k);
	if (!p)
		return 0;
	MIX(h, bpf_probe_read_kernel(buf, 8, p));
	MIX(h, *(long *)buf);
	MIX(h, bpf_probe_read_kernel(buf, 0, p));
	/* For user addresses, the kernel and Patchbay return different errors. So only the sign
	 * goes into the hash. */
	MIX(h, bpf_probe_read_kernel(buf, 8, (void *)8) < 0);
	MIX(h, *(long *)buf);
	MIX(h, bpf_probe_read_kernel(buf, 8, (void *)0xdead000000000000) < 0);
	MIX(h, bpf_probe_read_kernel_str(buf, sizeof(buf), p->text));
	MIX(h, buf[3] + buf[8]);
	MIX(h, bpf_probe_read_kernel_str(buf, 5, p->text));
	MIX(h, buf[3] + buf[4]);
	MIX(h, bpf_probe_read_kernel_str(buf, 1, p->text));
	MIX(h, buf[0]);
	MIX(h, bpf_probe_read_kernel_str(buf, 8, (void *)16) < 0);
	MIX(h, *(long *)buf);
	return h;
}

TC int printed(struct __sk_buff *skb)
{
	static const char fmt[] = "%s|%10s|%-10s|%pI4|%20pi4to%pI6|%-60pi6x|%c|%lld|%x%%|%20pks";
	__u32 h = SEED, k = 3, ip = 0x0100a8c0;
	struct value v = { .n = 77, .text = "some text" }, *p;
	__u64 args[11];
	char buf[200];

	bpf_map_update_elem(&array, &k, &v, BPF_ANY);
	p = bpf_map_lookup_elem(&array, &k);
	if (!p)
		return 0;
	args[0] = args[1] = args[2] = (long)p->text;
	args[3] = args[4] = (long)&p->n;
	args[5] = args[6] = (long)p->text;
	args[7] = 'x';
	args[8] = -5;
	args[9] = 255;
	args[10] = (long)p->text;
	for (unsigned i = 0; i < sizeof(buf); i++)
		buf[i] = 0;
	MIX(h, bpf_snprintf(buf, sizeof(buf), fmt, args, sizeof(args)));
	for (unsigned i = 0; i < sizeof(buf); i++)
		MIX(h, buf[i]);
	args[0] = 8;		/* an unmapped address */
	MIX(h, bpf_snprintf(buf, sizeof(buf), "%s.", args, 8));
	MIX(h, buf[0]);
	return h;
}

TC int events_refused(struct __sk_buff *skb)
{
	__u32 h = SEED;
	long v = 1;

	MIX(h, bpf_perf_event_output(skb, &events, 2, &v, sizeof(v)));
	MIX(h, bpf_perf_event_output(skb, &events, 9, &v, sizeof(v)));
	MIX(h, bpf_perf_event_output(skb, &events, BPF_F_CURRENT_CPU, &v, sizeof(v)));
	MIX(h, bpf_perf_event_output(skb, &events, 1ull << 60, &v, sizeof(v)));
	MIX(h, bpf_perf_event_output(skb, &events, 2 | 5000ull << 32, &v, sizeof(v)));
	return h;
}

/* Without volatile, the compiler could merge two accesses. */
TC int fields(volatile struct __sk_buff *skb)
{
	__u32 h = SEED;

	MIX(h, skb->len);
	MIX(h, skb->pkt_type);
	MIX(h, skb->protocol);
	MIX(h, skb->ifindex);
	MIX(h, skb->ingress_ifindex);
	MIX(h, skb->vlan_present);
	skb->mark = 0x12345678;
	MIX(h, *(volatile __u8 *)((char *)skb + __builtin_offsetof(struct __sk_buff, mark) + 1));
	MIX(h, *(volatile __u16 *)((char *)skb + __builtin_offsetof(struct __sk_buff, mark) + 2));
	skb->priority = 7;
	skb->tc_index = 0x54321;
	MIX(h, skb->tc_index);
	skb->tc_classid = 0x98765;
	MIX(h, skb->tc_classid);
	skb->queue_mapping = 5;
	MIX(h, skb->queue_mapping);
	skb->queue_mapping = 0x10000;
	MIX(h, skb->queue_mapping);
	skb->cb[0] = 1;
	skb->cb[4] = skb->cb[0] + 0x11223344;
	MIX(h, skb->cb[4]);
	MIX(h, *(volatile __u8 *)((char *)&skb->cb[4] + 3));
	skb->tstamp = 1234567890123;
	MIX(h, skb->tstamp >> 20);
	MIX(h, skb->gso_segs + skb->gso_size + skb->hash + skb->napi_id + skb->wire_len);
	return h;
}

TC int socket_fields(struct __sk_buff *skb)
{
	struct bpf_sock *sk = skb->sk;
	__u32 h = SEED;

	MIX(h, !!sk);
	if (!sk)
		return h;
	MIX(h, sk->family);
	MIX(h, sk->state);
	MIX(h, sk->src_ip4);
	MIX(h, sk->dst_ip4);
	MIX(h, sk->src_port + sk->dst_port);
	sk = bpf_sk_fullsock(sk);
	MIX(h, !!sk);
	if (!sk)
		return h;
	MIX(h, sk->type);
	MIX(h, sk->protocol);
	MIX(h, sk->mark + sk->priority + sk->bound_dev_if);
	MIX(h, sk->rx_queue_mapping);
	MIX(h, !bpf_tcp_sock(sk));
	MIX(h, !bpf_get_listener_sock(sk));
	return h;
}

unsigned long long load_byte(void *skb, unsigned long long off) asm("llvm.bpf.load.byte");
unsigned long long load_half(void *skb, unsigned long long off) asm("llvm.bpf.load.half");
unsigned long long load_word(void *skb, unsigned long long off) asm("llvm.bpf.load.word");

SEC("socket") int absolute(struct __sk_buff *skb)
{
	__u32 h = SEED;

	MIX(h, skb->len);
	MIX(h, load_byte(skb, 0));
	MIX(h, load_half(skb, 2));
	MIX(h, load_word(skb, 12));
	MIX(h, load_byte(skb, skb->len - 1));
	MIX(h, load_half(skb, (__u32)-0x100000 + 2));
	MIX(h, load_half(skb, (__u32)-0x200000 + 12));
	return h;
}

SEC("socket") int beyond(struct __sk_buff *skb)
{
	load_byte(skb, 5000);
	return 77;
}

TC int direct(struct __sk_buff *skb)
{
	__u8 *d = (void *)(long)skb->data, *end = (void *)(long)skb->data_end;
	__u32 h = SEED;

	if (d + 34 > end)
		return 1;
	for (int i = 0; i < 34; i++)
		MIX(h, d[i]);
	d[3] = 0xee;
	MIX(h, bpf_skb_change_tail(skb, 80, 0));
	d = (void *)(long)skb->data;
	end = (void *)(long)skb->data_end;
	MIX(h, end - d);
	if (d + 80 > end)
		return 2;
	MIX(h, d[3] + d[79]);
	return h;
}

SEC("xdp") int meta(struct xdp_md *x)
{
	__u8 *d, *end, *m;
	__u32 h = SEED;

	MIX(h, bpf_xdp_adjust_meta(x, -8));
	d = (void *)(long)x->data;
	end = (void *)(long)x->data_end;
	m = (void *)(long)x->data_meta;
	if (m + 8 > d || d + 14 > end)
		return 1;
	m[0] = 7;
	d[0] = m[0] + 1;
	MIX(h, d - m);
	MIX(h, end - d);
	MIX(h, bpf_xdp_adjust_head(x, 4));
	MIX(h, bpf_xdp_adjust_tail(x, -4));
	MIX(h, bpf_xdp_get_buff_len(x));
	MIX(h, x->ingress_ifindex);
	MIX(h, x->rx_queue_index);
	MIX(h, bpf_redirect(1, 1));
	return h;
}

SEC("raw_tp/x") int who(struct bpf_raw_tracepoint_args *args)
{
	__u64 a = bpf_ktime_get_ns(), b = bpf_ktime_get_boot_ns(), stack[8];
	char comm[16];
	__u32 h = SEED;
	long n;

	MIX(h, bpf_ktime_get_ns() >= a && b);
	MIX(h, bpf_get_smp_processor_id() < 4096);
	MIX(h, bpf_get_numa_node_id());
	MIX(h, bpf_get_current_pid_tgid() != 0);
	MIX(h, bpf_get_current_comm(comm, sizeof(comm)));
	MIX(h, !!comm[0]);
	MIX(h, bpf_get_prandom_u32() != bpf_get_prandom_u32());
	MIX(h, bpf_jiffies64() != 0);
	MIX(h, bpf_get_stackid(args, &stacks, 1 << 12));
	MIX(h, bpf_get_stack(args, stack, 60, 0));
	MIX(h, bpf_get_stack(args, stack, 64, 1 << 15));
	MIX(h, bpf_perf_event_read(&events, 2));
	MIX(h, bpf_perf_event_read(&events, 99));
	MIX(h, bpf_perf_event_read(&events, 1ull << 50));
	n = bpf_probe_read_user(stack, 8, (void *)8);
	MIX(h, n);
	MIX(h, args->args[0]);
	return h;
}

char _license[] SEC("license") = "GPL";
