/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include "bpf/type.h"
#include "world.h"

#define PAGE	4096u
#define APART	(2 * PAGE)	/* from one value to the next: its page, and one that can't be touched */
#define MOST	256		/* bytes of a packet */
#define ETH	14

static uint64_t state;

static uint64_t next(void)
{
	uint64_t z = (state += 0x9e3779b97f4a7c15ull);

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ull;
	z = (z ^ z >> 27) * 0x94d049bb133111ebull;
	return z ^ z >> 31;
}

static void fill(void *p, size_t n)
{
	for (size_t i = 0; i < n; i++)
		((uint8_t *)p)[i] = (uint8_t)next();
}

/* ---- maps: GEN_ENTRIES elements that are always there -------------------------------- */

static bool there[GEN_MAPS][GEN_ENTRIES];

static int number_of(const struct pb_bpf_map *m)
{
	for (int i = 0; i < GEN_MAPS; i++)
		if (world_maps[i] == m)
			return i;
	abort();
}

static int64_t index_of(const struct pb_bpf_map *m, const void *key)
{
	uint64_t k = 0;

	memcpy(&k, key, m->attr.key_size);
	return k < m->attr.max_entries ? (int64_t)k : -1;
}

static void *lookup(struct pb_bpf_map *m, const void *key, struct pb_bpf_run *run)
{
	int64_t i = index_of(m, key);

	return i < 0 || !there[number_of(m)][i] ? NULL : m->elems + (uint64_t)i * m->elem_size;
}

static int update(struct pb_bpf_map *m, const void *key, const void *value, uint64_t flags, struct pb_bpf_run *run)
{
	int64_t i = index_of(m, key);

	if (i < 0 || flags)
		return i < 0 ? -E2BIG : -EINVAL;
	memmove(m->elems + (uint64_t)i * m->elem_size, value, m->attr.value_size);
	there[number_of(m)][i] = true;
	return 0;
}

static int take_out(struct pb_bpf_map *m, const void *key, struct pb_bpf_run *run)
{
	int64_t i = index_of(m, key);

	if (m->attr.type == BPF_MAP_TYPE_ARRAY)
		return -EINVAL;
	if (i < 0 || !there[number_of(m)][i])
		return -ENOENT;
	there[number_of(m)][i] = false;
	return 0;
}

static int64_t each(struct pb_bpf_map *m, pb_bpf_map_fn *fn, void *arg, struct pb_bpf_run *run)
{
	int64_t n = 0;

	for (uint64_t i = 0; i < m->attr.max_entries; i++) {
		uint64_t key = i;

		if (!there[number_of(m)][i])
			continue;
		n++;
		if (fn(arg, m, &key, m->elems + i * m->elem_size))
			break;
	}
	return n;
}

static void *direct(struct pb_bpf_map *m, uint32_t off)
{
	return m->elems + off;
}

static const struct pb_bpf_map_ops array_ops = { .lookup = lookup, .update = update, .remove = take_out,
						 .each = each, .direct = direct };
static const struct pb_bpf_prog *no_prog(struct pb_bpf_map *m, uint32_t index)
{
	return NULL;
}

static const struct pb_bpf_map_ops progs_ops = { .lookup = lookup, .update = update, .remove = take_out, .prog = no_prog };
static const struct pb_bpf_map_ops hash_ops = { .lookup = lookup, .update = update, .remove = take_out, .each = each };

static struct pb_bpf_map maps[GEN_MAPS];
struct pb_bpf_map *world_maps[GEN_MAPS];

static char *guarded(size_t pages)
{
	char *p = mmap(NULL, (2 * pages + 1) * PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED)
		abort();
	for (size_t i = 0; i < pages; i++)
		mprotect(p + (2 * i + 1) * PAGE, PAGE, PROT_READ | PROT_WRITE);
	return p + PAGE;
}

static char *values[GEN_MAPS];

/* ---- packets and contexts -------------------------------------------------------------- */

static char *packets[2];
static int packet_now;
static bool at_begin;		/* flush against the page before it, or the one behind it */
static uint32_t type, length;
static struct pb_bpf_skb skb;
static struct pb_bpf_xdp xdp;
static uint64_t regs[32];
static uint64_t random_state;

void world_make(void)
{
	for (int i = 0; i < GEN_MAPS; i++) {
		maps[i] = (struct pb_bpf_map){ .attr = gen_maps[i], .types = { .spin_lock_off = -1, .timer_off = -1 },
					       .ops = gen_maps[i].type == BPF_MAP_TYPE_ARRAY ? &array_ops :
						      i == GEN_PROGS ? &progs_ops : &hash_ops,
					       .elem_size = APART };
		world_maps[i] = &maps[i];
		values[i] = guarded(GEN_ENTRIES);
	}
	packets[0] = guarded(1);
	packets[1] = guarded(1);
}

void *world_ctx(void)
{
	return type == BPF_PROG_TYPE_XDP ? (void *)&xdp : type == BPF_PROG_TYPE_KPROBE ? (void *)regs : (void *)&skb;
}

static bool has_packet(void)
{
	return type != BPF_PROG_TYPE_KPROBE;
}

struct area world_packet(void)
{
	struct pb_bpf_pkt *p;

	if (!has_packet())
		return (struct area){ 0 };
	p = pb_bpf_pkt_of(type, world_ctx());
	return (struct area){ (char *)p->data_meta, (uint32_t)(p->data_end - p->data_meta),
			      pb_bpf_type_of(type)->packet_writable };
}

/* head: where what is left of the packet's room begins. */
static void shift(struct pb_bpf_pkt *p, intptr_t by)
{
	p->data += by;
	p->data_end += by;
	p->data_meta += by;
	p->head += by;
	p->end += by;
}

void world_move_packet(void)
{
	struct pb_bpf_pkt *p;
	intptr_t by;
	char *from, *to;

	if (!has_packet())
		return;
	p = pb_bpf_pkt_of(type, world_ctx());
	from = packets[packet_now];
	to = packets[packet_now ^= 1];
	mprotect(to, PAGE, PROT_READ | PROT_WRITE);
	memcpy(to, from, PAGE);
	mprotect(from, PAGE, PROT_NONE);
	by = to - from;
	shift(p, by);
	if (type == BPF_PROG_TYPE_XDP)
		return;
	skb.mac += by;
	skb.net += by;
}

static void reset_packet(void)
{
	struct pb_bpf_pkt p;
	uint8_t *data;

	packet_now = 0;
	mprotect(packets[0], PAGE, PROT_READ | PROT_WRITE);
	mprotect(packets[1], PAGE, PROT_NONE);
	fill(packets[0], PAGE);
	data = (uint8_t *)packets[0] + (at_begin ? 0 : PAGE - length);
	p = (struct pb_bpf_pkt){ data, data + length, data, data, data + length };
	xdp = (struct pb_bpf_xdp){ .md = { .ingress_ifindex = 1 }, .pkt = p };
	memset(&skb, 0, sizeof skb);
	skb.pkt = p;
	skb.mac = p.data;
	skb.net = p.data + ETH;
	skb.s.ifindex = 1;
	skb.s.protocol = 8;
	if (type != BPF_PROG_TYPE_SCHED_CLS)
		skb.pkt.data = skb.pkt.data_meta = skb.net;
	skb.s.len = (uint32_t)(skb.pkt.data_end - skb.pkt.data);
	skb.s.mark = (uint32_t)next();
	skb.s.priority = (uint32_t)next() & 7;
	fill(skb.s.cb, sizeof skb.s.cb);
}

void world_place(uint64_t seed)
{
	for (int i = 0; i < GEN_MAPS; i++)
		maps[i].elems = values[i] + (seed >> i & 1 ? 0 : PAGE - maps[i].attr.value_size);
}

void world_reset(const struct pb_bpf_type *t, uint64_t input)
{
	state = input;
	type = t->type;
	at_begin = next() & 1;
	length = (uint32_t)(next() % 3 ? ETH + next() % 40 : ETH + next() % (MOST - ETH));
	for (int i = 0; i < GEN_MAPS; i++)
		for (uint32_t n = 0; n < maps[i].attr.max_entries; n++) {
			there[i][n] = maps[i].attr.type == BPF_MAP_TYPE_ARRAY || next() % 4;
			fill(maps[i].elems + n * APART, maps[i].attr.value_size);
		}
	reset_packet();
	fill(regs, sizeof regs);
	random_state = next();
}

int world_values(struct area *areas)
{
	int nr = 0;

	for (int i = 0; i < GEN_MAPS; i++)
		for (uint32_t n = 0; n < maps[i].attr.max_entries; n++)
			areas[nr++] = (struct area){ maps[i].elems + n * APART, maps[i].attr.value_size, true };
	return nr;
}

static uint64_t add(uint64_t sum, const void *p, size_t n)
{
	for (size_t i = 0; i < n; i++)
		sum = (sum ^ ((const uint8_t *)p)[i]) * 0x100000001b3ull;
	return sum;
}

uint64_t world_sum(void)
{
	struct area areas[WORLD_MOST_AREAS], p = world_packet();
	int nr = world_values(areas);
	uint64_t sum = add(0xcbf29ce484222325ull, there, sizeof there);

	for (int i = 0; i < nr; i++)
		sum = add(sum, areas[i].at, areas[i].size);
	sum = add(sum, &p.size, sizeof p.size);
	sum = add(sum, p.at, p.size);
	sum = add(sum, &xdp.md, sizeof xdp.md);
	return add(add(sum, &skb.s, sizeof skb.s), regs, sizeof regs);
}

uint64_t world_random(uint64_t r1, uint64_t r2, uint64_t r3, uint64_t r4, uint64_t r5, struct pb_bpf_run *run)
{
	random_state = random_state * 6364136223846793005ull + 1442695040888963407ull;
	return random_state >> 32;
}

/* ---- the host: nothing that changes from run to run ---------------------------------------- */

static uint64_t clock_at(struct pb_bpf_run *run, enum pb_bpf_clock which)
{
	return 1000000007;
}

static int no_read(struct pb_bpf_run *run, void *to, uint64_t from, uint32_t n)
{
	return -EFAULT;
}

static int64_t no_read_str(struct pb_bpf_run *run, char *to, uint64_t from, uint32_t n)
{
	return -EFAULT;
}

static uint64_t number(struct pb_bpf_run *run)
{
	return 0x100000001;
}

static void comm(struct pb_bpf_run *run, char text[PB_BPF_COMM])
{
	memset(text, 0, PB_BPF_COMM);
}

static uint32_t cpu(struct pb_bpf_run *run)
{
	return 1;
}

const struct pb_bpf_host world_host = { .clock = clock_at, .read = no_read, .read_str = no_read_str,
					.pid_tgid = number, .uid_gid = number, .comm = comm, .cpu = cpu };
