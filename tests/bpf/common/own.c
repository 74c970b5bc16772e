/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Loads and runs a program in Patchbay, with the verifier and the resolver (own.h). */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "bpf/run/fixup.h"
#include "bpf/run/heap.h"
#include "bpf/run/image.h"
#include "bpf/run/test_run.h"
#include "kernel.h"
#include "own.h"

static int make_all(struct own_prog *p, const struct pb_bpf_prog_spec *spec)
{
	int err = 0;

	for (enum engine e = 0; e < NR_ENGINES && !err; e++) {
		engine_choose(e);
		err = pb_bpf_prog_make(spec, &p->progs[e]);
		if (!err && e != ENGINE_INTERPRETER && !p->progs[e]->jited)
			err = -ENOTSUP;
	}
	return err;
}

static uint32_t find_funcs(const struct bpf_insn *insns, uint32_t nr, struct pb_bpf_func *funcs)
{
	uint32_t starts[OWN_MOST_FUNCS], n = own_find_funcs(insns, nr, starts);

	for (uint32_t k = 0; k < n; k++)
		funcs[k] = (struct pb_bpf_func){ .insn = starts[k], .name = "f" };
	return n;
}

uint32_t own_find_funcs(const struct bpf_insn *insns, uint32_t nr, uint32_t *starts)
{
	uint32_t n = 0;

	for (uint32_t at = 0; at < nr && n < OWN_MOST_FUNCS; at++) {
		bool begins = !at;

		for (uint32_t i = 0; i < nr && !begins; i++)
			begins = insns[i].code == (BPF_JMP | BPF_CALL) &&
				insns[i].src_reg == BPF_PSEUDO_CALL &&
				i + 1 + (uint32_t)insns[i].imm == at;
		if (begins)
			starts[n++] = at;
	}
	return n;
}

int own_load(struct own_prog *p, uint32_t type, const struct bpf_insn *insns, uint32_t nr,
	     struct pb_bpf_map *const *maps, uint32_t nr_maps, char *log, uint32_t log_size)
{
	struct pb_bpf_text text = { .buf = log, .size = log_size };
	struct pb_bpf_verify v = { .type = pb_bpf_type_of(type), .caps = PB_BPF_CAP_ALL,
		.gpl = true, .insns = insns, .nr = nr, .maps = maps, .nr_maps = nr_maps,
		.mem = &pb_bpf_heap, .log = log ? &text : NULL, .log_level = !!log };
	struct pb_bpf_func funcs[OWN_MOST_FUNCS];
	struct pb_bpf_resolved r;
	int err;

	memset(p, 0, sizeof(*p));
	/* A program with maps may make tail calls. A subprogram may contain tail calls only if
	 * funcs[] describes it, because its return type must be known. */
	if (nr_maps) {
		v.funcs = funcs;
		v.nr_funcs = find_funcs(insns, nr, funcs);
	}
	err = pb_bpf_verify(&v);
	if (!err) {
		p->ctx_needed = v.facts->ctx_needed;
		err = pb_bpf_resolve(&v, &r);
		if (!err) {
			r.spec.name = "test";
			err = make_all(p, &r.spec);
			pb_bpf_resolved_free(&r);
		}
	}
	pb_bpf_facts_free(&pb_bpf_heap, v.facts);
	if (err)
		own_free(p);
	return err;
}

int own_run(const struct own_prog *p, enum engine e, struct own_run *r)
{
	struct pb_bpf_test_run t = { .prog = p->progs[e], .host = pb_bpf_host_linux(),
		.ctx_needed = p->ctx_needed, .data_in = r->in, .data_size_in = r->len, .repeat = 1,
		.data_out = r->out, .data_size_out = sizeof(r->out) };
	int err = pb_bpf_test_run(&t);

	r->out_len = t.data_size_out;
	r->retval = t.retval;
	return err;
}

void own_free(struct own_prog *p)
{
	for (enum engine e = 0; e < NR_ENGINES; e++)
		pb_bpf_prog_free(p->progs[e]);
	memset(p, 0, sizeof(*p));
}

int kernel_test_run(int fd, struct own_run *r)
{
	union bpf_attr a;

	memset(&a, 0, sizeof(a));
	a.test.prog_fd = (uint32_t)fd;
	a.test.data_in = (uintptr_t)r->in;
	a.test.data_size_in = r->len;
	a.test.data_out = (uintptr_t)r->out;
	a.test.data_size_out = sizeof(r->out);
	a.test.repeat = 1;
	if (kernel_bpf(BPF_PROG_TEST_RUN, &a) < 0)
		return -errno;
	r->out_len = a.test.data_size_out;
	r->retval = a.test.retval;
	return 0;
}
