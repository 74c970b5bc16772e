/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Generates subprograms, callbacks, and other parts that are rare in programs. */
#include <stddef.h>
#include <string.h>
#include "bpf/helper/kfunc.h"
#include "generate_priv.h"

/* ---- rare parts --------------------------------------------------------------------------- */

static void load64(struct gen *g, int dst, int src, int imm, int more)
{
	put(g, BPF_LD | BPF_IMM | BPF_DW, dst, src, 0, imm);
	put(g, 0, 0, 0, 0, more);
}

static void after_call(struct gen *g, enum kind r0)
{
	for (int r = 0; r < 6; r++)
		set(g, r, NONE);
	set(g, 0, r0);
}

static void direct_value(struct gen *g)
{
	int r = any_dst(g), off = chance(g, 60) ? 0 : pick(g, GEN_DIRECT_VALUE);

	load64(g, r, BPF_PSEUDO_MAP_VALUE, GEN_DIRECT, off);
	set(g, r, VALUE);
	g->a.left[r] = (int16_t)(GEN_DIRECT_VALUE - off);
}

/* Makes a spill and a fill of any width. Some fills extend the sign. Some accesses use a register
 * other than r10 as base. */
static void spill_narrow(struct gen *g)
{
	int s = pick(g, 4), bytes = s == 3 ? 8 : sizes[s] == BPF_W ? 4 : sizes[s] == BPF_H ? 2 : 1,
	    n = 1 + pick(g, 6);
	int off = -8 * n + (chance(g, 70) ? 0 : bytes * pick(g, 8 / bytes)), r = reg_of(g, NUMBERS),
	    to = any_dst(g);
	int base = chance(g, 60) ? 10 : any_dst(g), s2 = chance(g, 70) ? s : pick(g, 4);

	if (r < 0 || r == base || to == base)
		return;
	if (base != 10) {
		put(g, BPF_ALU64 | BPF_MOV | BPF_X, base, 10, 0, 0);
		set(g, base, NONE);
	}
	put(g, BPF_ST | BPF_MEM | BPF_DW, 10, 0, -8 * n, number(g));
	put(g, BPF_STX | BPF_MEM | sizes[s], chance(g, 70) ? base : 10, r, off, 0);
	if (chance(g, 30)) {
		put(g, (chance(g, 50) ? BPF_JMP : BPF_JMP32) | BPF_JLT | BPF_K, r, 0, 2, number(g));
		put(g, BPF_ALU64 | BPF_MOV | BPF_K, 0, 0, 0, 0);
		put(g, BPF_JMP | BPF_EXIT, 0, 0, 0, 0);
		set(g, 0, NONE);
	}
	put(g, BPF_LDX | (chance(g, 60) || sizes[s2] == BPF_DW ? BPF_MEM : BPF_MEMSX) | sizes[s2],
	    to, chance(g, 70) ? base : 10, off, 0);
	set(g, to, NUMBER);
	g->a.stack |= 1ull << (n - 1);
}

static void move_signed(struct gen *g)
{
	static const int widths[] = { 8, 16, 32 };
	int dst = any_dst(g), src = reg_of(g, NUMBERS), wide = pick(g, 2);

	if (src < 0)
		return;
	if (chance(g, 30))
		put(g, BPF_ALU | BPF_MOV | BPF_X, dst, src, 0, 0);
	else
		put(g, (wide ? BPF_ALU64 : BPF_ALU) | BPF_MOV | BPF_X, dst, src,
		    widths[pick(g, wide ? 3 : 2)], 0);
	set(g, dst, NUMBER);
}

/* Makes a branch that checks whether a range is inside the packet. The range begins at an unknown
 * offset. */
static void packet_at(struct gen *g)
{
	bool xdp = g->p->type == BPF_PROG_TYPE_XDP;
	int c = reg_of(g, 1u << CTX), packet = 2 + pick(g, 2), end = 4, p = 5,
	    bytes = 1 + pick(g, 16), index;

	if (c < 0 || c == packet || c > 5 + 4 || c == end || c == p ||
	    (!xdp && g->p->type != BPF_PROG_TYPE_SCHED_CLS))
		return;
	put(g, BPF_LDX | BPF_MEM | BPF_W, packet, c,
	    xdp ? 0 : (int)offsetof(struct __sk_buff, data), 0);
	put(g, BPF_LDX | BPF_MEM | BPF_W, end, c,
	    xdp ? 4 : (int)offsetof(struct __sk_buff, data_end), 0);
	set(g, packet, NONE);
	set(g, end, NONE);
	set(g, p, NONE);
	index = gen_bounded(g, 1 << pick(g, 8));
	if (index == packet || index == end || index == p)
		return;
	put(g, BPF_ALU64 | BPF_ADD | BPF_X, packet, index, 0, 0);
	put(g, BPF_ALU64 | BPF_MOV | BPF_X, p, packet, 0, 0);
	put(g, BPF_ALU64 | BPF_ADD | BPF_K, p, 0, 0, bytes);
	put(g, BPF_JMP | (chance(g, 50) ? BPF_JLE : BPF_JLT) | BPF_X, p, end, 2, 0);
	put(g, BPF_ALU64 | BPF_MOV | BPF_K, 0, 0, 0, 1);
	put(g, BPF_JMP | BPF_EXIT, 0, 0, 0, 0);
	set(g, packet, PACKET);
	g->a.left[packet] = (int16_t)bytes;
}

/* Calls a helper that moves the packet. The call makes pointers to the packet invalid. */
static void move_packet(struct gen *g)
{
	int c = reg_of(g, 1u << CTX);

	if (c < 0 || (g->p->type != BPF_PROG_TYPE_XDP && g->p->type != BPF_PROG_TYPE_SCHED_CLS))
		return;
	put(g, BPF_ALU64 | BPF_MOV | BPF_X, 1, c, 0, 0);
	put(g, BPF_ALU64 | BPF_MOV | BPF_K, 2, 0, 0, pick(g, 16));
	put(g, BPF_JMP | BPF_CALL, 0, 0, 0,
	    g->p->type == BPF_PROG_TYPE_XDP ? BPF_FUNC_xdp_adjust_head : BPF_FUNC_skb_pull_data);
	after_call(g, NUMBER);
	for (int r = 0; r < 10; r++)
		if (chance(g, 90) && (g->a.kind[r] == PACKET || g->a.kind[r] == PACKET_END))
			set(g, r, NONE);
}

static void packet_load(struct gen *g)
{
	int s = pick(g, 3), src = reg_of(g, NUMBERS);

	if (g->a.kind[6] != CTX)
		return;
	if (chance(g, 50) || src < 0)
		put(g, BPF_LD | BPF_ABS | sizes[s], 0, 0, 0, pick(g, 40));
	else
		put(g, BPF_LD | BPF_IND | sizes[s], 0, src, 0, pick(g, 20));
	after_call(g, NUMBER);
}

static void write_context(struct gen *g)
{
	int c = reg_of(g, 1u << CTX), r = reg_of(g, NUMBERS);
	int off = chance(g, 30) ? (int)offsetof(struct __sk_buff, mark) :
		  (int)offsetof(struct __sk_buff, cb) + 4 * pick(g, 5);

	if (c >= 0 && r >= 0)
		put(g, BPF_STX | BPF_MEM | BPF_W, c, r, off, 0);
}

static void change_map(struct gen *g)
{
	int map = pick(g, GEN_DIRECT);

	put(g, BPF_ST | BPF_MEM | BPF_DW, 10, 0, -8, pick(g, 6));
	for (int n = 2; n < 9; n++)
		put(g, BPF_ST | BPF_MEM | BPF_DW, 10, 0, -8 * n, number(g));
	g->a.stack |= 0xff;
	load64(g, 1, BPF_PSEUDO_MAP_FD, map, 0);
	put(g, BPF_ALU64 | BPF_MOV | BPF_X, 2, 10, 0, 0);
	put(g, BPF_ALU64 | BPF_ADD | BPF_K, 2, 0, 0, -8);
	put(g, BPF_ALU64 | BPF_MOV | BPF_X, 3, 10, 0, 0);
	put(g, BPF_ALU64 | BPF_ADD | BPF_K, 3, 0, 0, -64);
	put(g, BPF_ALU64 | BPF_MOV | BPF_K, 4, 0, 0, 0);
	put(g, BPF_JMP | BPF_CALL, 0, 0, 0,
	    chance(g, 60) ? BPF_FUNC_map_update_elem : BPF_FUNC_map_delete_elem);
	after_call(g, NUMBER);
}

static void leave_for_another(struct gen *g)
{
	int c = reg_of(g, 1u << CTX);

	if (c < 0)
		return;
	put(g, BPF_ALU64 | BPF_MOV | BPF_X, 1, c, 0, 0);
	load64(g, 2, BPF_PSEUDO_MAP_FD, GEN_PROGS, 0);
	put(g, BPF_ALU64 | BPF_MOV | BPF_K, 3, 0, 0, pick(g, 6));
	put(g, BPF_JMP | BPF_CALL, 0, 0, 0, BPF_FUNC_tail_call);
	after_call(g, NONE);
}

/* Calls subprogram 1 or 2 with numbers and the address of a value. gen_link_subs() later stores the
 * distance to the subprogram in the call. */
static void call_sub(struct gen *g)
{
	int sub = g->sub ? g->sub + 1 : 1 + pick(g, 2), value = reg_of(g, 1u << VALUE),
	    n = reg_of(g, NUMBERS);

	if (sub > 2 || n < 0)
		return;
	if (n != 1)
		put(g, BPF_ALU64 | BPF_MOV | BPF_X, 1, n, 0, 0);
	put(g, BPF_ALU64 | BPF_MOV | BPF_K, 2, 0, 0, number(g));
	if (value > 2 && g->a.left[value] >= 16)
		put(g, BPF_ALU64 | BPF_MOV | BPF_X, 3, value, 0, 0);
	else
		load64(g, 3, BPF_PSEUDO_MAP_VALUE, GEN_DIRECT, 0);
	put(g, BPF_JMP | BPF_CALL, 0, BPF_PSEUDO_CALL, 0, -sub);
	g->wanted[sub] = true;
	after_call(g, NUMBER);
}

/* Calls bpf_loop with subprogram 3 as callback. The callback gets the address of a slot of its
 * caller's stack. */
static void call_loop(struct gen *g)
{
	int slot = -8 * (1 + pick(g, 6)), n = reg_of(g, NUMBERS), back = 6 + pick(g, 4);

	if (g->sub || n < 0)
		return;
	put(g, BPF_ST | BPF_MEM | BPF_DW, 10, 0, slot, pick(g, 8));
	if (chance(g, 50))
		put(g, BPF_ALU64 | BPF_MOV | BPF_K, 1, 0, 0, pick(g, 12));
	else
		put(g, BPF_ALU64 | BPF_MOV | BPF_X, 1, n, 0, 0);
	load64(g, 2, BPF_PSEUDO_FUNC, -3, 0);
	put(g, BPF_ALU64 | BPF_MOV | BPF_X, 3, 10, 0, 0);
	put(g, BPF_ALU64 | BPF_ADD | BPF_K, 3, 0, 0, slot);
	put(g, BPF_ALU64 | BPF_MOV | BPF_K, 4, 0, 0, 0);
	put(g, BPF_JMP | BPF_CALL, 0, 0, 0, BPF_FUNC_loop);
	g->wanted[3] = true;
	after_call(g, NUMBER);
	if (chance(g, 70)) {
		put(g, BPF_LDX | BPF_MEM | BPF_DW, back, 10, slot, 0);
		set(g, back, NUMBER);
	}
}

/* ---- loops with may_goto or an iterator ---------------------------------------------------- */

/* Begins a loop's body. Forgets many registers, because earlier iterations may have changed
 * them. */
static void begin_body(struct gen *g, struct account *before)
{
	for (int r = 0; r < 10; r++)
		if (g->a.kind[r] != CTX && chance(g, 60))
			set(g, r, NONE);
	*before = g->a;
	g->depth += 2;
}

static void end_body(struct gen *g, const struct account *before, int head, int out)
{
	g->depth -= 2;
	put(g, BPF_JMP | BPF_JA, 0, 0, head - g->p->nr - 1, 0);
	g->p->insns[out].off = (int16_t)(g->p->nr - out - 1);
	gen_merge(&g->a, before);
}

static void loop_may_goto(struct gen *g)
{
	struct account before;
	int head = g->p->nr;

	if (g->depth > 1)
		return;
	put(g, BPF_JMP | BPF_JCOND, 0, 0, 0, 0);
	begin_body(g, &before);
	gen_block(g, 1 + pick(g, 4));
	end_body(g, &before, head, head);
}

static void call_iter(struct gen *g, int slot, int function)
{
	put(g, BPF_ALU64 | BPF_MOV | BPF_X, 1, 10, 0, 0);
	put(g, BPF_ALU64 | BPF_ADD | BPF_K, 1, 0, 0, slot);
	if (function == PB_BPF_KFUNC_ITER_NUM_NEW) {
		put(g, BPF_ALU64 | BPF_MOV | BPF_K, 2, 0, 0, chance(g, 70) ? 0 : number(g));
		put(g, BPF_ALU64 | BPF_MOV | BPF_K, 3, 0, 0,
		    chance(g, 70) ? pick(g, 12) : number(g));
	}
	put(g, BPF_JMP | BPF_CALL, 0, BPF_PSEUDO_KFUNC_CALL, 0, function);
	after_call(g, NONE);
}

static void loop_numbers(struct gen *g)
{
	int slot = -8 * (chance(g, 90) ? 12 + g->depth : 1 + pick(g, 8)), head, out, r = any_dst(g);
	struct account before;

	if (g->depth > 1)
		return;
	call_iter(g, slot, PB_BPF_KFUNC_ITER_NUM_NEW);
	head = g->p->nr;
	call_iter(g, slot, PB_BPF_KFUNC_ITER_NUM_NEXT);
	out = g->p->nr;
	put(g, BPF_JMP | BPF_JEQ | BPF_K, 0, 0, 0, 0);
	begin_body(g, &before);
	if (chance(g, 60)) {
		put(g, BPF_LDX | BPF_MEM | BPF_W, r, 0, 0, 0);
		set(g, r, NUMBER);
	}
	gen_block(g, 1 + pick(g, 4));
	end_body(g, &before, head, out);
	if (chance(g, 97))
		call_iter(g, slot, PB_BPF_KFUNC_ITER_NUM_DESTROY);
}

void gen_rare(struct gen *g)
{
	static void (*const items[])(struct gen *) = {
		loop_may_goto, loop_numbers, direct_value, spill_narrow, spill_narrow, move_signed,
		packet_at, packet_at, move_packet, packet_load,
		write_context, change_map, leave_for_another, call_sub, call_sub, call_loop,
	};

	items[pick(g, sizeof items / sizeof *items)](g);
}

/* Generates the subprograms that are called, in the order of their numbers. */
void gen_make_subs(struct gen *g)
{
	for (g->sub = 1; g->sub <= 3; g->sub++) {
		if (!g->wanted[g->sub])
			continue;
		g->starts[g->sub] = g->p->nr;
		memset(&g->a, 0, sizeof g->a);
		g->depth = 0;
		set(g, 10, FP);
		set(g, 1, NUMBER);
		if (g->sub < 3) {
			set(g, 2, NUMBER);
			set(g, 3, VALUE);
			g->a.left[3] = 16;
		} else {
			put(g, BPF_LDX | BPF_MEM | BPF_DW, 3, 2, 0, 0);
			put(g, BPF_ALU64 | BPF_ADD | BPF_K, 3, 0, 0, pick(g, 4));
			put(g, BPF_STX | BPF_MEM | BPF_DW, 2, 3, 0, 0);
			set(g, 3, NUMBER);
		}
		gen_block(g, 1 + pick(g, 5));
		if (g->sub == 3 || g->a.kind[0] != NUMBER)
			put(g, BPF_ALU64 | BPF_MOV | BPF_K, 0, 0, 0, pick(g, 2));
		put(g, BPF_JMP | BPF_EXIT, 0, 0, 0, 0);
	}
}

/* Stores the distances to subprograms in their calls. If there are subprograms, also makes the list
 * of functions. */
void gen_link_subs(struct gen *g)
{
	struct gen_program *p = g->p;

	for (int i = 0; i < p->nr; i++) {
		struct bpf_insn *in = &p->insns[i];
		bool func = in->code == (BPF_LD | BPF_IMM | BPF_DW) &&
			    in->src_reg == BPF_PSEUDO_FUNC;

		if (func || (in->code == (BPF_JMP | BPF_CALL) && in->src_reg == BPF_PSEUDO_CALL))
			in->imm = in->imm < 0 && in->imm >= -3 ?
				  g->starts[-in->imm] - i - 1 : in->imm;
	}
	if (!g->wanted[1] && !g->wanted[2] && !g->wanted[3])
		return;
	p->funcs[p->nr_funcs++] = (struct pb_bpf_func){ .insn = 0, .name = "main" };
	for (int n = 1; n <= 3; n++)
		if (g->wanted[n])
			p->funcs[p->nr_funcs++] = (struct pb_bpf_func){
				.insn = (uint32_t)g->starts[n], .name = "sub"
			};
}
