// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Makes the same calls of our helpers and of the kernel's helpers. Most series of calls are
 * random; test_packet_calls.c has chosen series. Compares the returned values, the memory that the
 * calls write, and the packet and context after the calls.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>

#include "bpf/core/format.h"
#include "bpf/helper/helper.h"
#include "bpf/map/map.h"
#include "kernel.h"
#include "outcomes.h"

#define RAW_TP	BPF_PROG_TYPE_RAW_TRACEPOINT
#define CLS	BPF_PROG_TYPE_SCHED_CLS

static uint64_t seed;
static uint32_t rnd(uint32_t below)
{
	seed = seed * 6364136223846793005ull + 1442695040888963407ull;
	return (uint32_t)(seed >> 33) % below;
}

#define CTX_	{ ARG_CTX, 0 }
#define I(v)	{ ARG_IMM, (int64_t)(v) }
#define M(off)	{ ARG_MEM, off }
#define T(off)	{ ARG_TEXT, off }

/* ---- texts ------------------------------------------------------------------------ */

static void numbers(void **state)
{
	static const char *const texts[] = {
		"0", "1", "-1", "42", " 42", "\t\n-42x", "0x1f", "0X1F", "0x", "0xg", "017", "08",
		"-0", "+5", "", " ", "9223372036854775807", "9223372036854775808",
		"-9223372036854775808", "-9223372036854775809", "18446744073709551615",
		"18446744073709551616", "99999999999999999999999999", "0xffffffffffffffff",
		"0x1ffffffffffffffff", "ff", "FFz", "7fffffffffffffff", "- 5", "--5", "1e5",
		"12345678901234567890",
		"000000000000000000000000000000000000000000000000000000000000000000000000012",
		"\xa0" "7", "0b11", "-0x10", "777777777777777777777", "1777777777777777777777",
		"2000000000000000000000",
	};
	static const uint32_t bases[] = { 0, 8, 10, 16, 7, 1, 0x110 };
	static struct calls c;
	int differ = 0;

	if (!kernel_is_there())
		skip();
	for (size_t t = 0; t < sizeof(texts) / sizeof(texts[0]); t++)
		for (size_t b = 0; b < sizeof(bases) / sizeof(bases[0]); b++) {
			int64_t n = (int64_t)strlen(texts[t]);

			c = (struct calls){ .prog_type = RAW_TP, .nr = 4, .call = {
				{ BPF_FUNC_strtol, { M(0), I(n + 1), I(bases[b]), M(256) } },
				{ BPF_FUNC_strtoul, { M(0), I(n + 1), I(bases[b]), M(264) } },
				{ BPF_FUNC_strtol, { M(0), I(n ? n : 1), I(bases[b]), M(272) } },
				{ BPF_FUNC_strtoul,
				  { M(0), I(n > 1 ? n - 1 : 1), I(bases[b]), M(280) } },
			} };
			memcpy(c.mem, texts[t], (size_t)n);
			memset(c.mem + 256, 0x55, 32);
			if (compare_outcomes(&c) && ++differ < 5)
				print_message("\"%s\", base %u\n", texts[t], bases[b]);
		}
	assert_int_equal(differ, 0);
}

static void texts_compared(void **state)
{
	static struct calls c;

	if (!kernel_is_there())
		skip();
	seed = 1;
	for (int k = 0; k < 200; k++) {
		uint32_t n = 1 + rnd(12);

		c = (struct calls){ .prog_type = RAW_TP, .nr = 1, .call = {
			{ BPF_FUNC_strncmp, { M(0), I(n), T(0) } } } };
		for (uint32_t i = 0; i < 12; i++) {
			c.mem[i] = (uint8_t)(rnd(8) ? 'a' : rnd(2) ? 0 : 0xf0);
			c.text[i] = (char)(rnd(8) ? 'a' : rnd(2) ? 0 : 0xf0);
		}
		calls_ours(&c, &ours);
		calls_kernel(&c, &kernels);
		/* only the sign of the result is specified */
		assert_int_equal(((int64_t)ours.ret[0] > 0) - ((int64_t)ours.ret[0] < 0),
				 ((int64_t)kernels.ret[0] > 0) - ((int64_t)kernels.ret[0] < 0));
	}
}

static int format_case(const char *format, uint32_t nr_args, const uint64_t *args, uint32_t size)
{
	static struct calls c;

	c = (struct calls){ .prog_type = RAW_TP, .nr = 1 };
	c.call[0] = (struct call){ BPF_FUNC_snprintf,
				   { M(0), I(size), T(0), M(1024), I(nr_args * 8) } };
	strcpy(c.text, format);
	memset(c.mem, 0x55, 1024);
	memcpy(c.mem + 1024, args, nr_args * 8);
	if (!compare_outcomes(&c))
		return 0;
	print_message("format \"%s\" size %u\n", format, size);
	return 1;
}

static void formats(void **state)
{
	static const char *const known[] = {
		"plain", "%d", "%i|", "%5d|", "%-5d|", "%05d|", "%+d", "% d", "%u", "%x", "%X",
		"%lx", "%llx", "%ld", "%lld", "%lu", "%llu", "%c", "%5c|", "%-5c|", "%%", "%d%%",
		"%px", "%20px|", "%-20px|", "%3px", "a%db", "%08x", "%-08x|", "%+-8d|", "%0+8d|",
		"%016llx", "\xc3\xa4%d", "%2d%2d", "\t%d\n", "%-px|", "%-16px|", "%+px|",
	};
	static const uint64_t values[] = {
		0, 1, 9, 10, 255, 0x7fffffff, 0x80000000, 0xffffffff, 0x100000000, INT64_MAX,
		1ull << 63, ~0ull, 'A', (uint64_t)-42,
	};
	int differ = 0;

	if (!kernel_is_there())
		skip();
	for (size_t f = 0; f < sizeof(known) / sizeof(known[0]); f++)
		for (size_t v = 0; v < sizeof(values) / sizeof(values[0]); v++) {
			uint64_t args[2] = { values[v], values[(v + 3) % 14] };
			uint32_t nr = 0;

			for (const char *p = known[f]; (p = strchr(p, '%')); p += 2)
				nr += p[1] != '%';
			differ += format_case(known[f], nr, args, 64);
			differ += format_case(known[f], nr, args, (uint32_t)(v % 8));
		}
	assert_int_equal(differ, 0);
}

/* Conversions whose text the kernel makes in its first pass have no width, and letters after any %p
 * aren't printed. At address 8 there is no data and no symbol. */
static void formats_of_pointers(void **state)
{
	static const char *const known[] = {
		"%20pI4|", "%-20pi4|", "%50pI6|", "%-50pi6|", "%pI4to%pI4|", "%pi69z %d|",
		"%20pB|", "%-20pBx|", "%20pks|", "%-5pus|", "%20s|", "%pxab|", "%20pxh|",
		"%-20pxZ9|", "%pI4\xc3\xa4|", "%px\xd7|", "%pI4%%|", "%pI4_a|", "%px%c",
		"%20ps|", "%-20pS|", "%2psx|",
	};
	static const uint64_t args[2] = { 8, 8 };
	int differ = 0;

	if (!kernel_is_there())
		skip();
	for (size_t f = 0; f < sizeof(known) / sizeof(known[0]); f++) {
		uint32_t nr = 0;

		for (const char *p = known[f]; (p = strchr(p, '%')); p += p[1] == '%' ? 2 : 1)
			nr += p[1] != '%';
		differ += format_case(known[f], nr, args, 100);
	}
	assert_int_equal(differ, 0);
}

/* Tests random formats, valid and invalid. If the kernel's verifier or the kernel's helper refuses
 * a format, Patchbay must refuse it. Patchbay must refuse no other format. */
static void formats_refused(void **state)
{
	static const char alphabet[] = "%%%%%%dixXulspcKkBI46 0+-19a.\n\x01\x80,";
	struct outcome *o = &kernels;
	static struct calls c;
	int differ = 0, good = 0;

	if (!kernel_is_there())
		skip();
	seed = 7;
	for (int k = 0; k < 3000; k++) {
		uint32_t n = 1 + rnd(7), nr = rnd(3);
		int check;

		c = (struct calls){ .prog_type = RAW_TP, .nr = 1 };
		c.call[0] = (struct call){ BPF_FUNC_snprintf,
					   { M(0), I(64), T(0), M(1024), I(nr * 8) } };
		for (uint32_t i = 0; i < n; i++)
			c.text[i] = alphabet[rnd(sizeof(alphabet) - 1)];
		check = pb_bpf_format_check(c.text, sizeof(c.text), nr);
		calls_kernel(&c, o);
		good += !check;
		/* if a format is invalid, the kernel's verifier or the kernel's helper refuses
		 * it */
		if (check != (o->err == -1 || (int64_t)o->ret[0] == -EINVAL ? -EINVAL : 0)) {
			differ++;
			print_message("format \"%s\" %u: %d, the kernel %d %ld\n", c.text, nr,
				      check, o->err, (long)o->ret[0]);
		}
	}
	print_message("%d of them good\n", good);
	assert_int_equal(differ, 0);
}

/* ---- packets ---------------------------------------------------------------------- */

static void make_packet(struct calls *c)
{
	static const uint16_t types[] = {
		0x0800, 0x0800, 0x86dd, 0x86dd, 0x8100, 0x88a8, 0x0806, 0x0012 };
	uint16_t type = types[rnd(8)];
	uint8_t *p = c->data;

	c->data_len = rnd(6) ? 54 + rnd(300) : 14 + rnd(60);
	for (uint32_t i = 0; i < c->data_len; i++)
		p[i] = (uint8_t)rnd(256);
	if (rnd(2))
		memset(p, 0, 6);
	p[12] = (uint8_t)(type >> 8);
	p[13] = (uint8_t)type;
	if (type == 0x8100 || type == 0x88a8) {
		/* After a helper has removed the VLAN tag, the packet must still be long enough for
		 * an IP header. Otherwise the kernel moves bytes past the packet's end. */
		if (c->data_len < 80)
			c->data_len = 80;
		p[16] = rnd(2) ? 0x08 : 0x81;
		p[17] = 0;
	}
}

static struct call csum_call(void)
{
	switch (rnd(4)) {
	case 0:
		return (struct call){ BPF_FUNC_csum_update, { CTX_, I(rnd(2) ? 0 : rnd(65536)) } };
	case 1:
		return (struct call){ BPF_FUNC_csum_level, { CTX_, I(rnd(6)) } };
	case 2:
		return (struct call){ BPF_FUNC_csum_level, { CTX_, I(BPF_CSUM_LEVEL_QUERY) } };
	default:
		return (struct call){ BPF_FUNC_csum_level, { CTX_, I(BPF_CSUM_LEVEL_INC) } };
	}
}

static struct call skb_call(void)
{
	static const uint32_t small[] = { 0, 1, 2, 4, 6, 8, 14, 20, 24, 40 };
	uint32_t off = rnd(8) ? rnd(80) : rnd(3) ? rnd(400) : (uint32_t)-1 - rnd(40);
	uint32_t len = 1 + rnd(40), n = small[rnd(10)];
	uint64_t odd = rnd(12) ? 0 : 1ull << rnd(40);

	switch (rnd(23)) {
	case 0: case 1:
		return (struct call){ BPF_FUNC_skb_store_bytes,
				      { CTX_, I(off), M(rnd(64)), I(len), I(rnd(4) | odd) } };
	case 2:
		return (struct call){ BPF_FUNC_skb_load_bytes,
				      { CTX_, I(off), M(256 + rnd(64)), I(len) } };
	case 3:
		return (struct call){ BPF_FUNC_skb_load_bytes_relative,
				      { CTX_, I(off), M(320 + rnd(64)), I(len), I(rnd(3)) } };
	case 4: case 5:
		return (struct call){ BPF_FUNC_l3_csum_replace,
				      { CTX_, I(off), I(rnd(3) ? rnd(1u << 31) : 0),
					I(rnd(1u << 31)), I(n | odd) } };
	case 6: case 7: case 8:
		return (struct call){ BPF_FUNC_l4_csum_replace,
				      { CTX_, I(off), I(rnd(3) ? rnd(1u << 31) : 0),
					I(rnd(1u << 31)),
					I((n & 15) | rnd(4) << 4 | rnd(2) << 6 | odd) } };
	case 9:
		return (struct call){ BPF_FUNC_csum_diff,
				      { M(0), I(rnd(10) * 4), M(64), I(rnd(10) * 4),
					I(rnd(1u << 31)) } };
	case 10:
		return (struct call){ BPF_FUNC_skb_change_proto,
				      { CTX_, I(rnd(2) ? 0x0008 : 0xdd86), I(odd) } };
	case 11: case 12:
		return (struct call){ BPF_FUNC_skb_adjust_room,
				      { CTX_, I((int32_t)rnd(100) - 40), I(rnd(8) ? rnd(2) : 2),
					I(odd & 63) } };
	case 13:
		return (struct call){ BPF_FUNC_skb_change_tail,
				      { CTX_, I(rnd(12) ? 150 + rnd(500) : rnd(20000)), I(odd) } };
	case 14:
		return (struct call){ BPF_FUNC_skb_change_head,
				      { CTX_, I(rnd(20) ? rnd(60) : rnd(20000)), I(odd) } };
	case 15: case 16:
		return (struct call){ BPF_FUNC_skb_vlan_push,
				      { CTX_, I(rnd(3) ? 0x0081 : rnd(2) ? 0xa888 : 5),
					I(rnd(65536)) } };
	case 17:
		return (struct call){ BPF_FUNC_skb_vlan_pop, { CTX_ } };
	case 18:
		return (struct call){ BPF_FUNC_skb_change_type, { CTX_, I(rnd(6)) } };
	case 19: case 20: case 21:
		return csum_call();
	default:
		return (struct call){ BPF_FUNC_skb_pull_data, { CTX_, I(rnd(2) ? 0 : rnd(300)) } };
	}
}

static void packets(void **state)
{
	static struct calls c;
	struct __sk_buff *s = (void *)c.ctx;
	int differ = 0, rounds = getenv("ROUNDS") ? atoi(getenv("ROUNDS")) : 3000;
	int first = getenv("FIRST") ? atoi(getenv("FIRST")) : 0;

	if (!kernel_is_there())
		skip();
	for (int k = first; k < rounds; k++) {
		seed = (uint64_t)k;
		c = (struct calls){ .prog_type = CLS };
		make_packet(&c);
		for (int i = 0; i < 512; i++)
			c.mem[i] = (uint8_t)rnd(256);
		c.nr = 1 + rnd(CALLS_MAX);
		c.flags = rnd(3) ? 0 : BPF_F_TEST_SKB_CHECKSUM_COMPLETE;
		for (uint32_t i = 0; i < c.nr; i++) {
			c.call[i] = skb_call();
			/* The kernel may cut a header (outcomes.c). With a sum, it would then sum
			 * up a negative number of bytes, and crash. */
			if (c.call[i].id == BPF_FUNC_skb_change_tail)
				c.flags = 0;
		}
		c.has_ctx = rnd(2);
		if (c.has_ctx)
			c.ctx_len = 192;
		if (c.has_ctx && rnd(2)) {
			s->gso_size = rnd(4) ? 1 + rnd(1u << 20) : rnd(4) << 16;
			s->gso_segs = rnd(65536);
		}
		if (compare_outcomes(&c) && ++differ <= 6) {
			print_message("---- seed %d\n", k);
			show_calls(&c);
		}
		if (differ > 20)
			break;
	}
	print_message("%u of %d ended early: a header was cut\n", nr_flaws, rounds);
	assert_int_equal(differ, 0);
	assert_true(nr_flaws < (unsigned)rounds / 100 + 2);
}

static void tunnels(void **state)
{
	static const uint32_t sizes[] = { 44, 8, 28, 24, 20, 12, 27, 22 };
	static struct calls c;
	int differ = 0;

	if (!kernel_is_there())
		skip();
	for (int k = 0; k < 600; k++) {
		seed = (uint64_t)k + 100000;
		c = (struct calls){ .prog_type = CLS, .data_len = 60, .nr = 5, .call = {
			{ BPF_FUNC_skb_get_tunnel_key, { CTX_, M(256), I(44), I(0) } },
			{ BPF_FUNC_skb_set_tunnel_key,
			  { CTX_, M(0), I(sizes[rnd(8)]), I(rnd(3) ? rnd(16) : 0) } },
			{ BPF_FUNC_skb_set_tunnel_opt,
			  { CTX_, M(64), I(rnd(4) ? 4 + 4 * rnd(10) : 1 + rnd(400)) } },
			{ BPF_FUNC_skb_get_tunnel_key,
			  { CTX_, M(320), I(sizes[rnd(8)]), I(rnd(4) ? rnd(2) : 1u << rnd(6)) } },
			{ BPF_FUNC_skb_get_tunnel_opt, { CTX_, M(512), I(1 + rnd(80)) } },
		} };
		for (int i = 0; i < 512; i++)
			c.mem[i] = (uint8_t)rnd(256);
		if (rnd(3))
			memset(c.mem + 22, 0, 6);	/* tunnel_ext, label */
		c.mem[22] = c.mem[23] = rnd(6) ? 0 : 1;
		if (compare_outcomes(&c) && ++differ <= 3) {
			print_message("---- seed %d\n", k);
			show_calls(&c);
		}
	}
	assert_int_equal(differ, 0);
}

static struct call xdp_call(void)
{
	int32_t by = (int32_t)rnd(80) - 40;

	switch (rnd(8)) {
	case 0: case 1:
		return (struct call){ BPF_FUNC_xdp_adjust_head,
				      { CTX_, I(rnd(6) ? by : by * 10) } };
	case 2:
		return (struct call){ BPF_FUNC_xdp_adjust_meta,
				      { CTX_, I(by & (rnd(4) ? ~3 : ~0)) } };
	case 3: case 4:
		return (struct call){ BPF_FUNC_xdp_adjust_tail,
				      { CTX_, I(rnd(6) ? by : by * 100) } };
	case 5:
		return (struct call){ BPF_FUNC_xdp_load_bytes,
				      { CTX_, I(rnd(9) ? rnd(200) : rnd(1u << 20)), M(256),
					I(1 + rnd(60)) } };
	case 6:
		return (struct call){ BPF_FUNC_xdp_store_bytes,
				      { CTX_, I(rnd(9) ? rnd(200) : rnd(1u << 20)), M(0),
					I(1 + rnd(60)) } };
	default:
		return (struct call){ BPF_FUNC_xdp_get_buff_len, { CTX_ } };
	}
}

static void xdp_packets(void **state)
{
	static struct calls c;
	int differ = 0, rounds = getenv("ROUNDS") ? atoi(getenv("ROUNDS")) : 3000;

	if (!kernel_is_there())
		skip();
	for (int k = 0; k < rounds; k++) {
		seed = (uint64_t)k + 500000;
		c = (struct calls){ .prog_type = BPF_PROG_TYPE_XDP };
		c.data_len = rnd(8) ? 14 + rnd(300) : rnd(3500);
		for (uint32_t i = 0; i < c.data_len; i++)
			c.data[i] = (uint8_t)rnd(256);
		for (int i = 0; i < 512; i++)
			c.mem[i] = (uint8_t)rnd(256);
		c.nr = 1 + rnd(CALLS_MAX);
		for (uint32_t i = 0; i < c.nr; i++)
			c.call[i] = xdp_call();
		c.has_ctx = rnd(2);
		if (c.has_ctx) {
			uint32_t meta = rnd(2) ? 4 * rnd(9) : 0;

			c.ctx_len = 24;
			memcpy(c.ctx, &meta, 4);
			memcpy(c.ctx + 4, &c.data_len, 4);
		}
		if (compare_outcomes(&c) && ++differ <= 3) {
			print_message("---- seed %d\n", k);
			show_calls(&c);
		}
		if (differ > 20)
			break;
	}
	assert_int_equal(differ, 0);
}

/* ---- what a test run checks ---------------------------------------------------------- */

static void random_skb_ctx(struct calls *c)
{
	/* Fields that may be set. The loop below sometimes sets another field, too */
	static const uint16_t good[] = {
		offsetof(struct __sk_buff, mark), offsetof(struct __sk_buff, priority),
		offsetof(struct __sk_buff, ingress_ifindex), offsetof(struct __sk_buff, ifindex),
		offsetof(struct __sk_buff, cb[0]), offsetof(struct __sk_buff, cb[4]),
		offsetof(struct __sk_buff, tstamp), offsetof(struct __sk_buff, wire_len),
		offsetof(struct __sk_buff, gso_segs), offsetof(struct __sk_buff, gso_size),
		offsetof(struct __sk_buff, hwtstamp),
	};
	uint32_t v;

	for (uint32_t n = rnd(4); n--;) {
		uint32_t at = rnd(6) ? good[rnd(sizeof(good) / 2)] : 4 * rnd(50);

		v = at == offsetof(struct __sk_buff, ifindex) ? rnd(2) : rnd(3) ? rnd(2000) :
			rnd(1u << 31);
		memcpy(c->ctx + at, &v, 4);
	}
	c->ctx_len = rnd(3) ? sizeof(struct __sk_buff) : 4 * rnd(56);
}

static void random_xdp_ctx(struct calls *c)
{
	struct xdp_md md = {
		.data = rnd(2) ? 0 : rnd(40), .data_end = rnd(8) ? c->data_len : c->data_len + 1 };

	if (!rnd(8))
		((uint32_t *)&md)[2 + rnd(4)] = 1 + rnd(2);
	/* only index 1, the loopback device, is the same on all machines */
	if (md.ingress_ifindex > 1)
		md.ingress_ifindex = 1;
	memcpy(c->ctx, &md, sizeof(md));
	c->ctx_len = rnd(3) ? sizeof(md) : sizeof(md) + 4 * rnd(10);
}

static void runs_are_checked(void **state)
{
	static const uint32_t types[] = {
		BPF_PROG_TYPE_SOCKET_FILTER, CLS, BPF_PROG_TYPE_SCHED_ACT, BPF_PROG_TYPE_CGROUP_SKB,
		BPF_PROG_TYPE_XDP, RAW_TP,
	};
	static struct calls c;
	unsigned good = 0;
	int differ = 0;

	if (!kernel_is_there())
		skip();
	for (int k = 0; k < 6000; k++) {
		seed = (uint64_t)k + 900000;
		c = (struct calls){ .prog_type = types[rnd(6)] };
		make_packet(&c);
		/* packets stay below the limit of Linux 6.1; Linux 6.18 takes larger packets */
		c.data_len = rnd(8) ? c.data_len : rnd(2) ? rnd(20) : rnd(3400);
		c.has_ctx = rnd(2);
		if (c.has_ctx && c.prog_type == BPF_PROG_TYPE_XDP)
			random_xdp_ctx(&c);
		else if (c.has_ctx && c.prog_type == RAW_TP)
			c.ctx_len = rnd(120);
		else if (c.has_ctx)
			random_skb_ctx(&c);
		c.flags = rnd(8) ? 0 : 1u << rnd(4);
		/* the kernel would send live frames to the network */
		if (c.prog_type == BPF_PROG_TYPE_XDP)
			c.flags &= ~(uint32_t)BPF_F_TEST_XDP_LIVE_FRAMES;
		if (compare_outcomes(&c) && ++differ <= 8)
			print_message("---- seed %d type %u data %u ctx %u flags %#x\n", k,
				      c.prog_type, c.data_len, c.has_ctx ? c.ctx_len : 0, c.flags);
		good += !ours.err;
	}
	print_message("%u of them ran\n", good);
	assert_int_equal(differ, 0);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(numbers),
		cmocka_unit_test(texts_compared),
		cmocka_unit_test(formats),
		cmocka_unit_test(formats_of_pointers),
		cmocka_unit_test(formats_refused),
		cmocka_unit_test(packets),
		cmocka_unit_test(tunnels),
		cmocka_unit_test(xdp_packets),
		cmocka_unit_test(runs_are_checked),
	};

	if (argc > 1)
		cmocka_set_test_filter(argv[1]);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
