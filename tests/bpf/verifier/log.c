/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Tests the verifier's log. If the log's buffer is small, the verdict must not change, and the log
 * must keep its last lines. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "insns.h"
#include "bpf/core/textbuf.h"
#include "bpf/run/heap.h"
#include "bpf/verifier/verify.h"

static int verdict_of(const struct bpf_insn *insns, uint32_t nr, uint32_t level,
		      struct pb_bpf_text *log)
{
	struct pb_bpf_verify v = {
		.type = pb_bpf_type_of(BPF_PROG_TYPE_SOCKET_FILTER), .caps = PB_BPF_CAP_ALL,
		.gpl = true, .insns = insns,
		.nr = nr, .log = log, .log_level = level, .mem = &pb_bpf_heap,
	};
	int err = pb_bpf_verify(&v);

	pb_bpf_facts_free(&pb_bpf_heap, v.facts);
	assert_int_equal(v.log_level, level);
	return err;
}

/* Verifies a program with a loop. After the loop, a good program sets r0 to 0. A bad program sets
 * r0 to r3, which is uninitialized. */
static int verdict(bool good, uint32_t level, struct pb_bpf_text *log)
{
	const struct bpf_insn insns[] = {
		BPF_MOV64_IMM(1, 0), BPF_ALU64_IMM(BPF_ADD, 1, 1), BPF_JMP_IMM(BPF_JLT, 1, 100, -2),
		good ? BPF_MOV64_IMM(0, 0) : BPF_MOV64_REG(0, 3), BPF_EXIT_INSN(),
	};

	return verdict_of(insns, sizeof insns / sizeof *insns, level, log);
}

/* Tests log buffers of many sizes. First, a large buffer gets the whole log. Then each buffer of
 * more than 300 bytes must get the end of the whole log. */
static void test_verdict_with_little_room(void **state)
{
	static char all[4 << 20], some[1 << 16];

	for (uint32_t level = 0; level <= 8; level = level ? level * 2 : 1)
		for (int good = 0; good < 2; good++) {
			struct pb_bpf_text whole = { .buf = all, .size = sizeof all };
			int err = good ? 0 : -EACCES;

			all[0] = 0;
			assert_int_equal(verdict(good, level, &whole), err);
			assert_false(whole.cut);
			for (uint32_t size = 0; size < 2000; size += size < 300 ? 1 : 97) {
				struct pb_bpf_text t = { .buf = malloc(size + 1), .size = size };

				memset(t.buf, 0, size + 1);
				assert_int_equal(verdict(good, level, &t), err);
				assert_int_equal(t.buf[size], 0);
				if (size > 300) {
					snprintf(some, sizeof some, "%s", t.buf);
					assert_true(strlen(some) <= whole.len);
					assert_string_equal(some, all + whole.len - strlen(some));
					assert_true(strlen(some) == whole.len ||
						    strlen(some) >= size / 2 - 100);
				}
				free(t.buf);
			}
		}
}

static void test_only_of_a_refusal(void **state)
{
	static char text[1 << 16];
	struct pb_bpf_text t = { .buf = text, .size = sizeof text };

	assert_int_equal(verdict(true, PB_BPF_LOG_REFUSAL, &t), 0);
	assert_int_equal(t.len, 0);
	assert_int_equal(verdict(false, PB_BPF_LOG_REFUSAL, &t), -EACCES);
	assert_non_null(strstr(text, "R3 !read_ok\n"));
}

/* Memory that runs short once. */
struct brief {
	struct pb_bpf_mem mem;
	int fails_at, nr, used;
};

static void *brief_alloc(struct pb_bpf_mem *mem, size_t size)
{
	struct brief *b = (struct brief *)mem;

	if (++b->nr == b->fails_at)
		return NULL;
	b->used++;
	return calloc(1, size);
}

static void brief_free(struct pb_bpf_mem *mem, void *p, size_t size)
{
	((struct brief *)mem)->used -= !!p;
	free(p);
}

/* The second verification, which writes the log of a refusal, finds enough memory. Its verdict
 * counts, and the caller gets the facts. */
static void test_memory_is_short_once(void **state)
{
	static const struct bpf_insn p[] = { BPF_MOV64_IMM(0, 0), BPF_EXIT_INSN() };
	static char text[1 << 16];
	struct brief b = { .mem = { brief_alloc, brief_free } };

	do {
		struct pb_bpf_text log = { .buf = text, .size = sizeof text };
		struct pb_bpf_verify v = {
			.type = pb_bpf_type_of(BPF_PROG_TYPE_SOCKET_FILTER),
			.caps = PB_BPF_CAP_ALL, .gpl = true, .insns = p, .nr = 2, .log = &log,
			.log_level = PB_BPF_LOG_REFUSAL, .mem = &b.mem,
		};

		b.nr = 0;
		b.fails_at++;
		assert_int_equal(pb_bpf_verify(&v), 0);
		assert_non_null(v.facts);
		pb_bpf_facts_free(&b.mem, v.facts);
		assert_int_equal(b.used, 0);
	} while (b.nr >= b.fails_at);
	assert_true(b.fails_at > 2);
}

/* On one path, the branches require a number that is at least 25 (signed) and at most 32
 * (unsigned), and whose low half is 0. There is no such number. The verifier must report the
 * contradiction (REG INVARIANTS VIOLATION) when it walks this path, even if it walks another path
 * first. */
static void test_of_a_path_that_cannot_be_taken(void **state)
{
	static const struct bpf_insn p[] = {
		BPF_LDX_MEM(BPF_DW, 6, 10, -8),
		BPF_JMP_IMM(BPF_JSGE, 6, 25, 2), BPF_MOV64_IMM(0, 0), BPF_EXIT_INSN(),
		BPF_JMP32_IMM(BPF_JEQ, 6, 0, 2), BPF_MOV64_IMM(0, 0), BPF_EXIT_INSN(),
		BPF_JMP_IMM(BPF_JLE, 6, 32, 2), BPF_MOV64_IMM(0, 0), BPF_EXIT_INSN(),
		BPF_MOV64_REG(1, 10), BPF_ALU64_REG(BPF_ADD, 1, 6), BPF_STX_MEM(BPF_DW, 1, 6, -8),
		BPF_MOV64_IMM(0, 0), BPF_EXIT_INSN(),
	};
	static char text[1 << 16];
	struct pb_bpf_text log = { .buf = text, .size = sizeof text };

	assert_int_equal(verdict_of(p, sizeof p / sizeof *p, 1, &log), -EACCES);
	assert_non_null(strstr(text, "R1 invalid mem access 'scalar'"));
	assert_non_null(strstr(text, "REG INVARIANTS VIOLATION (true_reg1)"));
}

/* The buffer keeps the end of the text. If whole lines fit, the kept text begins at the start of a
 * line. */
static void test_tail(void **state)
{
	char all[4096], buf[64];

	for (uint32_t size = 4; size <= sizeof buf; size++) {
		struct pb_bpf_text whole = { .buf = all, .size = sizeof all },
				   t = { .buf = buf, .size = size, .tail = true };
		uint64_t at = 0;

		for (int i = 0; i < 60; i++) {
			pb_bpf_printf(&whole, "line %d\n", i * i);
			pb_bpf_printf(&t, "line %d\n", i * i);
			assert_true(t.len < size);
			assert_int_equal(pb_bpf_text_at(&t), whole.len);
			assert_memory_equal(t.buf, all + t.gone, t.len + 1);
			assert_true(t.cut == (t.gone != 0));
			if (size > 32 && t.gone)
				assert_int_equal(all[t.gone - 1], '\n');
			if (i % 7 == 3) {
				/* go back to an earlier position; the buffer may no longer have
				 * this position */
				pb_bpf_text_back(&whole, at);
				pb_bpf_text_back(&t, at);
				assert_int_equal(pb_bpf_text_at(&t), at);
			}
			at = i % 5 ? at : whole.len;
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_verdict_with_little_room),
		cmocka_unit_test(test_only_of_a_refusal),
		cmocka_unit_test(test_memory_is_short_once),
		cmocka_unit_test(test_of_a_path_that_cannot_be_taken),
		cmocka_unit_test(test_tail),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
