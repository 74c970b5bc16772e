/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Checks that accepted programs are safe. Verifies, resolves and runs random programs. Accepted
 * programs run on an interpreter that checks each access (watch.c), and on both engines. On the
 * engines, inaccessible pages surround all memory of a program. All results must be the same.
 *
 *   bpf_safety [-n PROGRAMS] [-s SEED] [-i INPUTS] [-v]
 *
 * If a program computes a number from addresses, the number differs between runs. So the checking
 * interpreter runs each program twice, with memory at different addresses. If the two results
 * agree, the results of the engines must agree, too. If a result depends on unwritten memory, it
 * isn't compared. Without CAP_PERFMON, results must not depend on addresses, so the two results
 * must always agree.
 *
 * Exit status 1: an access outside of the program's memory, or a difference.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "bpf/core/disasm.h"
#include "bpf/helper/helper.h"
#include "bpf/run/fixup.h"
#include "bpf/run/heap.h"
#include "guarded.h"
#include "watch.h"
#include "world.h"

static char log_text[1 << 20];
static int loud;
static unsigned long programs, accepted, executions, compared, bad;

struct subject {
	const struct gen_program *p;
	uint64_t seed, input;
	struct pb_bpf_verify v;
	struct pb_bpf_resolved r;
	struct pb_bpf_prog *prog;
};

struct result {
	uint64_t r0, sum;
	bool vague;
};

/* ---- runs ------------------------------------------------------------------------------- */

static void report(const struct subject *s, const char *what, const char *why)
{
	char line[128];

	bad++;
	printf("BAD %s: seed %lu, input %lu, type %s, caps %u: %s\n", what, s->seed, s->input,
	       s->v.type->name, s->v.caps, why);
	for (uint32_t i = 0; i < s->v.nr && bad <= 3; i++) {
		struct pb_bpf_text t = { .buf = line, .size = sizeof line };

		pb_bpf_disasm(&t, &s->v.insns[i], NULL);
		printf("%4u: %s\n", i, line);
		if (s->v.insns[i].code == (BPF_LD | BPF_IMM | BPF_DW))
			i++;
	}
}

static struct pb_bpf_run new_run(const struct subject *s)
{
	world_reset(s->v.type, s->input);
	executions++;
	return (struct pb_bpf_run){ .prog = s->prog, .ctx = world_ctx(), .host = &world_host,
				    .thread = 1 };
}

static bool run_watched(const struct subject *s, unsigned layout, struct result *out)
{
	struct pb_bpf_run run = new_run(s);
	struct watch w = { .v = &s->v, .r = &s->r, .run = &run, .layout = layout };

	if (!watch_run(&w)) {
		report(s, "access", w.why);
		return false;
	}
	*out = (struct result){ w.r0, world_sum(), w.vague };
	return true;
}

static bool run_real(const struct subject *s, bool jit, struct result *out)
{
	struct pb_bpf_run run = new_run(s);

	if (guarded_run(&run, jit, &out->r0)) {
		report(s, jit ? "JIT" : "interpreter", "a fault");
		return false;
	}
	out->sum = world_sum();
	return true;
}

static void same(const struct subject *s, const char *what, const struct result *a,
		 const struct result *b)
{
	char why[160];

	if (a->vague || (a->r0 == b->r0 && a->sum == b->sum))
		return;
	snprintf(why, sizeof why, "r0 %#lx and %#lx, memory %#lx and %#lx", a->r0, b->r0, a->sum,
		 b->sum);
	report(s, what, why);
}

static void run_once(struct subject *s)
{
	struct result a, b, real;

	if (!run_watched(s, 0, &a) || !run_watched(s, 1, &b))
		return;
	if (!(s->v.caps & PB_BPF_CAP_PERFMON))
		same(s, "result depends on addresses", &a, &b);
	if (a.r0 != b.r0 || a.sum != b.sum)
		return;
	compared += !a.vague;
	if (run_real(s, false, &real))
		same(s, "interpreter", &a, &real);
	if (s->prog->jited && run_real(s, true, &real))
		same(s, "JIT", &a, &real);
}

/* ---- programs ------------------------------------------------------------------------------ */

/* Replaces helpers whose results differ between runs. Lowers the limit of iterations of
 * may_goto. */
static void calm(struct pb_bpf_resolved *r)
{
	pb_bpf_fn **calls = (pb_bpf_fn **)r->spec.calls;
	struct bpf_insn *insns = (struct bpf_insn *)r->spec.insns;

	for (uint32_t i = 0; i < r->spec.nr; i++)
		if (r->spec.ops[i] == PB_BPF_OP_ST_DW && insns[i].dst_reg == 10 &&
		    insns[i].imm == PB_BPF_MAX_ITERATIONS)
			insns[i].imm = 40;

	for (uint32_t i = 0; i < r->spec.nr_calls; i++)
		calls[i] = world_stand_in(calls[i]);
}

static bool make(struct subject *s)
{
	int err = pb_bpf_verify(&s->v);

	if (err)
		return false;
	err = pb_bpf_resolve(&s->v, &s->r);
	if (!err) {
		calm(&s->r);
		s->r.spec.name = "safety";
		err = pb_bpf_prog_make(&s->r.spec, &s->prog);
		if (err)
			pb_bpf_resolved_free(&s->r);
	}
	if (!err)
		return true;
	if (loud)
		printf("seed %lu: not made: %d\n", s->seed, err);
	pb_bpf_facts_free(&pb_bpf_heap, s->v.facts);
	return false;
}

static void try(const struct gen_program *p, uint64_t seed, uint32_t caps, uint64_t inputs)
{
	struct pb_bpf_text log = { .buf = log_text, .size = sizeof log_text };
	struct subject s = { .p = p, .seed = seed, .v = {
		.type = pb_bpf_type_of(p->type), .caps = caps, .gpl = true, .insns = p->insns,
		.nr = (uint32_t)p->nr, .maps = world_maps, .nr_maps = GEN_MAPS, .log = &log,
		.mem = &pb_bpf_heap, .flags = p->flags, .funcs = p->funcs, .nr_funcs = p->nr_funcs,
	} };
	unsigned long before = bad;

	programs++;
	if (!make(&s))
		return;
	accepted++;
	for (uint64_t n = 0; n < inputs && bad == before; n++) {
		s.input = seed * 1000 + n;
		run_once(&s);
	}
	pb_bpf_prog_free(s.prog);
	pb_bpf_resolved_free(&s.r);
	pb_bpf_facts_free(&pb_bpf_heap, s.v.facts);
}

int main(int argc, char **argv)
{
	unsigned long n = 2000, inputs = 8;
	uint64_t seed = 1;
	struct gen_program p;
	int c;

	setvbuf(stdout, NULL, _IOLBF, 0);
	while ((c = getopt(argc, argv, "n:s:i:v")) != -1)
		switch (c) {
		case 'n':
			n = strtoul(optarg, NULL, 0);
			break;
		case 's':
			seed = strtoull(optarg, NULL, 0);
			break;
		case 'i':
			inputs = strtoul(optarg, NULL, 0);
			break;
		case 'v':
			loud++;
			break;
		default:
			return 2;
		}
	guarded_begin();
	world_make();
	pb_bpf_settings.jit_enable = 1;
	for (uint64_t s = seed; s < seed + n && bad < 20; s++) {
		generate(&p, s);
		world_place(s);
		try(&p, s, PB_BPF_CAP_ALL, inputs);
		try(&p, s, PB_BPF_CAP_BPF | PB_BPF_CAP_NET_ADMIN, inputs);
		try(&p, s, 0, inputs);
	}
	printf("%lu verifications (seeds from %lu), %lu programs run, %lu executions, %lu "
	       "inputs compared on all engines, %lu bad\n", programs, seed, accepted, executions,
	       compared, bad);
	return bad != 0;
}
