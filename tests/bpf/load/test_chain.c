/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * If a program reaches other programs by tail calls, the loader also loads the other programs and
 * puts them into the program arrays. The error or result must be the same as with libbpf and the
 * kernel. Each case of own/chain.bpf.c is an object of its own. If the test has no right to load
 * programs into the kernel, it uses a table of the kernel's results.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <patchbay/bpf.h>

struct outcome {
	int err;		/* error of loading, or 0 */
	uint32_t retval;
};

static const struct chain {
	const char *name, *path;
	struct outcome kernel;	/* the outcome in Linux 6.1 to 6.18 */
} chains[] = {
	{ "before", CHAIN_BEFORE, { 0, 42 } }, { "after", CHAIN_AFTER, { 0, 42 } },
	{ "unused", CHAIN_UNUSED, { 0, 1 } }, { "long", CHAIN_LONG, { 0, 42 } },
	{ "loop", CHAIN_LOOP, { 0, 17 } }, { "refused", CHAIN_REFUSED, { -EACCES, 0 } },
	{ "refused_later", CHAIN_REFUSED_LATER, { -EACCES, 0 } },
	{ "other_type", CHAIN_OTHER_TYPE, { -EINVAL, 0 } },
	{ "asleep", CHAIN_ASLEEP, { -EBADF, 0 } }, { "beyond", CHAIN_BEYOND, { -E2BIG, 0 } },
	{ "maps", CHAIN_MAPS, { 0, 5 } },
};

static struct outcome ours(const char *path, bool interpret)
{
	struct pb_bpf_machine_test t = { .data_in = (char[64]){}, .data_size_in = 64 };
	struct pb_bpf_machine_opts opts = { .size = sizeof(opts), .interpret = interpret };
	struct pb_bpf_program_info info;
	struct pb_bpf_machine *m;
	struct outcome o;
	uint32_t entry;
	char why[256];

	if (pb_bpf_machine_open(path, &opts, &m, why, sizeof(why)))
		fail_msg("%s: %s", path, why);
	entry = (uint32_t)pb_bpf_machine_program(m, "entry");
	o = (struct outcome){ .err = pb_bpf_machine_load(m, entry, 0, NULL, 0) };
	pb_bpf_machine_program_info(m, entry, &info);
	if (o.err) {
		assert_non_null(info.why);
		assert_false(info.loaded);
		assert_int_equal(pb_bpf_machine_test(m, entry, &t), -ENOENT);
	} else {
		assert_null(info.why);
		assert_int_equal(pb_bpf_machine_load(m, entry, 0, NULL, 0), -EALREADY);
		assert_int_equal(pb_bpf_machine_test(m, entry, &t), 0);
		o.retval = t.retval;
	}
	pb_bpf_machine_close(m);
	return o;
}

static int quiet(enum libbpf_print_level level, const char *format, va_list args)
{
	return 0;
}

static struct outcome kernels(const char *path)
{
	struct bpf_object *object = bpf_object__open(path);
	char data[64] = {};
	LIBBPF_OPTS(bpf_test_run_opts, t, .data_in = data, .data_size_in = sizeof(data));
	struct bpf_program *entry;
	struct outcome o;

	assert_non_null(object);
	o = (struct outcome){ .err = bpf_object__load(object) };
	if (!o.err) {
		entry = bpf_object__find_program_by_name(object, "entry");
		assert_int_equal(bpf_prog_test_run_opts(bpf_program__fd(entry), &t), 0);
		o.retval = t.retval;
	}
	bpf_object__close(object);
	return o;
}

static void one(void **state)
{
	const struct chain *c = *state;
	struct outcome kernel = geteuid() ? c->kernel : kernels(c->path);

	/* in a container, even root may have no right to load programs */
	if (kernel.err == -EPERM)
		kernel = c->kernel;
	assert_int_equal(kernel.err, c->kernel.err);
	assert_int_equal(kernel.retval, c->kernel.retval);
	for (int interpret = 0; interpret < 2; interpret++) {
		struct outcome o = ours(c->path, interpret);

		assert_int_equal(o.err, kernel.err);
		assert_int_equal(o.retval, kernel.retval);
	}
}

/* A caller may also load the programs separately, in any order. */
static void asked(void **state)
{
	struct pb_bpf_machine *m;
	char why[256], log[4096];
	uint32_t entry, target;

	assert_int_equal(pb_bpf_machine_open(CHAIN_BEFORE, NULL, &m, why, sizeof(why)), 0);
	entry = (uint32_t)pb_bpf_machine_program(m, "entry");
	target = (uint32_t)pb_bpf_machine_program(m, "target");
	assert_int_equal(pb_bpf_machine_load(m, entry, 0, NULL, 0), 0);
	assert_int_equal(pb_bpf_machine_load(m, target, 1, log, sizeof(log)), 0);
	assert_non_null(strstr(log, "processed 2 insns"));
	assert_int_equal(pb_bpf_machine_load(m, target, 0, NULL, 0), -EALREADY);
	pb_bpf_machine_close(m);
	/* this object's program `target` is loaded only on request, because its section begins
	 * with "?" */
	assert_int_equal(pb_bpf_machine_open(CHAIN_ASLEEP, NULL, &m, why, sizeof(why)), 0);
	entry = (uint32_t)pb_bpf_machine_program(m, "entry");
	assert_int_equal(pb_bpf_machine_load(m, entry, 0, NULL, 0), -EBADF);
	assert_int_equal(pb_bpf_machine_load(m, (uint32_t)pb_bpf_machine_program(m, "target"), 0,
					     NULL, 0), 0);
	assert_int_equal(pb_bpf_machine_load(m, entry, 0, NULL, 0), 0);
	pb_bpf_machine_close(m);
}

/* A program that is called by a tail call gets the caller's context. So a tail call to a program of
 * another type fails. */
static void mixed(void **state)
{
	struct pb_bpf_machine_test t = { .data_in = (char[64]){}, .data_size_in = 64 };
	struct pb_bpf_machine *m;
	uint32_t zero = 0, packet;
	char why[256];

	assert_int_equal(pb_bpf_machine_open(CHAIN_MIXED, NULL, &m, why, sizeof(why)), 0);
	packet = (uint32_t)pb_bpf_machine_program(m, "packet");
	for (uint32_t i = 0; i < pb_bpf_machine_programs(m); i++)
		assert_int_equal(pb_bpf_machine_load(m, i, 0, NULL, 0), 0);
	pb_bpf_machine_update(m, (uint32_t)pb_bpf_machine_map(m, "jumps"), &zero, &packet, 0);
	assert_int_equal(pb_bpf_machine_test(m, (uint32_t)pb_bpf_machine_program(m, "entry"), &t),
			 0);
	assert_int_equal(t.retval, 1);
	pb_bpf_machine_close(m);
}

int main(void)
{
	enum { NR = sizeof(chains) / sizeof(chains[0]) };
	struct CMUnitTest tests[NR + 2];

	libbpf_set_print(quiet);
	for (int i = 0; i < NR; i++)
		tests[i] = (struct CMUnitTest){ .name = chains[i].name, .test_func = one,
						.initial_state = (void *)&chains[i] };
	tests[NR] = (struct CMUnitTest)cmocka_unit_test(asked);
	tests[NR + 1] = (struct CMUnitTest)cmocka_unit_test(mixed);
	return _cmocka_run_group_tests("chain", tests, NR + 2, NULL, NULL);
}
