/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Makes a program for each engine from a test's instructions, without the verifier. Runs these
 * programs (engines.h). */
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include "bpf/core/opcodes.h"
#include "bpf/run/image.h"
#include "engines.h"
#include "insns.h"
#include "kernel_run.h"

const char *const engine_names[NR_ENGINES] = {
	"interpreter", "jit", "blinded jit", "baseline jit" };

/*
 * The test's instructions take arguments in r1, r2 and r3. But at a program's start, only r1 has an
 * argument: the context. So the instructions in start[] load the three arguments from the context,
 * and call the test's instructions.
 */
struct arguments {
	uint64_t mem, len, end;
};

static const struct bpf_insn start[] = {
	BPF_LDX_MEM(BPF_DW, 2, 1, 8), BPF_LDX_MEM(BPF_DW, 3, 1, 16), BPF_LDX_MEM(BPF_DW, 1, 1, 0),
	BPF_CALL_REL(0, 1), BPF_EXIT_INSN(),
};
#define START	(sizeof(start) / sizeof(start[0]))

/* Stores the opcode of each instruction in ops[]. Sets begins[i] if a subprogram begins at
 * instruction i. Returns 0 or -EINVAL. */
static int decode(const struct bpf_insn *insns, uint32_t nr, uint8_t *ops, uint8_t *begins)
{
	begins[0] = begins[START] = 1;
	for (uint32_t i = 0; i < nr; i++) {
		ops[i] = (uint8_t)pb_bpf_decode(&insns[i]);
		if (!ops[i] || insns[i].dst_reg > 10 || (insns[i].src_reg > 10) ||
		    (i >= START && !pb_bpf_unused_are_zero(&insns[i], ops[i])))
			return -EINVAL;
		if (ops[i] == PB_BPF_OP_LD_IMM64) {
			if (++i == nr || insns[i].code || insns[i].dst_reg || insns[i].src_reg ||
			    insns[i].off)
				return -EINVAL;
			ops[i] = 0;
		} else if (ops[i] == PB_BPF_OP_CALL_PC) {
			int64_t to = (int64_t)i + 1 + insns[i].imm;

			if (to < 0 || to >= nr)
				return -EINVAL;
			begins[to] = 1;
		}
	}
	return 0;
}

/* Returns the number of bytes of stack that instruction i needs. It needs stack if it accesses
 * memory through r10. It also needs stack if it adds a negative constant, because the register may
 * be a copy of r10. */
static int32_t depth(const struct bpf_insn *i, uint8_t op)
{
	uint8_t form = pb_bpf_ops[op].form;
	bool load = form == PB_BPF_LDX || form == PB_BPF_LDSX;

	if (op == PB_BPF_OP_ADD64_K)
		return i->imm < 0 && i->imm >= -512 ? -i->imm : 0;
	if (BPF_CLASS(i->code) == BPF_ST || BPF_CLASS(i->code) == BPF_STX || load)
		return (load ? i->src_reg : i->dst_reg) == 10 ? -i->off : 0;
	return 0;
}

static uint32_t find_subs(struct pb_bpf_sub *subs, const struct bpf_insn *insns, uint32_t nr,
			  const uint8_t *ops, const uint8_t *begins)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < nr; i++) {
		int32_t d;

		if (begins[i])
			subs[n++] = (struct pb_bpf_sub){ .start = i };
		d = depth(&insns[i], ops[i]);
		if (d > subs[n - 1].stack)
			subs[n - 1].stack = (uint16_t)((d + 7) / 8 * 8);
	}
	return n;
}

/* The engines expect the size of the caller's frame in the `off` field of a call instruction. */
static void set_frames(struct bpf_insn *insns, uint32_t nr, const uint8_t *ops,
		       const struct pb_bpf_sub *subs, uint32_t nr_subs)
{
	uint32_t s = 0;

	for (uint32_t i = 0; i < nr; i++) {
		if (s + 1 < nr_subs && subs[s + 1].start == i)
			s++;
		if (ops[i] == PB_BPF_OP_CALL_PC)
			insns[i].off = (int16_t)subs[s].stack;
	}
}

void engine_choose(enum engine e)
{
	pb_bpf_settings.jit_enable = e != ENGINE_INTERPRETER;
	pb_bpf_settings.jit_harden = e == ENGINE_BLINDED ? 2 : 0;
	pb_bpf_settings.jit_baseline = e == ENGINE_BASELINE;
}

static int make(struct engine_prog *p, struct bpf_insn *all, uint32_t nr, uint8_t *ops,
		uint8_t *begins)
{
	struct pb_bpf_sub subs[PB_BPF_MAX_SUBPROGS];
	struct pb_bpf_prog_spec s = { .insns = all, .nr = nr, .ops = ops, .subs = subs,
		.stack = PB_BPF_STACK };
	int err = decode(all, nr, ops, begins);

	if (err)
		return err;
	s.nr_subs = find_subs(subs, all, nr, ops, begins);
	set_frames(all, nr, ops, subs, s.nr_subs);
	for (enum engine e = 0; e < NR_ENGINES && !err; e++) {
		engine_choose(e);
		err = pb_bpf_prog_make(&s, &p->progs[e]);
		if (!err && e != ENGINE_INTERPRETER && !p->progs[e]->jited)
			err = -ENOTSUP;
	}
	return err;
}

int engine_prog_make(struct engine_prog *p, const struct bpf_insn *insns, uint32_t nr)
{
	uint32_t n = nr + START;
	struct bpf_insn *all = malloc(n * sizeof(*all));
	uint8_t *ops = malloc(n), *begins = calloc(n, 1);
	int err;

	memset(p, 0, sizeof(*p));
	memcpy(all, start, sizeof(start));
	memcpy(all + START, insns, nr * sizeof(*insns));
	err = make(p, all, n, ops, begins);
	if (err)
		engine_prog_free(p);
	free(all);
	free(ops);
	free(begins);
	return err;
}

uint64_t engine_prog_run(const struct engine_prog *p, enum engine e, uint8_t *mem, uint32_t len)
{
	struct arguments args = { (uint64_t)mem, len, (uint64_t)mem + kernel_packet_len(len) };
	struct pb_bpf_run run = { .prog = p->progs[e], .ctx = &args };

	return pb_bpf_enter(&run);
}

void engine_prog_free(struct engine_prog *p)
{
	for (enum engine e = 0; e < NR_ENGINES; e++)
		pb_bpf_prog_free(p->progs[e]);
	memset(p, 0, sizeof(*p));
}
