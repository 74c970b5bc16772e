/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The generator of weave.h. A program is a list of random items. The files weave_*.c make the
 * items. Between items, the program makes accesses at the edges of bounds. At its end, the program
 * stores its numbers in a map.
 */
#include <string.h>
#include "weave_priv.h"

static void load(struct weave *w)
{
	weave_load(w, weave_free(w));
}

static void bound(struct weave *w)
{
	weave_bound(w, weave_number(w));
}

static void item(struct weave *w)
{
	static void (*const items[])(struct weave *) = {
		load, load, load,
		weave_compute, weave_compute, weave_compute, weave_compute, weave_compute,
		weave_guard, weave_guard, weave_guard, weave_guard, bound, bound, bound,
		weave_around, weave_around, weave_around,
		weave_spill_fill, weave_spill_fill, weave_spill_fill, weave_spill_fill,
		weave_atomic, weave_atomic, weave_call_numbers, weave_call_stack, weave_call_back,
		weave_loop, weave_loop_may_goto, weave_loop_numbers, weave_load_packet,
	};

	items[pick(w, sizeof items / sizeof *items)](w);
}

void weave_items(struct weave *w, int n)
{
	for (int i = 0; i < n && w->c->nr < 240; i++)
		item(w);
}

/* ---- the whole program ----------------------------------------------------------------------- */

static void begin(struct weave *w)
{
	MOV(CTX, 1);
	put_load64(w, VALUE, BPF_PSEUDO_MAP_VALUE, GEN_DIRECT, 0);
	for (int i = 0; i < SLOTS; i++)
		if (chance(w, 75)) {
			put(w, BPF_ST | BPF_MEM | BPF_DW, 10, 0, -8 * (i + 1),
			    chance(w, 50) ? 0 : weave_imm(w));
			w->slots |= 1u << i;
		}
	weave_load(w, 6 + pick(w, 2));
	weave_load(w, pick(w, 6));
}

/* Stores the program's numbers in a map. If two runs of the program compute different numbers, the
 * map's contents after these runs differ, too. */
static void give_out(struct weave *w)
{
	int at = 0;

	put_load64(w, CTX, BPF_PSEUDO_MAP_VALUE, GEN_OUT, 0);
	for (int r = 0; r < 8; r++)
		if (w->numbers >> r & 1)
			put(w, BPF_STX | BPF_MEM | BPF_DW, CTX, r, 8 * at++, 0);
	for (int i = 0; i < SLOTS; i++)
		if (w->slots >> i & 1 && chance(w, 60)) {
			put(w, BPF_LDX | BPF_MEM | BPF_DW, 1, 10, -8 * (i + 1), 0);
			put(w, BPF_STX | BPF_MEM | BPF_DW, CTX, 1, 8 * at++, 0);
			w->numbers &= ~2u;
		}
}

static void append(struct gen_program *p, const struct bpf_insn *insns, int nr)
{
	for (int i = 0; i < nr && p->nr < GEN_MOST - 2; i++)
		p->insns[p->nr++] = insns[i];
}

void weave_assemble(struct weave *w, struct gen_program *p)
{
	const struct bpf_insn exit[] = {
		{ .code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = 0, .imm = 1 },
		{ .code = BPF_JMP | BPF_EXIT }
	};
	int starts[NR_SUBS] = { 0 };

	p->nr = 0;
	p->nr_funcs = 0;
	p->flags = w->flags;
	p->changed = false;
	p->type = w->type;
	append(p, w->body.insns, w->body.nr);
	append(p, exit, 2);
	for (int i = 0; i < w->body.nr_outs; i++)
		p->insns[w->body.outs[i]].off = (int16_t)(p->nr - w->body.outs[i] - 1);
	append(p, exit, 2);
	for (int i = 0; i < NR_SUBS; i++) {
		if (!w->wanted[i])
			continue;
		if (!p->nr_funcs)
			p->funcs[p->nr_funcs++] = (struct pb_bpf_func){ .insn = 0, .name = "main" };
		starts[i] = p->nr;
		p->funcs[p->nr_funcs++] = (struct pb_bpf_func){ .insn = (uint32_t)p->nr,
								.name = "sub" };
		append(p, w->subs[i].insns, w->subs[i].nr);
	}
	for (int i = 0; i < p->nr; i++) {
		struct bpf_insn *in = &p->insns[i];
		bool func = in->code == (BPF_LD | BPF_IMM | BPF_DW) &&
			    in->src_reg == BPF_PSEUDO_FUNC;

		if ((func || (in->code == (BPF_JMP | BPF_CALL) &&
			      in->src_reg == BPF_PSEUDO_CALL)) &&
		    in->imm < 0)
			in->imm = starts[-1 - in->imm] - i - 1;
	}
}

void weave(struct gen_program *p, uint64_t seed, weave_ask *ask)
{
	static const uint32_t types[] = { BPF_PROG_TYPE_SOCKET_FILTER, BPF_PROG_TYPE_XDP,
					  BPF_PROG_TYPE_XDP, BPF_PROG_TYPE_SCHED_CLS,
					  BPF_PROG_TYPE_SCHED_CLS, BPF_PROG_TYPE_KPROBE };
	static struct weave all;
	struct weave *w = &all;

	memset(w->wanted, 0, sizeof w->wanted);
	w->body.nr = w->body.nr_outs = 0;
	for (int i = 0; i < NR_SUBS; i++)
		w->subs[i].nr = w->subs[i].nr_outs = 0;
	w->seed = seed;
	w->numbers = w->locked = w->slots = 0;
	w->depth = 0;
	w->in_sub = w->stay = false;
	w->ask = ask;
	w->type = types[pick(w, 6)];
	w->flags = chance(w, 10) ? BPF_F_TEST_STATE_FREQ :
		   chance(w, 10) ? BPF_F_STRICT_ALIGNMENT : 0;
	for (int i = 0; i < NR_SUBS; i++)
		weave_make_sub(w, i);
	begin(w);
	weave_items(w, 2 + pick(w, 9));
	for (int i = 1 + pick(w, 3); i; i--) {
		weave_edge(w);
		weave_items(w, pick(w, 3));
	}
	give_out(w);
	weave_assemble(w, p);
}
