/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Uses include/patchbay/bpf.h like an embedding program. The process also uses libbpf. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <linux/bpf.h>
#include <pthread.h>
#include <string.h>

#include <patchbay/bpf.h>

#include "own/sections.h"

static struct pb_bpf_machine *open_with(const char *path, struct pb_bpf_machine_opts *opts)
{
	struct pb_bpf_machine *m;
	char why[256];

	if (pb_bpf_machine_open(path, opts, &m, why, sizeof(why)))
		fail_msg("%s: %s", path, why);
	return m;
}

static void counted(bool interpret)
{
	struct pb_bpf_machine *m =
		open_with(REQUESTS, &(struct pb_bpf_machine_opts){ .interpret = interpret });
	int prog = pb_bpf_machine_program(m, "on_request"), map = pb_bpf_machine_map(m, "by_size");
	struct pb_bpf_program_info info;
	uint64_t ctx[2] = { 0, 100 }, result = 7, n = 0;
	uint32_t key = 6;

	assert_int_equal(pb_bpf_machine_run(m, (uint32_t)prog, ctx, &result), -ENOENT);
	assert_int_equal(pb_bpf_machine_load(m, (uint32_t)prog, 0, NULL, 0), 0);
	assert_int_equal(pb_bpf_machine_load(m, (uint32_t)prog, 0, NULL, 0), -EALREADY);
	assert_int_equal(pb_bpf_machine_program_info(m, (uint32_t)prog, &info), 0);
	assert_true(info.loaded && !info.why && info.type == BPF_PROG_TYPE_RAW_TRACEPOINT);
	assert_int_equal(info.native, !interpret);
	for (int i = 0; i < 10; i++)
		assert_int_equal(pb_bpf_machine_run(m, (uint32_t)prog, ctx, &result), 0);
	assert_int_equal(result, 1);
	assert_int_equal(pb_bpf_machine_lookup(m, (uint32_t)map, &key, &n, 0), 0);
	assert_int_equal(n, 10);
	ctx[1] = 5000;
	pb_bpf_machine_run(m, (uint32_t)prog, ctx, &result);
	assert_int_equal(result, 0);
	assert_int_equal(pb_bpf_machine_delete(m, (uint32_t)map, &key), 0);
	assert_int_equal(pb_bpf_machine_next_key(m, (uint32_t)map, NULL, &key), -ENOENT);
	n = 3;
	assert_int_equal(pb_bpf_machine_update(m, (uint32_t)map, &key, &n, BPF_EXIST), -ENOENT);
	assert_int_equal(pb_bpf_machine_run(m, 99, ctx, &result), -EINVAL);
	pb_bpf_machine_close(m);
}

static void native(void **state)
{
	counted(false);
}

static void interpreted(void **state)
{
	counted(true);
}

#define LOADS 200

struct loads {
	bool interpret;
	unsigned right;		/* number of loads that have made a program of the right kind */
};

static void *load_often(void *arg)
{
	struct loads *l = arg;
	struct pb_bpf_machine_opts opts = { .interpret = l->interpret };
	struct pb_bpf_program_info info;
	struct pb_bpf_machine *m;
	char why[256];

	for (int i = 0; i < LOADS && !pb_bpf_machine_open(REQUESTS, &opts, &m, why, sizeof(why));
	     i++) {
		uint32_t prog = (uint32_t)pb_bpf_machine_program(m, "on_request");

		l->right += !pb_bpf_machine_load(m, prog, 0, NULL, 0) &&
			    !pb_bpf_machine_program_info(m, prog, &info) &&
			    info.native == !l->interpret;
		pb_bpf_machine_close(m);
	}
	return NULL;
}

/* Each machine has its own setting that says whether its programs are interpreted. Two threads
 * load programs into machines with different settings. */
static void both_at_once(void **state)
{
	struct loads interpreted = { .interpret = true }, native = { .interpret = false };
	pthread_t t;

	assert_int_equal(pthread_create(&t, NULL, load_often, &interpreted), 0);
	load_often(&native);
	pthread_join(t, NULL);
	assert_int_equal(interpreted.right, LOADS);
	assert_int_equal(native.right, LOADS);
}

/* The caller sets map sizes. Errors in the sizes are reported. */
static void sized(void **state)
{
	struct pb_bpf_map_sizes sizes[] = {
		{ .map = "by_size", .max_entries = 2 }, { .map = "by_size", .value_size = 24 } };
	struct pb_bpf_machine_opts opts = { .size = sizeof(opts), .sizes = sizes, .nr_sizes = 2 };
	struct pb_bpf_machine *m = open_with(REQUESTS, &opts);
	struct pb_bpf_map_info info;
	char why[256];

	assert_int_equal(pb_bpf_machine_map_info(m, (uint32_t)pb_bpf_machine_map(m, "by_size"),
						 &info), 0);
	assert_true(info.made && info.max_entries == 2 && info.value_size == 24 &&
		    info.key_size == 4);
	pb_bpf_machine_close(m);
	sizes[1].map = "by_siez";
	assert_int_equal(pb_bpf_machine_open(REQUESTS, &opts, &m, why, sizeof(why)), -EINVAL);
	assert_string_equal(why, "sizes of map by_siez: the object has no such map");
	assert_null(m);
	/* a caller that was built with an earlier header gives a smaller size */
	opts.size = offsetof(struct pb_bpf_machine_opts, sizes);
	pb_bpf_machine_close(open_with(REQUESTS, &opts));
}

/* Checks the program type of each section. If libbpf knows the section, libbpf must have the same
 * type. */
static void sections(void **state)
{
	static const struct {
		const char *name, *section;
		uint32_t type, attach_type;
	} all[] = {
#define X(name, section, type, attach) { "in_" #name, section, type, attach },
		EACH_SECTION(X)
	};
	struct pb_bpf_machine *m = open_with(SECTIONS, NULL);
	struct pb_bpf_program_info info;
	enum bpf_attach_type attach;
	enum bpf_prog_type type;

	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
		int prog = pb_bpf_machine_program(m, all[i].name);

		assert_int_equal(pb_bpf_machine_program_info(m, (uint32_t)prog, &info), 0);
		if (info.type != all[i].type || info.attach_type != all[i].attach_type)
			fail_msg("%s: type %u, attach type %u: %s", all[i].section, info.type,
				 info.attach_type, info.why ? info.why : "");
		if (libbpf_prog_type_by_name(all[i].section, &type, &attach))
			continue;
		assert_int_equal(type, info.type);
		assert_int_equal(attach, info.attach_type);
	}
	pb_bpf_machine_close(m);
}

static void *many_runs(void *arg)
{
	struct pb_bpf_machine *m = arg;
	uint64_t ctx[2] = { 0, 1000 }, result;

	for (int i = 0; i < 20000; i++)
		if (pb_bpf_machine_run(m, 0, ctx, &result) || result != 1)
			return m;
	return NULL;
}

static void threads(void **state)
{
	struct pb_bpf_machine *m = open_with(REQUESTS, NULL);
	pthread_t t[4];
	uint32_t key = 9;
	uint64_t n = 0;
	void *bad;

	assert_int_equal(pb_bpf_machine_load(m, 0, 0, NULL, 0), 0);
	for (int i = 0; i < 4; i++)
		pthread_create(&t[i], NULL, many_runs, m);
	for (int i = 0; i < 4; i++) {
		pthread_join(t[i], &bad);
		assert_null(bad);
	}
	assert_int_equal(pb_bpf_machine_lookup(m, (uint32_t)pb_bpf_machine_map(m, "by_size"), &key,
					       &n, 0), 0);
	/* If several threads find no element at first, one thread inserts the element. The inserts
	 * of the other threads fail, and one call of each of these threads isn't counted. */
	assert_in_range(n, 80000 - 3, 80000);
	pb_bpf_machine_close(m);
}

static void refused(void **state)
{
	struct pb_bpf_machine *m = open_with(CORE,
					     &(struct pb_bpf_machine_opts){ .types = TARGET });
	struct pb_bpf_machine_test test = { .data_in = (char[64]){}, .data_size_in = 64 };
	int missing = pb_bpf_machine_program(m, "missing"),
		size = pb_bpf_machine_program(m, "type_size");
	struct pb_bpf_program_info info;
	char log[4096];
	uint64_t result;

	assert_true(pb_bpf_machine_load(m, (uint32_t)missing, 0, NULL, 0) < 0);
	pb_bpf_machine_program_info(m, (uint32_t)missing, &info);
	assert_non_null(strstr(info.why, "moved___absent.missing"));
	assert_true(pb_bpf_machine_load(m, (uint32_t)missing, 1, log, sizeof(log)) < 0);
	assert_non_null(strstr(log, "195896080"));
	assert_int_equal(pb_bpf_machine_test(m, (uint32_t)size, &test), -ENOENT);
	assert_int_equal(pb_bpf_machine_load(m, (uint32_t)size, 0, NULL, 0), 0);
	assert_int_equal(pb_bpf_machine_run(m, (uint32_t)size, NULL, &result), -EOPNOTSUPP);
	assert_int_equal(pb_bpf_machine_test(m, (uint32_t)size, &test), 0);
	assert_int_equal(test.retval, 88);
	test.data_in = NULL;
	assert_int_equal(pb_bpf_machine_test(m, (uint32_t)size, &test), -EFAULT);
	pb_bpf_machine_close(m);
}

/* libbpf and our library open the same object in one process, without a conflict. */
static void beside_libbpf(void **state)
{
	struct bpf_object *theirs = bpf_object__open(SHAPES);
	struct pb_bpf_machine *m = open_with(SHAPES, NULL);
	struct pb_bpf_map_info info;
	int map = pb_bpf_machine_map(m, "counts");

	assert_non_null(theirs);
	assert_int_equal(pb_bpf_machine_map_info(m, (uint32_t)map, &info), 0);
	assert_true(info.made);
	assert_int_equal(info.value_size,
			 bpf_map__value_size(bpf_object__find_map_by_name(theirs, "counts")));
	assert_int_equal(info.outside_size, 24);
	assert_int_equal(pb_bpf_machine_map_info(m, 99, &info), -EINVAL);
	assert_int_equal(pb_bpf_machine_maps(m), 12);
	assert_int_equal(pb_bpf_machine_programs(m), 11);
	pb_bpf_machine_close(m);
	bpf_object__close(theirs);
}

static int quiet(enum libbpf_print_level level, const char *format, va_list args)
{
	return 0;
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(native), cmocka_unit_test(interpreted),
		cmocka_unit_test(both_at_once), cmocka_unit_test(threads),
		cmocka_unit_test(refused), cmocka_unit_test(sized), cmocka_unit_test(sections),
		cmocka_unit_test(beside_libbpf),
	};

	libbpf_set_print(quiet);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
