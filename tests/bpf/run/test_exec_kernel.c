/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Verifies programs that make tail calls or load from packets. Runs them on all engines and in this
 * machine's kernel. Results and packets must be the same.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>
#include <errno.h>
#include <linux/btf.h>
#include <stdio.h>
#include <string.h>
#include "asm.h"
#include "base/base.h"
#include "bpf/core/program.h"
#include "bpf/map/map.h"
#include "kernel.h"
#include "own.h"

#define MOST_PROGS	3
#define MOST_INSNS	256

static bool kernel;

static uint32_t assembled(const char *text, struct bpf_insn *insns)
{
	struct asm_out out = { .insns = insns, .most = MOST_INSNS };

	if (assemble(text, &out))
		fail_msg("%s", out.error);
	return out.nr;
}

static void same(const struct own_run *a, const struct own_run *b, const char *who,
		 const char *name)
{
	if (a->retval != b->retval || a->out_len != b->out_len ||
	    memcmp(a->out, b->out, a->out_len))
		fail_msg("%s: %s returns %u, the other %u; the packet begins with %02x and %02x",
			 name, who, b->retval, a->retval, b->out[0], a->out[0]);
}

/* ---- tail calls ---------------------------------------------------------------- */

/* For XDP programs: increments the packet's first byte, and sets r6 to the context. */
#define COUNT \
	"r6 = r1\n r7 = *(u32 *)(r1 +0)\n r8 = *(u32 *)(r1 +4)\n r9 = r7\n r9 += 14\n" \
	" if r9 > r8 goto pc+3\n" \
	"r0 = *(u8 *)(r7 +0)\n r0 += 1\n *(u8 *)(r7 +0) = r0\n"
#define TAIL(index)	"r1 = r6\n r2 = map 0\n r3 = " index "\n call #12\n"

static const struct chain {
	const char *name;
	const char *progs[MOST_PROGS];		/* the test runs the first program */
	int calls;				/* how often a program starts, which the packet's
						 * first byte counts; -1: not known, but the
						 * kernel must have the same number */
} chains[] = {
	{ "itself", { COUNT TAIL("0") "r0 = 7\n exit" }, 34 },
	{ "another one", { COUNT TAIL("1") "r0 = 1\n exit", COUNT "r0 = 5\n exit" }, 2 },
	{ "an empty slot", { COUNT TAIL("2") "r0 = 3\n exit" }, 1 },
	{ "beyond the end", { COUNT TAIL("3") TAIL("-1") "r0 = 3\n exit" }, 1 },
	{ "empty slots don't count", { COUNT TAIL("2") TAIL("2") TAIL("0") "r0 = 3\n exit" }, 34 },
	{ "to and fro", { COUNT TAIL("1") "r0 = 1\n exit", COUNT TAIL("0") "r0 = 2\n exit" }, 34 },
	{ "round", { COUNT TAIL("1") "r0 = 1\n exit", COUNT TAIL("2") "r0 = 2\n exit",
		     COUNT TAIL("0") "r0 = 4\n exit" }, 34 },
	{ "twice after it failed",
		{ COUNT TAIL("0") TAIL("1") "r0 = 9\n exit", COUNT "r0 = 5\n exit" }, 34 },
	{ "in a subprogram", { COUNT "r1 = r6\n call sub\n r0 += 10\n exit\n"
		"sub: r6 = r1\n" TAIL("1") "r0 = 1\n exit", COUNT "r0 = 5\n exit" }, 2 },
	{ "in a subprogram, empty", { COUNT "r1 = r6\n call sub\n r0 += 10\n exit\n"
		"sub: r6 = r1\n" TAIL("2") "r0 = 1\n exit" }, 1 },
	{ "a subprogram to itself", { COUNT "r1 = r6\n call sub\n r0 += 1\n exit\n"
		"sub: r6 = r1\n" TAIL("0") "r0 = 1\n exit" }, 34 },
	{ "a subprogram twice", { COUNT "r1 = r6\n call sub\n r1 = r6\n call sub\n r0 += 1\n exit\n"
		"sub: r6 = r1\n" TAIL("0") "r0 = 1\n exit" }, -1 },
	{ "a subprogram, then the program", {
		COUNT "r1 = r6\n call sub\n" TAIL("1") "r0 = 9\n exit\n"
		"sub: r6 = r1\n" TAIL("1") "r0 = 1\n exit", COUNT "r0 = 5\n exit" }, 3 },
	{ "the subprogram's caller keeps its stack", {
		"*(u64 *)(r10 -8) = 40\n" COUNT "r1 = r6\n r9 = 2\n call sub\n"
		"r1 = *(u64 *)(r10 -8)\n r0 += r1\n r0 += r9\n exit\n"
		" sub: r6 = r1\n *(u64 *)(r10 -8) = 1\n r9 = 0\n" TAIL("1") "r0 = 1\n exit",
		"*(u64 *)(r10 -8) = 0\n" COUNT "r9 = 0\n r0 = 100\n exit" }, 2 },
	{ "a subprogram's subprogram", { COUNT "r1 = r6\n call one\n r0 += 10\n exit\n"
		"one: r6 = r1\n call two\n r0 += 20\n exit\n two: r6 = r1\n" TAIL("1")
		"r0 = 1\n exit",
		COUNT "r1 = r6\n call sub\n r0 += 100\n exit\n sub: r6 = r1\n" TAIL("2")
		"r0 = 2\n exit", COUNT "r0 = 3\n exit" }, 3 },
};

static struct pb_bpf_prog *slots[MOST_PROGS];

static const struct pb_bpf_prog *slot(struct pb_bpf_map *map, uint32_t index)
{
	return index < MOST_PROGS ? slots[index] : NULL;
}

static const struct pb_bpf_map_ops array_ops = { .prog = slot };
static struct pb_bpf_map array = { .ops = &array_ops,
	.attr = { .type = BPF_MAP_TYPE_PROG_ARRAY, .key_size = 4, .value_size = 4,
		.max_entries = MOST_PROGS },
	.types = { .spin_lock_off = -1, .timer_off = -1 } };

static void run_ours(const struct chain *c, struct own_run *r)
{
	struct pb_bpf_map *maps[] = { &array };
	static char log[1 << 20];
	struct own_prog p[MOST_PROGS] = { 0 };
	struct own_run first;

	for (int k = 0; k < MOST_PROGS && c->progs[k]; k++) {
		struct bpf_insn insns[MOST_INSNS];
		uint32_t nr = assembled(c->progs[k], insns);

		if (own_load(&p[k], BPF_PROG_TYPE_XDP, insns, nr, maps, 1, log, sizeof(log)))
			fail_msg("%s: program %d: %s", c->name, k, log);
	}
	for (enum engine e = 0; e < NR_ENGINES; e++) {
		for (int k = 0; k < MOST_PROGS; k++)
			slots[k] = p[k].progs[e];
		assert_int_equal(own_run(&p[0], e, r), 0);
		if (c->calls >= 0)
			assert_int_equal(r->out[0], c->calls);
		if (e)
			same(&first, r, engine_names[e], c->name);
		first = *r;
	}
	for (int k = 0; k < MOST_PROGS; k++)
		own_free(&p[k]);
}

/* Loads BTF of "static int f()", the type of all subprograms. */
static int load_btf(void)
{
	static const struct {
		struct btf_header head;
		struct btf_type integer;
		uint32_t encoding;
		struct btf_type proto, func;
		char names[8];
	} btf = {
		.head = { .magic = BTF_MAGIC, .version = BTF_VERSION,
			  .hdr_len = sizeof(struct btf_header),
			  .type_len = 3 * sizeof(struct btf_type) + 4,
			  .str_off = 3 * sizeof(struct btf_type) + 4, .str_len = 8 },
		.integer = { .name_off = 3, .info = BTF_KIND_INT << 24, .size = 4 },
		.encoding = BTF_INT_SIGNED << 24 | 32,
		.proto = { .info = BTF_KIND_FUNC_PROTO << 24, .type = 1 },
		.func = { .name_off = 1, .info = BTF_KIND_FUNC << 24 | BTF_FUNC_STATIC, .type = 2 },
		.names = "\0f\0int",
	};
	union bpf_attr a = { .btf = (uintptr_t)&btf, .btf_size = sizeof(btf) };

	return (int)kernel_bpf(BPF_BTF_LOAD, &a);
}

static int load_with_btf(int btf, const struct bpf_insn *insns, uint32_t nr, char *log,
			 uint32_t size)
{
	struct bpf_func_info info[OWN_MOST_FUNCS];
	uint32_t starts[OWN_MOST_FUNCS], n = own_find_funcs(insns, nr, starts);
	union bpf_attr a = { .prog_type = BPF_PROG_TYPE_XDP, .insns = (uintptr_t)insns,
		.insn_cnt = nr, .license = (uintptr_t)"GPL", .log_buf = (uintptr_t)log,
		.log_size = size, .log_level = 1, .prog_btf_fd = (uint32_t)btf,
		.func_info_rec_size = sizeof(info[0]),
		.func_info = (uintptr_t)info, .func_info_cnt = n };

	for (uint32_t k = 0; k < n; k++)
		info[k] = (struct bpf_func_info){ .insn_off = starts[k], .type_id = 3 };
	return (int)kernel_bpf(BPF_PROG_LOAD, &a);
}

static void run_kernels(const struct chain *c, struct own_run *r)
{
	union bpf_attr a = { .map_type = BPF_MAP_TYPE_PROG_ARRAY, .key_size = 4, .value_size = 4,
		.max_entries = MOST_PROGS };
	int map = (int)kernel_bpf(BPF_MAP_CREATE, &a), btf = load_btf(), fds[MOST_PROGS];
	static char log[1 << 20];
	uint32_t k;

	for (k = 0; k < MOST_PROGS && c->progs[k]; k++) {
		struct bpf_insn insns[MOST_INSNS];
		uint32_t nr = assembled(c->progs[k], insns);

		for (uint32_t i = 0; i < nr; i++)
			if (insns[i].code == (BPF_LD | BPF_IMM | BPF_DW) &&
			    insns[i].src_reg == BPF_PSEUDO_MAP_FD)
				insns[i].imm = map;
		fds[k] = load_with_btf(btf, insns, nr, log, sizeof(log));
		if (fds[k] < 0)
			fail_msg("%s: program %u: %s", c->name, k, log);
		a = (union bpf_attr){ .map_fd = (uint32_t)map, .key = (uintptr_t)&k,
				      .value = (uintptr_t)&fds[k] };
		assert_int_equal(kernel_bpf(BPF_MAP_UPDATE_ELEM, &a), 0);
	}
	assert_int_equal(kernel_test_run(fds[0], r), 0);
	close(map);
	close(btf);
	while (k--)
		close(fds[k]);
}

static void tail_calls_are_the_kernels(void **state)
{
	for (size_t k = 0; k < pb_array_size(chains); k++) {
		const uint8_t in[64] = { 0 };
		static struct own_run ours, theirs;

		ours = theirs = (struct own_run){ .in = in, .len = sizeof(in) };
		run_ours(&chains[k], &ours);
		if (!kernel)
			continue;
		run_kernels(&chains[k], &theirs);
		same(&theirs, &ours, "ours", chains[k].name);
	}
}

/* ---- packets by LD_ABS and LD_IND -------------------------------------------------- */

/* Tests loads of all widths at an offset. The offset is in a register (by_reg) or a constant. */
static void load_at(int64_t off, bool by_reg, uint32_t len)
{
	static const char *const widths[] = { "u8", "u16", "u32" };
	uint8_t in[64];

	for (uint32_t i = 0; i < sizeof(in); i++)
		in[i] = (uint8_t)(i * 7 + 0x91);
	for (int w = 0; w < 3; w++) {
		static struct own_run ours, theirs;
		struct bpf_insn insns[MOST_INSNS];
		struct own_prog p;
		char text[300];
		uint32_t nr;

		/* the xor in the program shows whether the program continued after the load */
		if (by_reg)
			snprintf(text, sizeof(text), "r6 = r1\n r7 = %ld\n"
				 " r0 = *(%s *)skb[r7 + 2]\n r0 ^= 0x5a\n exit", off - 2,
				 widths[w]);
		else
			snprintf(text, sizeof(text), "r6 = r1\n r0 = *(%s *)skb[%ld]\n"
				 " r0 ^= 0x5a\n exit", widths[w], off);
		nr = assembled(text, insns);
		assert_int_equal(own_load(&p, BPF_PROG_TYPE_SCHED_CLS, insns, nr, NULL, 0, NULL, 0),
				 0);
		theirs = (struct own_run){ .in = in, .len = len };
		if (kernel) {
			int fd = kernel_load(BPF_PROG_TYPE_SCHED_CLS, 0, insns, nr, NULL, 0);

			assert_true(fd >= 0);
			assert_int_equal(kernel_test_run(fd, &theirs), 0);
			close(fd);
		}
		for (enum engine e = 0; e < NR_ENGINES; e++) {
			ours = (struct own_run){ .in = in, .len = len };
			assert_int_equal(own_run(&p, e, &ours), 0);
			if (kernel || e)
				same(&theirs, &ours, engine_names[e], text);
			theirs = ours;
		}
		own_free(&p);
	}
}

static void packet_loads_are_the_kernels(void **state)
{
	static const int64_t offs[] = { 0, 1, 2, 3, 12, 13, 14, 59, 60, 61, 62, 63, 64, 65, 1000,
		0x7ffffff0, -1, -4, -14, -0x1000, -0x1004, -0xfffff, -0x100000, -0x100000 + 1,
		-0x100000 + 46, -0x100000 + 47, -0x100000 + 49, -0x100000 + 50, -0x100000 + 51,
		-0x100001, -0x200000, -0x200000 + 60, -0x200000 + 62, -0x200000 + 63,
		-0x200000 + 64, -0x200001, INT32_MIN + 2 };

	for (size_t k = 0; k < pb_array_size(offs); k++)
		for (int by_reg = 0; by_reg < 2; by_reg++)
			load_at(offs[k], by_reg, 64);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(tail_calls_are_the_kernels),
		cmocka_unit_test(packet_loads_are_the_kernels),
	};

	kernel = kernel_is_there();
	if (!kernel)
		printf("without a kernel to compare with\n");
	return cmocka_run_group_tests(tests, NULL, NULL);
}
