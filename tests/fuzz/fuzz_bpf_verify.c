/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Fuzzes the eBPF verifier and the resolver with hostile programs: any bytes as instructions, any
 * maps, functions, privileges and log sizes, and allocations that fail. For any input, verification
 * must end soon and free all its memory. The resolver must turn an accepted program into a program
 * whose jumps and calls stay inside the program.
 *
 * An input is a struct head, nr_maps times struct map, nr_funcs times struct func, and
 * instructions.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../bpf/verifier/random/generate.h"
#include "bpf/run/fixup.h"
#include "driver.h"

#define MOST_MAPS	8
#define MOST_FUNCS	8
#define MOST_INSNS	2048
#define MOST_LOG	(1u << 16)

struct head {
	uint8_t type, attach, caps, flags, log_level, nr_maps, nr_funcs, lines;
	uint16_t fail_at;		/* n: the n-th allocation fails; 0: no allocation fails */
	uint16_t log_size;
	uint32_t gpl;
};

struct map {
	uint8_t type, key, value, entries, flags, inner, kptrs;
	int8_t lock, timer;
};

struct func {
	uint16_t insn;
	uint8_t flags, nr_args, kinds[5], size;
};

struct counts {
	uint64_t programs, accepted, resolved, starved;
};
const size_t fuzz_counts_size = sizeof(struct counts);

/* ---- memory ---------------------------------------------------------------------------- */

static size_t allocated;
static unsigned allocations, fail_at;

static void *mem_alloc(struct pb_bpf_mem *mem, size_t size)
{
	void *p = ++allocations == fail_at ? NULL : calloc(1, size);

	if (p)
		allocated += size;
	return p;
}

static void mem_free(struct pb_bpf_mem *mem, void *p, size_t size)
{
	allocated -= size;
	free(p);
}

static struct pb_bpf_mem mem = { mem_alloc, mem_free };

/* ---- an input ----------------------------------------------------------------------------- */

static char values[256];

static void *direct(struct pb_bpf_map *map, uint32_t off)
{
	return values + off;
}

static const struct pb_bpf_map_ops with_direct = { .direct = direct }, without;

static void take_map(struct fuzz_input *in, struct pb_bpf_map *m)
{
	struct map d = { 0 };

	for (size_t i = 0; i < sizeof d; i++)
		((uint8_t *)&d)[i] = (uint8_t)fuzz_take(in, 1);
	*m = (struct pb_bpf_map){
		.name = "fuzz", .ops = d.type == BPF_MAP_TYPE_ARRAY ? &with_direct : &without,
		.attr = { d.type % 32, d.key, d.value, d.entries, (uint32_t)d.flags << 4 },
		.frozen = d.flags & 1,
		.inner = { d.inner % 32, 4, 8, 1, 0 },
		.types = { .spin_lock_off = d.lock, .timer_off = d.timer, .btf_key = 1,
			   .btf_value = d.kptrs & 1, .nr_kptrs = d.kptrs >> 1 & 1,
			   .kptrs = { { 8, 1, 16, "some", d.kptrs >> 2 & 1 } } },
	};
}

static void take_func(struct fuzz_input *in, struct pb_bpf_func *f)
{
	struct func d = { 0 };

	for (size_t i = 0; i < sizeof d; i++)
		((uint8_t *)&d)[i] = (uint8_t)fuzz_take(in, 1);
	*f = (struct pb_bpf_func){
		.insn = d.insn, .name = "f", .global = d.flags & 1,
		.returns_void = d.flags >> 1 & 1, .nr_args = d.nr_args % 8 };
	for (int i = 0; i < 5; i++) {
		f->args[i].kind = d.kinds[i] % (PB_BPF_FUNC_OTHER + 1);
		f->args[i].size = d.size;
	}
}

/* ---- accepted programs ----------------------------------------------------------------------- */

static void check_resolved(const struct pb_bpf_prog_spec *s, const uint32_t *origin,
			   uint32_t verified)
{
	for (uint32_t i = 0; i < s->nr; i++) {
		const struct bpf_insn *insn = &s->insns[i];
		unsigned form = s->ops[i] < PB_BPF_NR_OPS ? pb_bpf_ops[s->ops[i]].form :
							    PB_BPF_NO_INSN;
		int64_t to = i;

		FUZZ_CHECK(origin[i] < verified);
		if (form == PB_BPF_GOTO || form == PB_BPF_IF_K || form == PB_BPF_IF_X)
			to = (int64_t)i + 1 + insn->off;
		else if (form == PB_BPF_GOTOL || form == PB_BPF_CALL_PC ||
			 (form == PB_BPF_LD64 && insn->src_reg == BPF_PSEUDO_FUNC))
			to = (int64_t)i + 1 + insn->imm;
		else if (form == PB_BPF_CALL_HELPER)
			FUZZ_CHECK((uint32_t)insn->imm < s->nr_calls);
		FUZZ_CHECK(to >= 0 && to < s->nr);
		i += form == PB_BPF_LD64;
	}
	FUZZ_CHECK(s->stack <= PB_BPF_WHOLE_STACK);
	for (uint32_t i = 0; i < s->nr_subs; i++)
		FUZZ_CHECK(s->subs[i].start < s->nr &&
			   s->subs[i].stack <= PB_BPF_STACK + PB_BPF_COUNTER);
}

static void resolve(const struct pb_bpf_verify *v, struct counts *counts)
{
	struct pb_bpf_resolved r;
	int err;

	counts->accepted++;
	FUZZ_CHECK(v->facts && v->facts->nr_subprogs && v->facts->stack <= PB_BPF_WHOLE_STACK);
	err = pb_bpf_resolve(v, &r);
	FUZZ_CHECK(err <= 0 && err > -4096);
	if (err)
		return;
	counts->resolved++;
	check_resolved(&r.spec, r.origin, v->nr);
	pb_bpf_resolved_free(&r);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static char text[MOST_LOG];
	struct pb_bpf_line lines[2] = { { 0, "first" }, { 3, "third" } };
	struct fuzz_input in = { data, size };
	struct pb_bpf_map maps[MOST_MAPS], *list[MOST_MAPS];
	struct pb_bpf_func funcs[MOST_FUNCS];
	struct counts none, *counts = fuzz_counts() ? fuzz_counts() : &none;
	struct head h = { 0 };
	struct pb_bpf_text log = { .buf = text };
	struct pb_bpf_verify v = { .maps = list, .funcs = funcs, .lines = lines, .log = &log,
				   .mem = &mem };
	struct bpf_insn *insns;
	uint32_t types = 0;
	int err;

	for (size_t i = 0; i < sizeof h; i++)
		((uint8_t *)&h)[i] = (uint8_t)fuzz_take(&in, 1);
	while (pb_bpf_type_at(types))
		types++;
	v.type = pb_bpf_type_at(h.type % types);
	v.attach_type = h.attach;
	v.caps = h.caps & PB_BPF_CAP_ALL;
	v.flags = (h.flags & 1 ? BPF_F_STRICT_ALIGNMENT : 0) |
		  (h.flags & 2 ? BPF_F_ANY_ALIGNMENT : 0) |
		  (h.flags & 4 ? BPF_F_TEST_STATE_FREQ : 0);
	v.gpl = h.gpl & 1;
	v.log_level = h.log_level & 7;
	log.size = h.log_size;
	v.nr_lines = h.lines % 3;
	v.nr_maps = h.nr_maps % (MOST_MAPS + 1);
	v.nr_funcs = h.nr_funcs % (MOST_FUNCS + 1);
	for (uint32_t i = 0; i < v.nr_maps; i++) {
		take_map(&in, &maps[i]);
		list[i] = &maps[i];
	}
	for (uint32_t i = 0; i < v.nr_funcs; i++)
		take_func(&in, &funcs[i]);
	v.nr = (uint32_t)(in.left / sizeof *insns < MOST_INSNS ? in.left / sizeof *insns :
			  MOST_INSNS);
	/* has no spare byte, so that a sanitizer sees reads past the end */
	insns = malloc(v.nr ? v.nr * sizeof *insns : 1);
	memcpy(insns, in.p, v.nr * sizeof *insns);
	v.insns = insns;
	allocated = allocations = 0;
	fail_at = h.fail_at;
	err = pb_bpf_verify(&v);
	counts->programs++;
	counts->starved += err == -ENOMEM;
	FUZZ_CHECK(err <= 0 && err > -4096);
	FUZZ_CHECK(!log.size || log.len < log.size);
	FUZZ_CHECK(!!v.facts == !err);
	if (!err)
		resolve(&v, counts);
	pb_bpf_facts_free(&mem, v.facts);
	FUZZ_CHECK(!allocated);
	free(insns);
	return 0;
}

/* ---- seeds and mutations ---------------------------------------------------------------- */

void fuzz_seeds(void)
{
	static uint8_t seed[sizeof(struct head) + GEN_MAPS * sizeof(struct map) +
			    MOST_FUNCS * sizeof(struct func) + GEN_MOST * sizeof(struct bpf_insn)];
	static struct gen_program p;

	for (uint64_t n = 1; n <= 96; n++) {
		struct head h = { .caps = PB_BPF_CAP_ALL, .log_level = n % 3, .nr_maps = GEN_MAPS,
				  .log_size = 60000, .gpl = 1 };
		uint8_t *to = seed + sizeof h;

		generate(&p, n);
		while (pb_bpf_type_at(h.type) && pb_bpf_type_at(h.type)->type != p.type)
			h.type++;
		for (int i = 0; i < GEN_MAPS; i++, to += sizeof(struct map)) {
			struct map m = { (uint8_t)gen_maps[i].type, (uint8_t)gen_maps[i].key_size,
					(uint8_t)gen_maps[i].value_size,
					(uint8_t)gen_maps[i].max_entries, .lock = -1, .timer = -1 };

			memcpy(to, &m, sizeof m);
		}
		h.nr_funcs = (uint8_t)p.nr_funcs;
		for (uint32_t i = 0; i < p.nr_funcs; i++, to += sizeof(struct func)) {
			struct func f = { (uint16_t)p.funcs[i].insn, p.funcs[i].global,
					  (uint8_t)p.funcs[i].nr_args, { 0 }, 0 };

			for (int a = 0; a < 5; a++)
				f.kinds[a] = p.funcs[i].args[a].kind;
			memcpy(to, &f, sizeof f);
		}
		memcpy(seed, &h, sizeof h);
		memcpy(to, p.insns, (size_t)p.nr * sizeof *p.insns);
		fuzz_seed(seed, (size_t)(to - seed) + (size_t)p.nr * sizeof *p.insns);
	}
}

/* Changes a part of an instruction, replaces an instruction by a copy of another one, or changes a
 * byte of the head. */
size_t fuzz_mutate(uint8_t *data, size_t size, size_t max, unsigned seed)
{
	struct fuzz_rng r;
	size_t begin = sizeof(struct head), nr, at;
	struct bpf_insn insn;

	fuzz_rng_seed(&r, seed);
	if (size < begin + 64)
		return size;
	if (!fuzz_below(&r, 6)) {
		data[fuzz_below(&r, begin)] = (uint8_t)fuzz_random(&r);
		return size;
	}
	nr = (size - begin) / sizeof insn;
	at = size - (1 + fuzz_below(&r, nr)) * sizeof insn;
	memcpy(&insn, data + at, sizeof insn);
	switch (fuzz_below(&r, 6)) {
	case 0:
		insn.code = pb_bpf_ops[fuzz_below(&r, PB_BPF_NR_OPS)].code;
		break;
	case 1:
		insn.dst_reg = fuzz_below(&r, 11) & 15;
		insn.src_reg = fuzz_below(&r, 11) & 15;
		break;
	case 2:
		insn.off = (int16_t)(fuzz_below(&r, 64) - 32);
		break;
	case 3:
		insn.imm = (int32_t)fuzz_nasty(&r);
		break;
	case 4:
		insn.imm = (int32_t)fuzz_below(&r, 212);	/* a helper */
		break;
	default:
		memmove(data + at, data + size - (1 + fuzz_below(&r, nr)) * sizeof insn,
			sizeof insn);
		return size;
	}
	memcpy(data + at, &insn, sizeof insn);
	return size;
}

bool fuzz_summary(const void *p)
{
	const struct counts *c = p;

	printf("%lu programs verified, %lu accepted, %lu resolved, %lu without memory\n",
	       c->programs, c->accepted, c->resolved, c->starved);
	return (c->accepted && c->resolved) || c->programs < 200;
}
