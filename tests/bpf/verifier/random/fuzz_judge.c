/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Tests one program of the fuzzer. The program is verified as usual. If it is accepted, it is
 * verified a second time, with whole states (verify_whole()). During both verifications, the
 * verifier's deductions are recorded. Then the program runs with several inputs (fuzz_run.c). The
 * inputs contain the program's constants and the edges of the verifier's bounds.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include "ask.h"
#include "bpf/run/heap.h"
#include "bpf/verifier/state.h"
#include "fuzz.h"
#include "world.h"

uint32_t fuzz_caps = PB_BPF_CAP_ALL;
struct beliefs fuzz_states, fuzz_bases;
char fuzz_log[1 << 20];

void fuzz_choose_caps(uint64_t seed)
{
	fuzz_caps = seed % 8 ? PB_BPF_CAP_ALL : PB_BPF_CAP_BPF | PB_BPF_CAP_NET_ADMIN;
}

struct pb_bpf_verify fuzz_to_verify(const struct gen_program *p)
{
	return (struct pb_bpf_verify){
		.type = pb_bpf_type_of(p->type), .caps = fuzz_caps, .gpl = true, .insns = p->insns,
		.nr = (uint32_t)p->nr, .maps = world_maps, .nr_maps = GEN_MAPS, .mem = &pb_bpf_heap,
		.flags = p->flags, .funcs = p->funcs, .nr_funcs = p->nr_funcs,
	};
}

/* Collects bounds for the generator. The bounds include all states that reach instruction `at`. */
struct asked {
	uint32_t at, visits;
	bool any;
	struct weave_bounds *bounds;
};

static int hear(struct pb_bpf_verify *v, const struct env *env)
{
	struct asked *a = v->visitor;

	if (++a->visits > BELIEFS_VISITS / 5)
		return -E2BIG;
	if (env->insn != a->at)
		return 0;
	for (int i = 0; i < 10; i++) {
		const struct reg *r = &cur_regs(env)[i];
		struct weave_bounds *b = &a->bounds[i];
		bool number = r->type == SCALAR;

		if (!a->any)
			*b = (struct weave_bounds){ number, r->wide.smin, r->wide.smax };
		b->number = b->number && number;
		b->smin = r->wide.smin < b->smin ? r->wide.smin : b->smin;
		b->smax = r->wide.smax > b->smax ? r->wide.smax : b->smax;
	}
	a->any = true;
	return 0;
}

bool fuzz_ask_bounds(const struct gen_program *p, int at, struct weave_bounds bounds[10])
{
	struct asked a = { (uint32_t)at, 0, false, bounds };
	struct pb_bpf_verify v = fuzz_to_verify(p);
	int err;

	v.visit = hear;
	v.visitor = &a;
	err = pb_bpf_verify(&v);
	pb_bpf_facts_free(&pb_bpf_heap, v.facts);
	return !err && a.any;
}

/* ---- one program ----------------------------------------------------------------------------- */

/* Adds the verifier's bounds to s->words, the numbers that inputs contain. */
static void add_words(struct subject *s)
{
	uint32_t step = fuzz_states.nr / 40 + 1;

	for (uint32_t i = 0; i < fuzz_states.nr && !fuzz_states.full; i += step) {
		const struct reg *r = &fuzz_states.regs[i].reg;

		if (r->type != SCALAR || s->nr_words + 4 > MOST_WORDS)
			continue;
		s->words[s->nr_words++] = r->wide.umax;
		s->words[s->nr_words++] = (uint64_t)r->wide.smin;
		s->words[s->nr_words++] = (uint64_t)r->low.smax;
		s->words[s->nr_words++] = r->wide.umin;
	}
}

static int make(struct subject *s)
{
	int err = pb_bpf_resolve(&s->v, &s->r);

	if (err)
		return err;
	fuzz_stand_in(&s->r);
	s->r.spec.name = "fuzz";
	err = pb_bpf_prog_make(&s->r.spec, &s->prog);
	if (err)
		pb_bpf_resolved_free(&s->r);
	return err;
}

/* Returns whether the program has callbacks. If a scalar differs between two iterations of a
 * callback, and isn't precise, the verifier makes it unknown, so that a later iteration can be
 * pruned. Which scalars become unknown depends on the stored states. So the second verification may
 * have another verdict. */
static bool calls_back(const struct pb_bpf_verify *v)
{
	for (uint32_t i = 0; i < v->nr; i++)
		if (v->insns[i].code == (BPF_LD | BPF_IMM | BPF_DW) &&
		    v->insns[i].src_reg == BPF_PSEUDO_FUNC)
			return true;
	return false;
}

static const char *whole_words(struct pb_bpf_verify *v)
{
	static char words[160];
	struct pb_bpf_text log = { .buf = fuzz_log, .size = sizeof fuzz_log };

	v->log = &log;
	v->log_level = fuzz_opt.again ? 2 : 1;
	v->visit = NULL;
	pb_bpf_verify(v);
	if (fuzz_opt.again)
		printf("---- ours, without pruning\n%s\n", fuzz_log);
	fuzz_name_class(fuzz_log, words, sizeof words);
	return words;
}

/* Returns whether the log ends on a mispredicted path. The verifier walks a mispredicted path only
 * from a branch whose outcome is known. An earlier, wider state may leave the outcome unknown. From
 * there the verifier has walked both branches as real paths, and no mispredicted one. If it then
 * prunes the current state because the wider one contains it, the mispredicted path of the current
 * state is never walked. Linux does the same. So the usual verification may skip a mispredicted
 * path on which the verification with whole states ends. */
static bool ends_mispredicted(const char *log)
{
	const char *last = NULL;

	for (const char *p = log; (p = strstr(p, "\nfrom ")); p++)
		last = p;
	return last && memmem(last + 1, strcspn(last + 1, "\n"), "(speculative",
			      strlen("(speculative"));
}

/* Verifies the program again, and prunes a path only if an earlier state contains the whole current
 * state. The program must be accepted again. Records the deductions for the runs. */
static enum finding verify_whole(struct subject *s)
{
	struct pb_bpf_verify v = s->v;
	int err;

	v.facts = NULL;
	v.whole = true;
	beliefs_listen(&fuzz_states, &v);
	err = pb_bpf_verify(&v);
	pb_bpf_facts_free(&pb_bpf_heap, v.facts);
	fuzz_all->unheard += fuzz_states.full || err;
	fuzz_states.full |= err != 0;
	/* if a path is impossible, it is a matter of chance whether the verifier refuses or prunes
	 * it */
	if (!err || err == -E2BIG || err == -ENOMEM || err == -EFAULT ||
	    fuzz_states.contradiction || calls_back(&v))
		return NOTHING;
	fuzz_find(HIDDEN, "without pruning the verdict is %d: %s", err, whole_words(&v));
	/* Privileged programs may read any byte of the stack, with one exception. If one byte of a
	 * spilled number was overwritten, its other bytes aren't readable. Pruning treats these
	 * other bytes as readable, so the verdicts may differ. */
	return strstr(fuzz_why, "invalid read from stack") ||
	       strstr(fuzz_log, "INVARIANTS VIOLATION") ||
	       ends_mispredicted(fuzz_log) ? NOTHING : HIDDEN;
}

static enum finding run_accepted(struct subject *s, const struct gen_program *p)
{
	enum finding f = verify_whole(s);

	if (f || make(s))
		return f;
	s->nr_words = weave_words(p, s->words, MOST_WORDS / 2);
	add_words(s);
	world_use_words(s->words, (unsigned)s->nr_words);
	for (int n = 0; n < fuzz_opt.inputs && !f; n++)
		f = fuzz_run(s, n);
	pb_bpf_prog_free(s->prog);
	pb_bpf_resolved_free(&s->r);
	return f;
}

enum finding fuzz_judge(const struct gen_program *p, uint64_t seed, bool ask, bool *accepted,
			int *kernel)
{
	struct subject s = { .p = p, .v = fuzz_to_verify(p), .seed = seed, .fd = -1 };
	enum finding f = NOTHING;

	world_place(seed);
	beliefs_listen(&fuzz_bases, &s.v);
	fuzz_bases.bases_only = true;
	*accepted = !pb_bpf_verify(&s.v);
	s.v.visit = NULL;
	*kernel = 0;
	/* the kernel may need a minute to walk long loops, so it isn't asked about programs with
	 * many visits */
	if (ask && fuzz_bases.visits < BELIEFS_VISITS / 10) {
		s.fd = ask_load(p, 0);
		*kernel = s.fd < 0 ? s.fd : 0;
	}
	if (*accepted)
		f = run_accepted(&s, p);
	if (s.fd >= 0)
		close(s.fd);
	pb_bpf_facts_free(&pb_bpf_heap, s.v.facts);
	return f;
}
