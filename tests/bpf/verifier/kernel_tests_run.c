/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Runs accepted programs of the kernel's tests. A result that differs from the table is printed. */
#include "bpf/run/test_run.h"
#include "kernel_tests.h"

struct pb_bpf_prog *table_make_prog(struct pb_bpf_verify *v)
{
	struct pb_bpf_resolved r;
	struct pb_bpf_prog *p = NULL;

	if (pb_bpf_resolve(v, &r))
		return NULL;
	r.spec.name = "test";
	if (pb_bpf_prog_make(&r.spec, &p))
		p = NULL;
	pb_bpf_resolved_free(&r);
	return p;
}

static bool run_once(const struct pb_bpf_prog *p, const struct pb_bpf_verify *v, const void *data,
		     uint32_t wanted, bool interpret, const char *name)
{
	char out[TEST_DATA_LEN << 2];
	struct pb_bpf_test_run run = {
		.prog = p, .host = pb_bpf_host_linux(), .interpret = interpret,
		.attach_type = v->attach_type, .ctx_needed = v->facts->ctx_needed, .data_in = data,
		.data_size_in = TEST_DATA_LEN, .repeat = 1,
		.data_out = out, .data_size_out = sizeof out,
	};
	int err = pb_bpf_test_run(&run);

	if (err == -ENOTSUPP) {
		table_sum.not_run++;
		return true;
	}
	table_sum.runs++;
	if (!err && (run.retval == wanted || wanted == POINTER_VALUE)) {
		table_sum.good_runs++;
		return true;
	}
	printf("RUN: \"%s\" on the %s: error %d, returns %u, expected %u\n", name,
	       interpret ? "interpreter" : "JIT", err, run.retval, wanted);
	return false;
}

void table_run(const struct bpf_test *t, struct pb_bpf_verify *v, bool privileged)
{
	struct pb_bpf_prog *p = table_has_maps(v) ? table_make_prog(v) : NULL;

	if (!p) {
		table_sum.kernel_only++;
		return;
	}
	table_sum.runnable++;
	for (int i = 0; i < (t->runs ? t->runs : 1); i++) {
		uint32_t wanted = !privileged && t->retvals[i].retval_unpriv ?
				  t->retvals[i].retval_unpriv : t->retvals[i].retval;

		run_once(p, v, t->retvals[i].data, wanted, false, t->descr);
		run_once(p, v, t->retvals[i].data, wanted, true, t->descr);
	}
	pb_bpf_prog_free(p);
}
