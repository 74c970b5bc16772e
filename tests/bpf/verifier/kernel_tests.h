/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Declarations for the files of kernel_tests. make_table extracts table.h from Debian's package
 * linux-source-6.1; table.h has the types of the kernel's tests. kernel_tests.c verifies the tests'
 * programs. kernel_tests_maps.c makes their maps. kernel_tests_run.c runs accepted programs.
 */
#ifndef PB_TEST_KERNEL_TESTS_H
#define PB_TEST_KERNEL_TESTS_H
#include <assert.h>
#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <linux/bpf.h>
#include <linux/bpf_perf_event.h>
#include <linux/btf.h>
#include <linux/filter.h>
#include <linux/if_ether.h>
#include <linux/types.h>
#include <bpf/btf.h>
typedef __u8 u8;
typedef __u32 u32;
typedef __u64 u64;
#ifndef offsetofend
#define offsetofend(type, member) (offsetof(type, member) + sizeof(((type *)0)->member))
#endif
#include "bpf_rand.h"
#include "test_btf.h"
#include "table.h"
#include "bpf/map/map_file.h"
#include "bpf/map/map_sys.h"
#include "bpf/run/fixup.h"
#include "bpf/verifier/verify.h"

/* No map has a descriptor less than FIRST_FD, because some tests need an invalid descriptor. */
#define FIRST_FD 50

struct table_sum {
	int tests, verdicts, accepted, refused, verbose, messages, good_verdicts, good_messages,
	    counts, good_counts;
	int runnable, runs, good_runs, kernel_only, not_run;
};
extern struct table_sum table_sum;

/* The verifier allocates its memory from table_mem. table_allocated is the number of bytes in use.
 * If it isn't 0 after a test, memory has leaked. */
extern struct pb_bpf_mem table_mem;
extern long table_allocated;

/* The maps of all tests. If Patchbay supports a map's type, the map is real. Otherwise the entry
 * has only the map's attributes. */
extern struct pb_bpf_map table_maps[MAX_NR_MAPS];
/* Creates the maps and fills them, as the kernel's test runner does. */
void table_open_maps(void);
void table_close_maps(void);
/* Returns whether all maps of the verified program are real. */
bool table_has_maps(const struct pb_bpf_verify *v);
/* For each map, a test lists the instructions that use the map. Stores the map's descriptor in
 * these instructions. */
void table_fix_up(struct bpf_test *t, struct bpf_insn *insns);
/* Fills program array n with three programs. The first returns 42, the third returns 24. The second
 * makes tail calls to itself up to the limit, and then returns 41. */
void table_fill_prog_array(uint32_t type, int n, const uint32_t keys[3]);

/* Makes a verified program runnable. Returns NULL if this isn't possible. */
struct pb_bpf_prog *table_make_prog(struct pb_bpf_verify *v);
/* Runs an accepted program on both engines, and compares the results with the table. */
void table_run(const struct bpf_test *t, struct pb_bpf_verify *v, bool privileged);
#endif
