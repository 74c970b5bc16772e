// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Runs a program for each allowed access to a field of a context, on all engines and in the kernel.
 * Compares the values that reads return, and the field's contents after writes.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <cmocka.h>

#include "bpf/run/test_run.h"
#include "bpf/verifier/verify.h"
#include "kernel.h"
#include "own.h"

static uint8_t packet[80], ctx[192];
static uint32_t ctx_len;

struct result { int err; uint32_t retval; uint8_t ctx[192]; };

static uint8_t width_code(int size)
{
	return size == 1 ? BPF_B : size == 2 ? BPF_H : size == 4 ? BPF_W : BPF_DW;
}

enum how { PLAIN, CONSTANT, SIGNED };	/* CONSTANT: the store has a constant; SIGNED: the load
					 * extends the sign */

/* Makes a program that loads the field at off, and sets r0 to a hash of the two halves of the
 * loaded value. If `store` isn't NULL, the program first stores *store at off. Returns the number
 * of instructions. */
static uint32_t assemble(struct bpf_insn *insns, int off, int size, const uint64_t *store,
			 enum how how)
{
	uint8_t mode = how == SIGNED ? 0x80 /* BPF_MEMSX */ : BPF_MEM;
	struct bpf_insn *i = insns;

	if (store && how == CONSTANT) {
		*i++ = (struct bpf_insn){ .code = (uint8_t)(BPF_ST | BPF_MEM | width_code(size)),
					  .dst_reg = 1, .off = (int16_t)off,
					  .imm = (int32_t)*store };
	} else if (store) {
		*i++ = (struct bpf_insn){ .code = BPF_LD | BPF_IMM | BPF_DW, .dst_reg = 2,
					  .imm = (int32_t)*store };
		*i++ = (struct bpf_insn){ .imm = (int32_t)(*store >> 32) };
		*i++ = (struct bpf_insn){ .code = (uint8_t)(BPF_STX | BPF_MEM | width_code(size)),
					  .dst_reg = 1, .src_reg = 2, .off = (int16_t)off };
	}
	*i++ = (struct bpf_insn){ .code = (uint8_t)(BPF_LDX | mode | width_code(size)),
				  .dst_reg = 0, .src_reg = 1, .off = (int16_t)off };
	*i++ = (struct bpf_insn){ .code = BPF_ALU64 | BPF_MOV | BPF_X, .dst_reg = 2, .src_reg = 0 };
	*i++ = (struct bpf_insn){ .code = BPF_ALU64 | BPF_RSH | BPF_K, .dst_reg = 2, .imm = 32 };
	*i++ = (struct bpf_insn){ .code = BPF_ALU64 | BPF_MUL | BPF_K, .dst_reg = 2, .imm = 31 };
	*i++ = (struct bpf_insn){ .code = BPF_ALU64 | BPF_ADD | BPF_X, .dst_reg = 0, .src_reg = 2 };
	/* a program's result has only 32 bits, so the result is a hash of the two halves */
	*i++ = (struct bpf_insn){ .code = BPF_JMP | BPF_EXIT };
	return (uint32_t)(i - insns);
}

static bool is_raw(uint32_t type)
{
	return type == BPF_PROG_TYPE_RAW_TRACEPOINT;
}

static struct result run_ours(uint32_t type, const struct pb_bpf_prog *prog)
{
	struct result r = { 0 };
	struct pb_bpf_test_run t = {
		.prog = prog, .host = pb_bpf_host_linux(), .ctx_in = ctx, .ctx_size_in = ctx_len,
		.data_in = is_raw(type) ? NULL : packet,
		.data_size_in = is_raw(type) ? 0 : sizeof(packet),
		.ctx_out = is_raw(type) ? NULL : r.ctx,
		.ctx_size_out = is_raw(type) ? 0 : sizeof(r.ctx),
	};

	r.err = pb_bpf_test_run(&t);
	r.retval = t.retval;
	return r;
}

static struct result run_kernel(uint32_t type, int fd)
{
	struct result r = { 0 };
	union bpf_attr a;

	memset(&a, 0, sizeof(a));
	a.test.prog_fd = (uint32_t)fd;
	a.test.ctx_in = (uintptr_t)ctx;
	a.test.ctx_size_in = ctx_len;
	if (!is_raw(type)) {
		a.test.data_in = (uintptr_t)packet;
		a.test.data_size_in = sizeof(packet);
		a.test.ctx_out = (uintptr_t)r.ctx;
		a.test.ctx_size_out = sizeof(r.ctx);
	}
	r.err = kernel_bpf(BPF_PROG_TEST_RUN, &a) < 0 ? -errno : 0;
	r.retval = a.test.retval;
	return r;
}

static unsigned accesses;

static int compare(const struct pb_bpf_type *t, int off, int size, const uint64_t *store,
		   enum how how)
{
	static char log[1 << 16];
	struct bpf_insn insns[16];
	uint32_t nr = assemble(insns, off, size, store, how);
	int result_at = offsetof(struct __sk_buff, mark);
	struct result ours, kernels;
	struct own_prog p;
	int fd, differ = 0;

	/* the verifier checks the range of a CGROUP_SKB program's result, so the value is returned
	 * in a field that the program doesn't test */
	if (t->type == BPF_PROG_TYPE_CGROUP_SKB) {
		if (off / 4 == result_at / 4)
			result_at = offsetof(struct __sk_buff, priority);
		insns[nr - 1] = (struct bpf_insn){ .code = BPF_STX | BPF_MEM | BPF_W, .dst_reg = 1,
						   .off = (int16_t)result_at };
		insns[nr++] = (struct bpf_insn){ .code = BPF_ALU64 | BPF_MOV | BPF_K, .imm = 1 };
		insns[nr++] = (struct bpf_insn){ .code = BPF_JMP | BPF_EXIT };
	}
	fd = kernel_load(t->type, 0, insns, nr, NULL, 0);
	if (own_load(&p, t->type, insns, nr, NULL, 0, log, sizeof(log)) || fd < 0) {
		print_message("%s off %d size %d way %d: can't be loaded (kernel %d): %s\n",
			      t->name, off, size, how, fd, log);
		return 1;
	}
	kernels = run_kernel(t->type, fd);
	for (enum engine e = 0; e < NR_ENGINES; e++) {
		ours = run_ours(t->type, p.progs[e]);
		if (ours.err == kernels.err && ours.retval == kernels.retval &&
		    !memcmp(ours.ctx, kernels.ctx, sizeof(ours.ctx)))
			continue;
		print_message("%s off %d size %d way %d %s%#lx on the %s: %d %#x, "
			      "the kernel %d %#x\n", t->name, off, size, how, store ? "= " : "",
			      store ? *store : 0, engine_names[e], ours.err, ours.retval,
			      kernels.err, kernels.retval);
		differ = 1;
	}
	accesses++;
	close(fd);
	own_free(&p);
	return differ;
}

/* Returns whether the field's value can be compared. Addresses differ, so only scalars can be
 * compared. */
static bool has_a_value(const struct pb_bpf_type *t, int off, int size, bool write)
{
	struct pb_bpf_ctx_access a;

	return !pb_bpf_ctx_access(t, PB_BPF_CAP_ALL, 0, off, size, write, &a) &&
	       a.kind == PB_BPF_FIELD_SCALAR;
}

static void make_ctx(uint32_t type)
{
	struct __sk_buff s = {
		.mark = 0x81828384, .priority = 0x91929394, .ingress_ifindex = 1, .ifindex = 1,
		.cb = { 0xa1a2a3a4, 5, 6, 7, 8 },
		.tstamp = 0x1122334455667788, .wire_len = 100, .gso_segs = 3, .gso_size = 0x54321,
		.hwtstamp = 0x99aabbccddeeff00,
	};
	struct xdp_md md = { .data_end = sizeof(packet), .ingress_ifindex = 1 };

	memset(ctx, 0, sizeof(ctx));
	if (type == BPF_PROG_TYPE_XDP) {
		memcpy(ctx, &md, ctx_len = sizeof(md));
	} else if (is_raw(type)) {
		for (uint32_t i = 0; i < (ctx_len = 96); i++)
			ctx[i] = (uint8_t)(i * 7 + 1);
	} else {
		memcpy(ctx, &s, ctx_len = sizeof(s));
	}
}

static int compare_all(const struct pb_bpf_type *t)
{
	static const uint64_t stores[] = { 0x123456789abcdef0, 5, 0xfffe, 0xffff, ~0ull };
	int differ = 0;

	make_ctx(t->type);
	for (int off = 0; off < t->ctx_size; off++)
		for (int size = 1; size <= 8; size *= 2) {
			if (has_a_value(t, off, size, false))
				differ += compare(t, off, size, NULL, PLAIN);
			if (has_a_value(t, off, size, false) && size < 8)
				differ += compare(t, off, size, NULL, SIGNED);
			if (!has_a_value(t, off, size, true))
				continue;
			for (size_t n = 0; n < 2 * sizeof(stores) / sizeof(stores[0]); n++)
				differ += compare(t, off, size, &stores[n / 2],
						  n % 2 ? CONSTANT : PLAIN);
		}
	return differ;
}

/* type: the packet's protocol */
static void make_packet(uint16_t type)
{
	for (size_t i = 0; i < sizeof(packet); i++)
		packet[i] = (uint8_t)(i * 37 + 5);
	packet[12] = (uint8_t)(type >> 8);
	packet[13] = (uint8_t)type;
}

static void fields(void **state)
{
	static const uint32_t types[] = {
		BPF_PROG_TYPE_SOCKET_FILTER, BPF_PROG_TYPE_SCHED_CLS, BPF_PROG_TYPE_CGROUP_SKB,
		BPF_PROG_TYPE_XDP, BPF_PROG_TYPE_RAW_TRACEPOINT,
	};
	int differ = 0;

	if (!kernel_is_there())
		skip();
	make_packet(0x0800);
	for (size_t k = 0; k < sizeof(types) / sizeof(types[0]); k++)
		differ += compare_all(pb_bpf_type_of(types[k]));
	make_packet(0x86dd);
	differ += compare_all(pb_bpf_type_of(BPF_PROG_TYPE_CGROUP_SKB));
	print_message("%u accesses\n", accesses);
	assert_int_equal(differ, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(fields) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
