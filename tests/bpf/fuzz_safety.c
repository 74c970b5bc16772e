/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Random programs, hostile ones among them: what our verifier takes is run by an
 * interpreter that looks at each access (checked.h), with packets of all sizes between
 * pages that aren't there, and by the JIT with the same. Nothing outside of what a run
 * was given may be touched.
 *
 *	bpf_fuzz_safety [--seconds N] [--seed N] [--only PROGRAM]
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "bpf/disasm.h"
#include "bpf/helper.h"
#include "bpf/image.h"
#include "bpf/map_file.h"
#include "bpf/packet.h"
#include "bpf/resolve.h"
#include "bpf/test_run.h"
#include "checked.h"
#include "verifier/generate.h"

#define INPUTS		12
#define MOST_STACKS	64
#define MOST_PACKET	256
#define MOST_CTX	4096

static struct pb_bpf_map maps[GEN_MAPS];
static uint64_t hash_value_at;		/* in an element */
static uint64_t stacks[MOST_STACKS];
static int nr_stacks;
static uint32_t prog_type, ctx_size;
static uint64_t nr_programs, nr_accepted, nr_runs, nr_accesses;
static struct { uint64_t addr, size; const char *what; } bad;

/* ---- what a run may touch --------------------------------------------------------- */

static bool within(uint64_t addr, uint64_t size, uint64_t from, uint64_t bytes)
{
	return addr >= from && addr - from <= bytes && size <= bytes - (addr - from);
}

static bool in_packet(const struct pb_bpf_pkt *p, uint64_t addr, uint64_t size)
{
	uint64_t from = (uint64_t)(p->data_meta && p->data_meta < p->data ? p->data_meta : p->data);

	return within(addr, size, from, (uint64_t)p->data_end - from);
}

static bool in_ctx(const struct pb_bpf_run *run, uint64_t addr, uint64_t size)
{
	const struct pb_bpf_skb *skb = run->ctx;
	const struct pb_bpf_xdp *xdp = run->ctx;

	switch (prog_type) {
	case BPF_PROG_TYPE_XDP:
		return within(addr, size, (uint64_t)xdp, sizeof(*xdp)) || in_packet(&xdp->pkt, addr, size);
	case BPF_PROG_TYPE_SOCKET_FILTER: case BPF_PROG_TYPE_SCHED_CLS: case BPF_PROG_TYPE_CGROUP_SKB:
		return within(addr, size, (uint64_t)skb, sizeof(*skb)) || in_packet(&skb->pkt, addr, size) ||
		       (skb->s.sk && within(addr, size, (uint64_t)skb->s.sk, sizeof(struct bpf_sock)));
	default:
		return within(addr, size, (uint64_t)run->ctx, ctx_size);
	}
}

static bool in_map(const struct pb_bpf_map *m, uint64_t addr, uint64_t size)
{
	uint64_t at = addr - (uint64_t)m->elems, in_elem = at % m->elem_size;

	if (addr < (uint64_t)m->elems || at >= m->nr_elems * m->elem_size)
		return false;
	return within(in_elem, size, m->attr.type == BPF_MAP_TYPE_HASH ? hash_value_at : 0, m->attr.value_size);
}

static bool may(const struct pb_bpf_run *run, uint64_t addr, uint64_t size)
{
	for (int k = 0; k < nr_stacks; k++)
		if (within(addr, size, stacks[k], PB_BPF_STACK))
			return true;
	return in_ctx(run, addr, size) || in_map(&maps[0], addr, size) || in_map(&maps[1], addr, size);
}

static void note(uint64_t addr, uint64_t size, const char *what)
{
	if (!bad.what) {
		bad.addr = addr;
		bad.size = size;
		bad.what = what;
	}
}

uint64_t checked_access(struct pb_bpf_run *run, uint64_t addr, uint64_t size)
{
	static uint64_t harmless;

	nr_accesses++;
	if (may(run, addr, size))
		return addr;
	note(addr, size, "an instruction");
	return (uint64_t)&harmless;
}

/* Keys and values that map helpers are given. */
void checked_call(struct pb_bpf_run *run, pb_bpf_fn *fn, const uint64_t *r)
{
	const struct pb_bpf_map *m = (const struct pb_bpf_map *)r[1];
	bool update = fn == pb_bpf_helper_of(BPF_FUNC_map_update_elem)->fn;

	if (fn != pb_bpf_helper_of(BPF_FUNC_map_lookup_elem)->fn && !update &&
	    fn != pb_bpf_helper_of(BPF_FUNC_map_delete_elem)->fn)
		return;
	if (m != &maps[0] && m != &maps[1])
		note(r[1], 0, "a helper's map");
	else if (!may(run, r[2], m->attr.key_size))
		note(r[2], m->attr.key_size, "a helper's key");
	else if (update && !may(run, r[3], m->attr.value_size))
		note(r[3], m->attr.value_size, "a helper's value");
}

void checked_stack_begins(uint64_t stack)
{
	if (nr_stacks < MOST_STACKS)
		stacks[nr_stacks++] = stack;
}

void checked_stack_ends(void)
{
	nr_stacks -= nr_stacks > 0;
}

/* ---- programs ------------------------------------------------------------------------ */

static void *mem_alloc(struct pb_bpf_mem *mem, size_t size)
{
	return calloc(1, size);
}

static void mem_free(struct pb_bpf_mem *mem, void *p, size_t size)
{
	free(p);
}

static struct pb_bpf_mem mem = { mem_alloc, mem_free };

static uint64_t random_word(uint64_t *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 7;
	return *state ^= *state << 17;
}

static void reset_maps(void)
{
	uint8_t zero[GEN_ARRAY_VALUE] = { 0 };
	uint64_t key;

	for (uint32_t i = 0; i < GEN_ENTRIES; i++)
		maps[GEN_ARRAY].ops->update(&maps[GEN_ARRAY], &i, zero, 0, NULL);
	while (!maps[GEN_HASH].ops->next_key(&maps[GEN_HASH], NULL, &key))
		maps[GEN_HASH].ops->remove(&maps[GEN_HASH], &key, NULL);
	for (key = 0; key < GEN_ENTRIES / 2; key++)
		maps[GEN_HASH].ops->update(&maps[GEN_HASH], &key, zero, 0, NULL);
}

static bool make_maps(void)
{
	static const struct pb_bpf_map_attr attrs[GEN_MAPS] = {
		[GEN_HASH] = { .type = BPF_MAP_TYPE_HASH, .key_size = GEN_HASH_KEY, .value_size = GEN_HASH_VALUE,
			       .max_entries = GEN_ENTRIES },
		[GEN_ARRAY] = { .type = BPF_MAP_TYPE_ARRAY, .key_size = 4, .value_size = GEN_ARRAY_VALUE,
				.max_entries = GEN_ENTRIES },
	};
	uint64_t key = 0, value;

	for (int k = 0; k < GEN_MAPS; k++) {
		struct pb_bpf_map_spec spec = { .attr = attrs[k], .types = { .spin_lock_off = -1, .timer_off = -1 },
			.lanes = 1 };

		if (pb_bpf_map_create(&maps[k], &spec))
			return false;
	}
	reset_maps();
	value = (uint64_t)maps[GEN_HASH].ops->lookup(&maps[GEN_HASH], &key, NULL);
	hash_value_at = (value - (uint64_t)maps[GEN_HASH].elems) % maps[GEN_HASH].elem_size;
	return true;
}

static bool has_packet(void)
{
	return prog_type == BPF_PROG_TYPE_XDP || prog_type == BPF_PROG_TYPE_SOCKET_FILTER ||
	       prog_type == BPF_PROG_TYPE_SCHED_CLS || prog_type == BPF_PROG_TYPE_CGROUP_SKB;
}

static int run(const struct pb_bpf_prog *p, uint32_t ctx_needed, uint64_t state, int n)
{
	uint8_t data[MOST_PACKET], ctx[MOST_CTX];
	struct pb_bpf_test_run t = { .prog = p, .host = pb_bpf_host_linux(), .ctx_needed = ctx_needed, .tight = n % 2,
		.begin_tight = n % 4 == 3 };

	for (size_t i = 0; i < sizeof(data); i++)
		data[i] = (uint8_t)random_word(&state);
	for (size_t i = 0; i < sizeof(ctx); i++)
		ctx[i] = (uint8_t)random_word(&state);
	if (has_packet()) {
		t.data_in = data;
		/* short ones end where programs stop looking */
		t.data_size_in = 14 + (uint32_t)(random_word(&state) % (n % 3 ? 20 : sizeof(data) - 14));
	} else {
		ctx_size = ctx_needed > 8 ? ctx_needed : p->type->ctx_size ? p->type->ctx_size : 96;
		t.ctx_in = ctx;
		t.ctx_size_in = ctx_size;
	}
	reset_maps();
	nr_stacks = 0;
	nr_runs++;
	return pb_bpf_test_run(&t);
}

static int found(const struct gen_program *p, uint64_t program, const char *why)
{
	printf("FAIL program %lu of type %u: %s\n     again: bpf_fuzz_safety --only %lu\n", program, p->type, why, program);
	for (int i = 0; i < p->nr; i++) {
		char line[100] = "";
		struct pb_bpf_text t = { .buf = line, .size = sizeof(line) };

		pb_bpf_disasm(&t, &p->insns[i], NULL);
		printf("%4d: %s\n", i, line);
		i += p->insns[i].code == (BPF_LD | BPF_IMM | BPF_DW);
	}
	return 1;
}

static int run_both(const struct gen_program *p, uint64_t program, const struct pb_bpf_prog *checked,
		    const struct pb_bpf_prog *jited, uint32_t ctx_needed)
{
	for (int n = 0; n < INPUTS; n++) {
		uint64_t state = program * 0x9e3779b97f4a7c15ull + (uint64_t)n + 1;
		char why[200];
		int err;

		bad.what = NULL;
		err = run(checked, ctx_needed, state, n);
		if (err) {
			snprintf(why, sizeof(why), "can't be run: %s (input %d)", strerror(-err), n);
			return found(p, program, why);
		}
		if (bad.what) {
			snprintf(why, sizeof(why), "%s touches %lu bytes at %#lx, which aren't its own (input %d)", bad.what,
				 bad.size, bad.addr, n);
			return found(p, program, why);
		}
		/* results may be addresses: that this one ends well is what counts */
		run(jited, ctx_needed, state, n);
	}
	return 0;
}

static int run_program(uint64_t program)
{
	struct pb_bpf_map *list[GEN_MAPS] = { &maps[0], &maps[1] };
	static struct gen_program p;
	struct pb_bpf_verify v = { .caps = PB_BPF_CAP_ALL, .gpl = true, .maps = list, .nr_maps = GEN_MAPS, .mem = &mem };
	struct pb_bpf_prog *checked = NULL, *jited = NULL;
	struct pb_bpf_resolved r;
	int ret = 0;

	generate(&p, program);
	prog_type = p.type;
	v.type = pb_bpf_type_of(p.type);
	v.insns = p.insns;
	v.nr = (uint32_t)p.nr;
	nr_programs++;
	if (!pb_bpf_verify(&v) && !pb_bpf_resolve(&v, &r)) {
		nr_accepted++;
		pb_bpf_settings.jit_enable = 0;
		ret = pb_bpf_prog_make(&r.spec, &checked);
		pb_bpf_settings.jit_enable = 1;
		ret = ret ? ret : pb_bpf_prog_make(&r.spec, &jited);
		pb_bpf_resolved_free(&r);
		ret = ret ? found(&p, program, "can't be made") : run_both(&p, program, checked, jited, v.facts->ctx_needed);
		pb_bpf_prog_free(checked);
		pb_bpf_prog_free(jited);
	}
	pb_bpf_facts_free(&mem, v.facts);
	return ret;
}

static double now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

int main(int argc, char **argv)
{
	double start = now(), seconds = 10;
	uint64_t seed = 1, only = 0;
	bool has_only = false;
	int failed = 0;

	for (int i = 1; i + 1 < argc; i += 2) {
		if (!strcmp(argv[i], "--seconds"))
			seconds = atof(argv[i + 1]);
		else if (!strcmp(argv[i], "--seed"))
			seed = strtoull(argv[i + 1], NULL, 0);
		else if (!strcmp(argv[i], "--only"))
			only = strtoull(argv[i + 1], NULL, 0), has_only = true;
		else
			return 2;
	}
	if (!make_maps()) {
		printf("FAIL no maps\n0 passed, 1 failed\n");
		return 1;
	}
	if (has_only)
		failed = run_program(only);
	else
		for (uint64_t n = seed << 32; !failed && now() - start < seconds; n++)
			failed = run_program(n);
	printf("%lu programs, %lu accepted by our verifier, %lu runs, %lu accesses looked at; seed %lu, %.0f s\n", nr_programs,
	       nr_accepted, nr_runs, nr_accesses, seed, now() - start);
	if (!has_only && (nr_accepted * 20 < nr_programs || !nr_accesses)) {
		printf("FAIL too few programs are accepted for this to be a test\n");
		failed = 1;
	}
	printf("%d passed, %d failed\n", !failed, failed);
	return failed;
}
