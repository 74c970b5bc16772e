/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Maps, packets, contexts and helpers for test runs (world.h). Contents and results depend only on
 * numbers that the caller passes, not on time or chance. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include "bpf/helper/dynptr.h"
#include "bpf/helper/helper.h"
#include "bpf/helper/prog_type.h"
#include "random.h"
#include "world.h"

#define PAGE	4096u
#define APART	(2 * PAGE)	/* distance of two values: a value's page, and an inaccessible
				 * page */
#define MOST	256		/* maximal size of a packet */
#define ETH	14
/* In the kernel's test runs of XDP programs, a packet has a separate page. There are ROOM bytes
 * before the packet. The kernel itself uses XDP_FRAME of these bytes, and SHARED_INFO bytes at the
 * page's end. */
#define ROOM		256
#define XDP_FRAME	40
#define SHARED_INFO	320

static uint64_t state;

static uint64_t next(void)
{
	return next_random(&state);
}

static const uint64_t *words;		/* most memory is filled with these numbers */
static unsigned nr_words;

/* Returns a random number. If there are words, most numbers are words, halves of words, or
 * combinations of two halves. */
static uint64_t content(void)
{
	uint64_t r = next(), v;

	if (!nr_words || r % 4 == 0)
		return r >> 2 & 7 ? r : r >> 58;
	v = words[(r >> 8) % nr_words];
	switch (r >> 2 & 7) {
	case 0:
		return (uint32_t)v | words[(r >> 32) % nr_words] << 32;
	case 1:
		return (uint32_t)v;
	case 2:
		return (uint64_t)(int64_t)(int32_t)v;
	case 3:
		return v << 32 | v >> 32;
	default:
		return v;
	}
}

static void fill(void *p, size_t n)
{
	for (size_t i = 0; i < n; i += 8) {
		uint64_t v = content();

		memcpy((char *)p + i, &v, n - i < 8 ? n - i : 8);
	}
}

void world_use_words(const uint64_t *list, unsigned nr)
{
	words = list;
	nr_words = nr;
}

/* ---- maps; each element has memory, even while it isn't in the map -------------------- */

static bool there[GEN_MAPS][GEN_ENTRIES];

/* Returns the number of elements. A ring buffer has no elements. */
static uint32_t entries(const struct pb_bpf_map *m)
{
	return m->attr.type == BPF_MAP_TYPE_RINGBUF ? 0 : m->attr.max_entries;
}

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

static int update(struct pb_bpf_map *m, const void *key, const void *value, uint64_t flags,
		  struct pb_bpf_run *run)
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

	for (uint64_t i = 0; i < entries(m); i++) {
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

static const struct pb_bpf_map_ops array_ops = { .lookup = lookup, .update = update,
						 .remove = take_out, .each = each,
						 .direct = direct };
static const struct pb_bpf_prog *no_prog(struct pb_bpf_map *m, uint32_t index)
{
	return NULL;
}

static const struct pb_bpf_map_ops progs_ops = { .lookup = lookup, .update = update,
						 .remove = take_out, .prog = no_prog };
static const struct pb_bpf_map_ops hash_ops = { .lookup = lookup, .update = update,
						.remove = take_out, .each = each };

static struct pb_bpf_map maps[GEN_MAPS];
struct pb_bpf_map *world_maps[GEN_MAPS];

/* Maps accessible pages, with an inaccessible page before and after each. Returns the first
 * accessible page. */
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

/* ---- a ring buffer; each record ends at a separate inaccessible page ----------------------- */

#define RECORDS 4

static char *records[RECORDS];
static struct area reserved[RECORDS];
static uint64_t ring_sum;
static uint8_t noise;			/* each byte of a new record */

void world_set_noise(uint8_t byte)
{
	noise = byte;
}

static void *reserve(uint64_t size)
{
	uint64_t used = 0;
	int at = -1;

	for (int i = 0; i < RECORDS; i++) {
		if (reserved[i].at)
			used += ((uint64_t)reserved[i].size + 8 + 7) & ~7ull;
		else
			at = i;
	}
	if (at < 0 || size > GEN_RING_BYTES || used + ((size + 8 + 7) & ~7ull) > GEN_RING_BYTES)
		return NULL;
	size = (size + 7) & ~7ull;
	reserved[at] = (struct area){ records[at] + PAGE - size, (uint32_t)size, true };
	memset(reserved[at].at, noise, size);
	return reserved[at].at;
}

static uint64_t ring_reserve(uint64_t r1, uint64_t r2, uint64_t r3, uint64_t r4, uint64_t r5,
			     struct pb_bpf_run *run)
{
	return r3 ? 0 : (uint64_t)reserve(r2);
}

static uint64_t add(uint64_t sum, const void *p, size_t n);

static uint64_t ring_submit(uint64_t r1, uint64_t r2, uint64_t r3, uint64_t r4, uint64_t r5,
			    struct pb_bpf_run *run)
{
	for (int i = 0; i < RECORDS; i++)
		if (reserved[i].at && reserved[i].at == (char *)r1)
			reserved[i].at = NULL;
	return 0;
}

static uint64_t ring_output(uint64_t r1, uint64_t r2, uint64_t r3, uint64_t r4, uint64_t r5,
			    struct pb_bpf_run *run)
{
	if (r4 & ~3ull)
		return (uint64_t)(int64_t)-EINVAL;
	if (r3 > GEN_RING_BYTES - 8)
		return (uint64_t)(int64_t)-EAGAIN;
	ring_sum = add(ring_sum, (const void *)r2, r3);
	return 0;
}

static uint64_t ring_reserve_dynptr(uint64_t r1, uint64_t r2, uint64_t r3, uint64_t r4, uint64_t r5,
				    struct pb_bpf_run *run)
{
	struct pb_bpf_dynptr *d = (struct pb_bpf_dynptr *)r4;

	*d = (struct pb_bpf_dynptr){ 0 };
	if (r3)
		return (uint64_t)(int64_t)-EINVAL;
	if ((uint32_t)r2 > PB_BPF_DYNPTR_MAX)
		return (uint64_t)(int64_t)-E2BIG;
	d->data = reserve((uint32_t)r2);
	if (!d->data)
		return (uint64_t)(int64_t)-EINVAL;
	d->size = (uint32_t)r2;
	return 0;
}

static uint64_t ring_submit_dynptr(uint64_t r1, uint64_t r2, uint64_t r3, uint64_t r4, uint64_t r5,
				   struct pb_bpf_run *run)
{
	struct pb_bpf_dynptr *d = (struct pb_bpf_dynptr *)r1;

	if (d->data)
		ring_submit((uint64_t)d->data, r2, 0, 0, 0, run);
	*d = (struct pb_bpf_dynptr){ 0 };
	return 0;
}

pb_bpf_fn *world_stand_in(pb_bpf_fn *fn)
{
	static const struct { uint32_t id; pb_bpf_fn *fn; } list[] = {
		{ BPF_FUNC_get_prandom_u32, world_random },
		{ BPF_FUNC_ringbuf_reserve, ring_reserve },
		{ BPF_FUNC_ringbuf_submit, ring_submit }, { BPF_FUNC_ringbuf_discard, ring_submit },
		{ BPF_FUNC_ringbuf_output, ring_output },
		{ BPF_FUNC_ringbuf_reserve_dynptr, ring_reserve_dynptr },
		{ BPF_FUNC_ringbuf_submit_dynptr, ring_submit_dynptr },
		{ BPF_FUNC_ringbuf_discard_dynptr, ring_submit_dynptr },
	};

	for (size_t i = 0; i < sizeof list / sizeof *list; i++)
		if (fn == pb_bpf_helper_of(list[i].id)->fn)
			return list[i].fn;
	return fn;
}

/* ---- packets and contexts -------------------------------------------------------------- */

static char *packets[2];
static int packet_now;
static bool at_begin;		/* true: the packet begins right after an inaccessible page; false:
				 * it ends right before one */
static uint32_t type, length;
static int context;			/* the index of the current context */
static struct pb_bpf_skb skbs[2];
static struct pb_bpf_xdp xdps[2];
static uint64_t all_regs[2][32];
#define skb skbs[context]
#define xdp xdps[context]
#define regs all_regs[context]
static uint64_t random_state;

void world_make(void)
{
	for (int i = 0; i < GEN_MAPS; i++) {
		maps[i] = (struct pb_bpf_map){ .attr = gen_maps[i],
					       .types = { .spin_lock_off = -1, .timer_off = -1 },
					       .ops = gen_maps[i].type == BPF_MAP_TYPE_ARRAY ?
						      &array_ops :
						      i == GEN_PROGS ? &progs_ops : &hash_ops,
					       .elem_size = APART };
		world_maps[i] = &maps[i];
		values[i] = guarded(GEN_ENTRIES);
	}
	packets[0] = guarded(1);
	packets[1] = guarded(1);
	for (int i = 0; i < RECORDS; i++)
		records[i] = guarded(1);
}

void *world_ctx(void)
{
	return type == BPF_PROG_TYPE_XDP ? (void *)&xdp :
	       type == BPF_PROG_TYPE_KPROBE ? (void *)regs : (void *)&skb;
}

static bool has_packet(void)
{
	return type != BPF_PROG_TYPE_KPROBE;
}

const struct pb_bpf_pkt *world_pkt(void)
{
	return pb_bpf_pkt_of(type, world_ctx());
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

/* Moves all pointers to the packet by `by` bytes. */
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

static bool elsewhere;
static bool as_kernel;			/* the packet has the same room around it as in the
					 * kernel */

void world_as_kernel(bool yes)
{
	as_kernel = yes;
}

static void reset_packet(void)
{
	static bool used;
	struct pb_bpf_pkt p;
	uint8_t *data;

	if (!used || packet_now) {
		packet_now = 0;
		mprotect(packets[0], PAGE, PROT_READ | PROT_WRITE);
		mprotect(packets[1], PAGE, PROT_NONE);
		used = true;
	}
	data = (uint8_t *)packets[0] + (as_kernel ? ROOM + elsewhere * 64u :
					at_begin != elsewhere ? 0 : PAGE - length);
	fill(data, length);
	p = (struct pb_bpf_pkt){ data, data + length, data, data, data + length };
	if (as_kernel) {
		p.head = data - ROOM;
		memset(p.head, 0, ROOM);
		data[12] = 8;		/* IPv4; the kernel sets the packet's protocol from this
					 * field */
		data[13] = 0;
		if (type == BPF_PROG_TYPE_XDP) {
			p.head += XDP_FRAME;
			p.end = data - ROOM + PAGE - SHARED_INFO;
		}
	}
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

static uint64_t placed;

void world_place(uint64_t seed)
{
	placed = seed;
	seed ^= elsewhere ? ~0ull : 0;
	for (int i = 0; i < GEN_MAPS; i++)
		maps[i].elems = values[i] + (seed >> i & 1 ? 0 : PAGE - maps[i].attr.value_size);
}

void world_elsewhere(bool yes)
{
	elsewhere = yes;
	context = yes;
	world_place(placed);
}

void world_reset(const struct pb_bpf_type *t, uint64_t input)
{
	state = input;
	type = t->type;
	at_begin = next() & 1;
	length = (uint32_t)(next() % 3 ? ETH + next() % 40 : ETH + next() % (MOST - ETH));
	for (int i = 0; i < GEN_MAPS; i++)
		for (uint32_t n = 0; n < entries(&maps[i]); n++) {
			there[i][n] = maps[i].attr.type == BPF_MAP_TYPE_ARRAY || next() % 4;
			fill(maps[i].elems + n * APART, maps[i].attr.value_size);
		}
	reset_packet();
	fill(regs, sizeof regs);
	random_state = next();
	memset(reserved, 0, sizeof reserved);
	ring_sum = 0;
}

bool world_is_there(int map, uint32_t n)
{
	return there[map][n];
}

char *world_element(int map, uint32_t n)
{
	return maps[map].elems + n * APART;
}

int world_values(struct area *areas)
{
	int nr = 0;

	for (int i = 0; i < GEN_MAPS; i++)
		for (uint32_t n = 0; n < entries(&maps[i]); n++)
			areas[nr++] = (struct area){ maps[i].elems + n * APART,
						     maps[i].attr.value_size, true };
	for (int i = 0; i < RECORDS; i++)
		if (reserved[i].at)
			areas[nr++] = reserved[i];
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
	sum = add(sum, &ring_sum, sizeof ring_sum);
	sum = add(sum, p.at, p.size);
	sum = add(sum, &xdp.md, sizeof xdp.md);
	return add(add(sum, &skb.s, sizeof skb.s), regs, sizeof regs);
}

uint64_t world_random(uint64_t r1, uint64_t r2, uint64_t r3, uint64_t r4, uint64_t r5,
		      struct pb_bpf_run *run)
{
	random_state = random_state * 6364136223846793005ull + 1442695040888963407ull;
	return random_state >> 32;
}

/* ---- the host; its functions return the same in each run ----------------------------------- */

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
					.pid_tgid = number, .uid_gid = number, .comm = comm,
					.cpu = cpu };
