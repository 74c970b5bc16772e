/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Makes a program while memory is short for a moment. A program that is reported as rejected must
 * not be made. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdlib.h>

#include "bpf/run/heap.h"
#include "bpfload/load_make.h"

static int nr_allocs, failing;	/* failing: the number of the allocation that fails */

static void *alloc_or_fail(struct pb_bpf_mem *mem, size_t size)
{
	return ++nr_allocs == failing ? NULL : calloc(1, size);
}

static void check(const struct pb_bpf_object *o)
{
	struct pb_bpf_make_opts opts = { .caps = PB_BPF_CAP_ALL, .cpu_slots = 2 };
	int err, prog = pb_bpf_object_prog(o, "tail");
	struct pb_bpf_mem heap = pb_bpf_heap;
	struct pb_bpf_made *m;

	assert_int_equal(pb_bpf_make(o, &opts, &m), 0);
	nr_allocs = 0;
	pb_bpf_heap.alloc = alloc_or_fail;
	err = pb_bpf_make_prog(m, (uint32_t)prog, NULL, 0);
	pb_bpf_heap = heap;
	assert_true((m->progs[prog].prog != NULL) == !err);
	assert_true((m->progs[prog].why != NULL) == (err != 0));
	pb_bpf_made_free(m);
}

static void short_memory(void **state)
{
	struct pb_bpf_object *o;
	char err[256];

	assert_int_equal(pb_bpf_object_open(SHAPES, NULL, &o, err, sizeof(err)), 0);
	do {
		failing++;
		check(o);
	} while (nr_allocs >= failing);
	assert_true(failing > 2);
	pb_bpf_object_close(o);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(short_memory) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
