// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Compares our rules for accesses to contexts with the kernel's rules. For every program type,
 * offset and size, loads a small program into the kernel. The program reads or writes the context
 * at the offset. The kernel's verdict must agree with our rules.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <cmocka.h>

#include "bpf/core/packet.h"
#include "bpf/verifier/verify.h"
#include "kernel.h"

static uint8_t width_code(int size)
{
	return size == 1 ? BPF_B : size == 2 ? BPF_H : size == 4 ? BPF_W : BPF_DW;
}

static int verdict(uint32_t type, uint32_t attach_type, int off, int size, bool write)
{
	struct bpf_insn insns[] = {
		{ .code = BPF_ALU64 | BPF_MOV | BPF_K },
		{ .code = (uint8_t)((write ? BPF_STX : BPF_LDX) | BPF_MEM | width_code(size)),
		  .dst_reg = write ? 1 : 2, .src_reg = write ? 0 : 1, .off = (int16_t)off },
		{ .code = BPF_ALU64 | BPF_MOV | BPF_K },
		{ .code = BPF_JMP | BPF_EXIT },
	};
	int fd = kernel_load(type, attach_type, insns, 4, NULL, 0);

	if (fd >= 0)
		close(fd);
	return fd < 0 ? fd : 0;
}

/*
 * Returns whether we may refuse an access that the kernel allows. There is only one such case. For
 * tracepoints, the kernel compares the offset with sizeof(void *). This comparison is unsigned, so
 * a negative offset passes, and a program may read before the record.
 */
static bool is_stricter(uint32_t type, int off, bool write)
{
	return type == BPF_PROG_TYPE_TRACEPOINT && off < 0 && !write;
}

static unsigned compare(const struct pb_bpf_type *t, uint32_t attach_type, int end)
{
	struct pb_bpf_ctx_access a;
	unsigned differ = 0;

	for (int off = -8; off < end; off++)
		for (int k = 0; k < 8; k++) {
			int size = 1 << (k & 3), ours, kernels;
			bool write = k >> 2;

			ours = pb_bpf_ctx_access(t, PB_BPF_CAP_ALL, attach_type, off, size,
						 write, &a);
			kernels = verdict(t->type, attach_type, off, size, write);
			if (!ours == !kernels)
				continue;
			if (ours && !kernels && is_stricter(t->type, off, write))
				continue;
			if (differ++ < 20)
				print_message("%s %s off %d size %d: %d, the kernel %d\n", t->name,
					      write ? "write" : "read", off, size, ours, kernels);
		}
	return differ;
}

static void contexts_are_the_kernels(void **state)
{
	const struct pb_bpf_type *t;
	unsigned differ = 0;

	if (!kernel_is_there())
		skip();
	for (uint32_t i = 0; (t = pb_bpf_type_at(i)); i++)
		differ += compare(t, 0, t->ctx_size + 8);
	differ += compare(pb_bpf_type_of(BPF_PROG_TYPE_XDP), BPF_XDP_DEVMAP, 32);
	assert_int_equal(differ, 0);
}

static void privileges(void **state)
{
	const struct pb_bpf_type *cg = pb_bpf_type_of(BPF_PROG_TYPE_CGROUP_SKB);
	struct pb_bpf_ctx_access a;

	assert_int_equal(pb_bpf_ctx_access(cg, 0, 0, offsetof(struct __sk_buff, data), 4, false,
					   &a), -EACCES);
	assert_int_equal(pb_bpf_ctx_access(cg, PB_BPF_CAP_BPF, 0, offsetof(struct __sk_buff, data),
					   4, false, &a), 0);
	assert_int_equal(a.kind, PB_BPF_FIELD_PKT);
	assert_int_equal(a.width, 8);
	assert_int_equal(a.at, offsetof(struct pb_bpf_skb, pkt.data));
	assert_int_equal(pb_bpf_ctx_access(cg, 0, 0, offsetof(struct __sk_buff, tstamp), 8, true,
					   &a), -EACCES);
	assert_int_equal(pb_bpf_ctx_access(cg, 0, 0, offsetof(struct __sk_buff, tstamp), 8, false,
					   &a), 0);
	assert_int_equal(pb_bpf_ctx_access(cg, PB_BPF_CAP_BPF, 0,
					   offsetof(struct __sk_buff, tstamp), 8, true, &a), 0);
}

static void places(void **state)
{
	const struct pb_bpf_type *cls = pb_bpf_type_of(BPF_PROG_TYPE_SCHED_CLS);
	struct pb_bpf_ctx_access a;

	/* the access reads a part of a field */
	assert_int_equal(pb_bpf_ctx_access(cls, 7, 0, offsetof(struct __sk_buff, mark) + 2, 2,
					   false, &a), 0);
	assert_int_equal(a.at, offsetof(struct __sk_buff, mark) + 2);
	assert_int_equal(a.width, 2);
	assert_int_equal(a.field_size, 4);
	/* these fields keep only 16 bits */
	assert_int_equal(pb_bpf_ctx_access(cls, 7, 0, offsetof(struct __sk_buff, tc_classid), 4,
					   true, &a), 0);
	assert_int_equal(a.width, 2);
	assert_int_equal(a.below, 0);
	assert_int_equal(pb_bpf_ctx_access(cls, 7, 0, offsetof(struct __sk_buff, queue_mapping), 4,
					   true, &a), 0);
	assert_int_equal(a.below, 0xffff);
	assert_int_equal(pb_bpf_ctx_access(cls, 7, 0, offsetof(struct __sk_buff, sk), 8, false, &a),
			 0);
	assert_int_equal(a.kind, PB_BPF_FIELD_SOCK_COMMON);
}

/* Returns the kernel's verdict on a program. The program checks that a socket isn't NULL, and reads
 * a field of the socket. */
static int sock_verdict(enum pb_bpf_sock_kind kind, int off, int size)
{
	uint32_t call = kind == PB_BPF_SOCK_TCP ? BPF_FUNC_tcp_sock : BPF_FUNC_sk_fullsock;
	struct bpf_insn insns[16], *i = insns;
	int fd;

	*i++ = (struct bpf_insn){ .code = BPF_LDX | BPF_MEM | BPF_DW, .dst_reg = 1, .src_reg = 1,
				  .off = offsetof(struct __sk_buff, sk) };
	*i++ = (struct bpf_insn){ .code = BPF_JMP | BPF_JEQ | BPF_K, .dst_reg = 1,
				  .off = kind == PB_BPF_SOCK_COMMON ? 1 : 4 };
	if (kind != PB_BPF_SOCK_COMMON) {
		*i++ = (struct bpf_insn){ .code = BPF_JMP | BPF_CALL, .imm = (int)call };
		*i++ = (struct bpf_insn){ .code = BPF_ALU64 | BPF_MOV | BPF_X, .dst_reg = 1 };
		*i++ = (struct bpf_insn){ .code = BPF_JMP | BPF_JEQ | BPF_K, .dst_reg = 1,
					  .off = 1 };
	}
	*i++ = (struct bpf_insn){ .code = (uint8_t)(BPF_LDX | BPF_MEM | width_code(size)),
				  .dst_reg = 2, .src_reg = 1, .off = (int16_t)off };
	*i++ = (struct bpf_insn){ .code = BPF_ALU64 | BPF_MOV | BPF_K };
	*i++ = (struct bpf_insn){ .code = BPF_JMP | BPF_EXIT };
	fd = kernel_load(BPF_PROG_TYPE_SCHED_CLS, 0, insns, (uint32_t)(i - insns), NULL, 0);
	if (fd >= 0)
		close(fd);
	return fd < 0 ? fd : 0;
}

static void sockets_are_the_kernels(void **state)
{
	struct pb_bpf_ctx_access a;
	unsigned differ = 0;

	if (!kernel_is_there())
		skip();
	for (enum pb_bpf_sock_kind kind = PB_BPF_SOCK_COMMON; kind <= PB_BPF_SOCK_TCP; kind++)
		for (int off = -8; off < 140; off++)
			for (int size = 1; size <= 8; size *= 2) {
				int ours = pb_bpf_sock_access(kind, off, size, false, &a);
				int kernels = sock_verdict(kind, off, size);

				if (!ours == !kernels)
					continue;
				differ++;
				print_message("kind %d off %d size %d: %d, the kernel %d\n", kind,
					      off, size, ours, kernels);
			}
	assert_int_equal(differ, 0);
	assert_int_equal(pb_bpf_sock_access(PB_BPF_SOCK_FULL, 0, 4, true, &a), -EACCES);
}

static void names(void **state)
{
	assert_ptr_equal(pb_bpf_type_named("raw_tp"), pb_bpf_type_of(BPF_PROG_TYPE_RAW_TRACEPOINT));
	assert_ptr_equal(pb_bpf_type_named("sched_cls"), pb_bpf_type_of(BPF_PROG_TYPE_SCHED_CLS));
	assert_null(pb_bpf_type_named("nonsense"));
	assert_null(pb_bpf_type_of(BPF_PROG_TYPE_LSM));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(names),
		cmocka_unit_test(places),
		cmocka_unit_test(privileges),
		cmocka_unit_test(contexts_are_the_kernels),
		cmocka_unit_test(sockets_are_the_kernels),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
