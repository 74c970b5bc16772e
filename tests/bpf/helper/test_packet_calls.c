// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Makes chosen series of helper calls on packets: their sums, the levels of verified checksums, and
 * GSO. Checks the results, and compares them with those of the kernel's helpers if the kernel can
 * be asked.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <cmocka.h>

#include "bpf/core/packet.h"
#include "bpf/map/map.h"
#include "kernel.h"
#include "outcomes.h"

#define CLS	BPF_PROG_TYPE_SCHED_CLS
#define CTX_	{ ARG_CTX, 0 }
#define I(v)	{ ARG_IMM, (int64_t)(v) }
#define M(off)	{ ARG_MEM, off }

#define LEVEL(what)	{ BPF_FUNC_csum_level, { CTX_, I(BPF_CSUM_LEVEL_##what) } }
#define ROOM(by, flags)	{ BPF_FUNC_skb_adjust_room, { CTX_, I(by), I(BPF_ADJ_ROOM_MAC), I(flags) } }
#define HEAD(by)	{ BPF_FUNC_skb_change_head, { CTX_, I(by), I(0) } }
#define TAIL(len)	{ BPF_FUNC_skb_change_tail, { CTX_, I(len), I(0) } }
#define SUM		{ BPF_FUNC_csum_update, { CTX_, I(0) } }

/* Fills the packet. Each byte differs from the byte before it. */
static void make_packet(struct calls *c, bool ip6)
{
	for (uint32_t i = 0; i < c->data_len; i++)
		c->data[i] = (uint8_t)(i * 37 + 5);
	memcpy(c->data + 12, ip6 ? "\x86\xdd\x60" : "\x08\x00\x45", 3);
}

/* Makes the calls, and checks the error of the run and the results of the first nr calls. */
static void expect(const struct calls *c, int err, const int64_t *ret, uint32_t nr)
{
	calls_ours(c, &ours);
	assert_int_equal(ours.err, err);
	for (uint32_t i = 0; i < nr; i++) {
		if ((int64_t)ours.ret[i] != ret[i])
			print_message("call %u\n", i);
		assert_int_equal((int64_t)ours.ret[i], ret[i]);
	}
	if (kernel_is_there())
		assert_int_equal(compare_outcomes(c), 0);
}

#define EXPECT(c, err, ...) do { \
	const int64_t ret_[] = { __VA_ARGS__ }; \
\
	expect(c, err, ret_, sizeof(ret_) / sizeof(ret_[0])); \
} while (0)

/* Helpers that get or set properties of a packet, in a test run without a real socket. */
static void about_packets(void **state)
{
	static struct calls c;

	if (!kernel_is_there())
		skip();
	c = (struct calls){ .prog_type = CLS, .data_len = 60, .nr = 10, .call = {
		SUM, LEVEL(QUERY),
		{ BPF_FUNC_csum_level, { CTX_, I(7) } }, { BPF_FUNC_set_hash, { CTX_, I(0x1234) } },
		{ BPF_FUNC_get_hash_recalc, { CTX_ } }, { BPF_FUNC_get_route_realm, { CTX_ } },
		{ BPF_FUNC_skb_get_xfrm_state, { CTX_, I(0), M(0), I(28), I(0) } },
		{ BPF_FUNC_get_socket_uid, { CTX_ } }, { BPF_FUNC_redirect, { I(1), I(2) } },
		{ BPF_FUNC_skb_ecn_set_ce, { CTX_ } },
	} };
	memset(c.mem, 7, 64);
	assert_int_equal(compare_outcomes(&c), 0);
}

/* The packet's sum stays right if a helper sets ECN. */
static void sums_of_marked_packets(void **state)
{
	static struct calls c;

	for (unsigned k = 0; k < 16; k++) {
		bool ip6 = k & 1;

		c = (struct calls){ .prog_type = CLS, .data_len = 14 + 40 + 20, .nr = 2,
			.flags = BPF_F_TEST_SKB_CHECKSUM_COMPLETE, .call = {
				{ BPF_FUNC_skb_ecn_set_ce, { CTX_ } }, SUM } };
		make_packet(&c, ip6);
		c.data[15] = (uint8_t)(k >> 1 << (ip6 ? 4 : 0));
		EXPECT(&c, 0, (k >> 1 & 3) != 0);
	}
}

/* The header's checksum becomes smaller by what TOS grows, with end-around borrow. */
static void checksums_of_marked_headers(void **state)
{
	static const struct { uint8_t tos; uint16_t old, new; } headers[] = {
		{ 0, 1, 1 }, { 1, 2, 0xffff }, { 1, 1, 0xfffe }, { 1, 0, 0xfffd },
		{ 1, 0x103, 0x101 }, { 2, 1, 0xffff }, { 2, 0, 0xfffe }, { 2, 2, 1 },
		{ 2, 0xffff, 0xfffe }, { 3, 1, 1 },
	};
	static struct calls c;

	c = (struct calls){ .prog_type = CLS, .data_len = 60, .nr = 1, .call = {
		{ BPF_FUNC_skb_ecn_set_ce, { CTX_ } } } };
	make_packet(&c, false);
	for (size_t i = 0; i < sizeof(headers) / sizeof(headers[0]); i++) {
		c.data[15] = headers[i].tos;
		c.data[24] = (uint8_t)(headers[i].old >> 8);
		c.data[25] = (uint8_t)headers[i].old;
		EXPECT(&c, 0, headers[i].tos != 0);
		assert_int_equal(ours.data[24] << 8 | ours.data[25], headers[i].new);
	}
}

/* A packet whose length has changed has no sum. */
static void sums_of_resized_packets(void **state)
{
	static struct calls c;

	c = (struct calls){ .prog_type = CLS, .data_len = 60, .nr = 2,
		.flags = BPF_F_TEST_SKB_CHECKSUM_COMPLETE, .call = { TAIL(80), SUM } };
	make_packet(&c, false);
	EXPECT(&c, 0, 0, -PB_BPF_ENOTSUPP);
	c.call[0].arg[1].v = 40;
	EXPECT(&c, -EBADMSG, 0, -PB_BPF_ENOTSUPP);
	memset(c.data + 40, 0, 20);
	EXPECT(&c, 0, 0, -PB_BPF_ENOTSUPP);
	c.call[0].arg[1].v = 60;
	EXPECT(&c, 0, 0);
	assert_true((int64_t)ours.ret[1] > 0);
}

/* The packet's sum stays right if bytes at an odd offset are removed. */
static void sums_at_odd_offsets(void **state)
{
	static struct calls c;

	for (int head = 0; head < 4; head++) {
		c = (struct calls){ .prog_type = CLS, .data_len = 90, .nr = 3,
			.flags = BPF_F_TEST_SKB_CHECKSUM_COMPLETE, .call = {
				HEAD(head), ROOM(-4, 0), SUM } };
		make_packet(&c, head & 2);
		EXPECT(&c, 0, 0, 0);
	}
}

static void levels(void **state)
{
	static struct calls c;

	c = (struct calls){ .prog_type = CLS, .data_len = 90, .nr = 16, .call = {
		LEVEL(DEC), LEVEL(QUERY), LEVEL(INC), LEVEL(QUERY), LEVEL(INC), LEVEL(INC),
		LEVEL(QUERY), LEVEL(INC), LEVEL(INC), LEVEL(QUERY), LEVEL(DEC), LEVEL(QUERY),
		LEVEL(RESET), LEVEL(QUERY), LEVEL(INC), LEVEL(QUERY) } };
	make_packet(&c, false);
	EXPECT(&c, 0, 0, -EACCES, 0, 0, 0, 0, 2, 0, 0, 3, 0, 2, 0, -EACCES, 0, 0);
	/* a packet with a sum has no level */
	c.flags = BPF_F_TEST_SKB_CHECKSUM_COMPLETE;
	EXPECT(&c, 0, 0, -EACCES, 0, -EACCES, 0, 0, -EACCES);
	c = (struct calls){ .prog_type = CLS, .data_len = 90, .nr = 9, .call = {
		LEVEL(INC), LEVEL(INC), ROOM(4, BPF_F_ADJ_ROOM_NO_CSUM_RESET), LEVEL(QUERY),
		ROOM(-5000, 0), LEVEL(QUERY), ROOM(-4, 0), LEVEL(QUERY), LEVEL(DEC) } };
	make_packet(&c, true);
	EXPECT(&c, 0, 0, 0, 0, 1, -EFAULT, 1, 0, -EACCES, 0);
}

/* The GSO type of a test run's packet is neither TCP nor UDP_L4. */
static void gso_packets(void **state)
{
	const uint64_t two_headers = BPF_F_ADJ_ROOM_ENCAP_L3_IPV4 | BPF_F_ADJ_ROOM_ENCAP_L3_IPV6;
	static struct calls c;
	struct __sk_buff s = { .gso_size = 1000, .gso_segs = 3 }, out;

	c = (struct calls){ .prog_type = CLS, .data_len = 90, .nr = 7, .has_ctx = true,
		.ctx_len = sizeof(s), .call = {
		ROOM(4, 0), ROOM(4, two_headers), ROOM(-4, 0), ROOM(-4, two_headers),
		TAIL(80), ROOM(4, 0), ROOM(-4, 0) } };
	make_packet(&c, false);
	memcpy(c.ctx, &s, sizeof(s));
	EXPECT(&c, 0, -PB_BPF_ENOTSUPP, -PB_BPF_ENOTSUPP, -PB_BPF_ENOTSUPP, -EINVAL, 0, 0, 0);
	memcpy(&out, ours.ctx, sizeof(out));
	assert_int_equal(out.gso_segs, 0);
	/* such a packet may be longer than others */
	c.nr = 1;
	c.call[0] = (struct call)HEAD(20000);
	EXPECT(&c, 0, 0);
	s.gso_size = 0x10000;		/* the field has 16 bits */
	memcpy(c.ctx, &s, sizeof(s));
	EXPECT(&c, 0, -EINVAL);
}

/* Linux 6.18 doesn't send a packet without a GSO type. Older kernels send it, so they aren't
 * asked. Our host sends nothing, and bpf_clone_redirect() returns -EINVAL. */
static void redirected_gso_packets(void **state)
{
	static struct calls c;
	struct __sk_buff s = { .gso_size = 1000 };

	c = (struct calls){ .prog_type = CLS, .data_len = 90, .nr = 3, .has_ctx = true,
		.ctx_len = sizeof(s), .call = {
		{ BPF_FUNC_clone_redirect, { CTX_, I(1), I(0) } }, TAIL(80),
		{ BPF_FUNC_clone_redirect, { CTX_, I(1), I(0) } } } };
	make_packet(&c, false);
	memcpy(c.ctx, &s, sizeof(s));
	calls_ours(&c, &ours);
	assert_int_equal((int64_t)ours.ret[0], -EBADMSG);
	assert_int_equal((int64_t)ours.ret[2], -EINVAL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(about_packets),
		cmocka_unit_test(sums_of_marked_packets),
		cmocka_unit_test(checksums_of_marked_headers),
		cmocka_unit_test(sums_of_resized_packets),
		cmocka_unit_test(sums_at_odd_offsets),
		cmocka_unit_test(levels),
		cmocka_unit_test(gso_packets),
		cmocka_unit_test(redirected_gso_packets),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
