/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A part of the generator of weave.h. It makes accesses at the edges of memory. The address or the
 * size of an access depends on a number whose bounds the verifier reports.
 */
#include <stddef.h>
#include "weave_priv.h"

/* A number that is added to a pointer: its register and its bounds. */
struct mover {
	int r;
	int64_t least, most;
};

static bool look(struct weave *w, struct weave_bounds bounds[10])
{
	static struct gen_program p;

	weave_assemble(w, &p);
	return w->ask(&p, w->body.nr, bounds);
}

/* Finds a register with a number whose bounds are less than `room` apart. If no register has such a
 * number, adds code that bounds a number, and searches again. Searches three times at most. */
static bool find_mover(struct weave *w, struct mover *m, int64_t room)
{
	struct weave_bounds b[10];

	for (int tries = 0; tries < 3; tries++) {
		int start = pick(w, 8), r;

		if (!look(w, b))
			return false;
		for (int i = 0; i < 8; i++) {
			r = (start + i) % 8;
			if (b[r].number && b[r].smin > -4096 && b[r].smax < 4096 &&
			    b[r].smax - b[r].smin < room && !(w->locked >> r & 1) &&
			    (b[r].smin != b[r].smax || tries == 2)) {
				*m = (struct mover){ r, b[r].smin, b[r].smax };
				return true;
			}
		}
		r = weave_number(w);
		if (!b[r].number || b[r].smin == b[r].smax)
			weave_load(w, r);
		weave_bound(w, r);
		w->numbers |= 1u << r;
	}
	return false;
}

/* Returns the offset of an access of `bytes` bytes to the memory from `from` to `to`. Most offsets
 * are the first or the last offset inside of this memory. Some offsets are just outside. */
static int edge_of(struct weave *w, const struct mover *m, int from, int to, int bytes)
{
	int64_t last = to - bytes - m->most, first = from - m->least;

	switch (pick(w, 10)) {
	case 0:
		return (int)last + 1;
	case 1:
		return (int)first - 1;
	case 2: case 3: case 4:
		return (int)first;
	case 5:
		return last > first ? (int)(first + pick(w, (int)(last - first))) : (int)last;
	default:
		return (int)last;
	}
}

/* Loads from or stores to base + off. */
static void touch(struct weave *w, int base, int off, int s)
{
	int r;

	if (chance(w, 45)) {
		r = weave_free(w);
		put(w, BPF_LDX | (s < 3 && chance(w, 30) ? BPF_MEMSX : BPF_MEM) | sizes[s], r, base,
		    off, 0);
		w->numbers |= 1u << r;
		if (r == base)
			w->locked &= ~(1u << r);
	} else if (chance(w, 70)) {
		put(w, BPF_ST | BPF_MEM | sizes[s], base, 0, off, weave_imm(w));
	} else {
		r = weave_number(w);
		if (r != base && w->numbers >> r & 1)
			put(w, BPF_STX | BPF_MEM | sizes[s], base, r, off, 0);
	}
}

/* Adds m to base, in one of several forms. May also add a constant to base. *shift gets this
 * constant, or 0. Returns the pointer's register. May overwrite the number in m->r. */
static int move_by(struct weave *w, int base, struct mover *m, int *shift)
{
	*shift = 0;
	if (chance(w, 25)) {
		*shift = pick(w, 17) - 8;
		ADD(base, *shift);
	}
	if (chance(w, 15)) {
		/* negates the number and subtracts it */
		put(w, BPF_ALU64 | BPF_NEG, m->r, 0, 0, 0);
		put(w, BPF_ALU64 | BPF_SUB | BPF_X, base, m->r, 0, 0);
		return base;
	}
	if (chance(w, 15)) {
		put(w, BPF_ALU64 | BPF_ADD | BPF_X, m->r, base, 0, 0);
		w->numbers &= ~(1u << m->r);
		return m->r;
	}
	put(w, BPF_ALU64 | BPF_ADD | BPF_X, base, m->r, 0, 0);
	return base;
}

/* Adds m to base, and accesses memory at the edges of base[from ... to). */
static void touch_moved(struct weave *w, int base, struct mover *m, int from, int to)
{
	int s = pick(w, 4), shift, at;

	w->numbers &= ~(1u << base);
	at = move_by(w, base, m, &shift);
	w->locked |= 1u << at;
	for (int n = 1 + pick(w, 2); n; n--)
		touch(w, at, edge_of(w, m, from, to, 1 << s) - shift, s);
	w->locked &= ~(1u << at);
}

static int base_besides(struct weave *w, int r)
{
	int base;

	do
		base = weave_free(w);
	while (base == r);
	w->numbers &= ~(1u << base);
	return base;
}

static void edge_direct(struct weave *w)
{
	struct mover m;
	int base, map = pick(w, 2) ? GEN_DIRECT : GEN_OUT,
	    size = map == GEN_DIRECT ? GEN_DIRECT_VALUE : GEN_OUT_VALUE, off;

	if (!find_mover(w, &m, size))
		return;
	base = base_besides(w, m.r);
	off = chance(w, 50) ? 0 : pick(w, size);
	put_load64(w, base, BPF_PSEUDO_MAP_VALUE, map, off);
	touch_moved(w, base, &m, -off, size - off);
}

/* Accesses a map's value at its edge. The program looks up the value with a key on the stack. */
static void edge_lookup(struct weave *w)
{
	struct mover m;
	int map = pick(w, 2) ? GEN_ARRAY : GEN_HASH,
	    size = map == GEN_ARRAY ? GEN_ARRAY_VALUE : GEN_HASH_VALUE;
	int n = weave_number(w), keep = 6 + pick(w, 2);

	if (w->locked >> keep & 1)
		return;
	if (chance(w, 60))
		put(w, BPF_ST | BPF_MEM | BPF_DW, 10, 0, KEY, pick(w, 5));
	else
		put(w, BPF_STX | BPF_MEM | BPF_DW, 10, n, KEY, 0);
	put_load64(w, 1, BPF_PSEUDO_MAP_FD, map, 0);
	MOV(2, 10);
	ADD(2, KEY);
	CALL(map_lookup_elem);
	called(w, false);
	if (chance(w, 70))
		put_out(w, BPF_JMP | BPF_JEQ | BPF_K, 0, 0, 0);
	MOV(keep, 0);
	if (chance(w, 30))
		put_out(w, BPF_JMP | BPF_JEQ | BPF_K, chance(w, 80) ? keep : 0, 0, 0);
	w->numbers &= ~(1u << keep);
	w->locked |= 1u << keep;
	if (find_mover(w, &m, size)) {
		int base = base_besides(w, m.r);

		MOV(base, keep);
		touch_moved(w, base, &m, 0, size);
	}
	w->locked &= ~(1u << keep);
}

static void edge_stack(struct weave *w)
{
	struct mover m;
	int base, less = 8 * pick(w, 9), to;

	if (!find_mover(w, &m, 64))
		return;
	for (int i = 0; i < SLOTS; i++)
		if (!(w->slots >> i & 1) && chance(w, 90)) {
			put(w, BPF_ST | BPF_MEM | BPF_DW, 10, 0, -8 * (i + 1),
			    chance(w, 50) ? 0 : weave_imm(w));
			w->slots |= 1u << i;
		}
	base = base_besides(w, m.r);
	MOV(base, 10);
	if (less)
		ADD(base, -less);
	touch_moved(w, base, &m, -64 + less, less);
	/* loads from the stack, so that the program uses what the access has stored */
	to = weave_free(w);
	put(w, BPF_LDX | BPF_MEM | sizes[pick(w, 4)], to, 10, -8 * (1 + pick(w, SLOTS)), 0);
	w->numbers |= 1u << to;
}

/* Compares a pointer into the packet with the packet's end, in one of eight forms. If the pointer
 * is outside, leaves the function. */
static void compare_end(struct weave *w, int p, int end)
{
	static const uint8_t inside[] = { BPF_JLE, BPF_JLT }, outside[] = { BPF_JGT, BPF_JGE };

	switch (pick(w, 4)) {
	case 0:
		put_out(w, BPF_JMP | outside[pick(w, 2)] | BPF_X, p, end, 0);
		break;
	case 1:
		put_out(w, BPF_JMP | inside[pick(w, 2)] | BPF_X, end, p, 0);
		break;
	case 2:
		put(w, BPF_JMP | inside[pick(w, 2)] | BPF_X, p, end, 1, 0);
		put_out(w, BPF_JMP | BPF_JA, 0, 0, 0);
		break;
	default:
		put(w, BPF_JMP | outside[pick(w, 2)] | BPF_X, end, p, 1, 0);
		put_out(w, BPF_JMP | BPF_JA, 0, 0, 0);
	}
}

/* Compares a pointer into the packet with the packet's end. If the pointer is outside, moves it,
 * mostly back. If `number` isn't negative, this is a register with a number. */
static void step_back(struct weave *w, int p, int end, int number)
{
	if (chance(w, 50))
		put(w, BPF_JMP | (chance(w, 50) ? BPF_JLE : BPF_JLT) | BPF_X, p, end, 1, 0);
	else
		put(w, BPF_JMP | (chance(w, 50) ? BPF_JGE : BPF_JGT) | BPF_X, end, p, 1, 0);
	if (number >= 0 && chance(w, 30))
		put(w, BPF_ALU64 | BPF_SUB | BPF_X, p, number, 0, 0);
	else if (chance(w, 50))
		ADD(p, 4 - pick(w, 32));
	else
		put(w, BPF_ALU64 | BPF_SUB | BPF_K, p, 0, 0, pick(w, 32) - 4);
}

/* Calls a helper that moves the beginning or the end of the packet. */
static void move_packet(struct weave *w)
{
	MOV(1, CTX);
	if (w->type == BPF_PROG_TYPE_XDP) {
		static const int fns[] = { BPF_FUNC_xdp_adjust_head, BPF_FUNC_xdp_adjust_tail,
					   BPF_FUNC_xdp_adjust_meta };
		int fn = fns[pick(w, 3)];

		SET(2, fn == BPF_FUNC_xdp_adjust_head ? pick(w, 12) - 4 :
		       fn == BPF_FUNC_xdp_adjust_tail ? -pick(w, 8) : -4 * pick(w, 4));
		put(w, BPF_JMP | BPF_CALL, 0, 0, 0, fn);
	} else {
		SET(2, chance(w, 50) ? 0 : 14 + pick(w, 30));
		SET(3, 0);
		put(w, BPF_JMP | BPF_CALL, 0, 0, 0,
		    chance(w, 70) ? BPF_FUNC_skb_pull_data : BPF_FUNC_skb_change_tail);
	}
	called(w, true);
}

static void edge_packet(struct weave *w)
{
	bool xdp = w->type == BPF_PROG_TYPE_XDP, variable;
	struct mover m = { 0 };
	int data, end, p, known = 1 + pick(w, 24), s = pick(w, 4), from = 0;
	bool meta = chance(w, 15);

	if (!has_packet(w))
		return;
	if (chance(w, 25))
		move_packet(w);
	variable = chance(w, 75) && find_mover(w, &m, 4096);
	if (w->locked >> 6 & 3)
		return;
	data = variable && m.r == 6 ? 7 : 6;
	end = variable && m.r == 5 ? 4 : 5;
	p = variable && m.r == 3 ? 2 : 3;
	w->numbers &= ~(1u << data | 1u << end | 1u << p);
	put(w, BPF_LDX | BPF_MEM | BPF_W, data, CTX,
	    meta ? (xdp ? (int)offsetof(struct xdp_md, data_meta) :
			  (int)offsetof(struct __sk_buff, data_meta)) :
	    xdp ? (int)offsetof(struct xdp_md, data) : (int)offsetof(struct __sk_buff, data), 0);
	put(w, BPF_LDX | BPF_MEM | BPF_W, end, CTX,
	    meta != chance(w, 5) ? (xdp ? (int)offsetof(struct xdp_md, data) :
					  (int)offsetof(struct __sk_buff, data)) :
	    xdp ? (int)offsetof(struct xdp_md, data_end) :
		  (int)offsetof(struct __sk_buff, data_end), 0);
	if (variable) {
		if (chance(w, 30)) {
			from = pick(w, 14);
			ADD(data, from);
		}
		put(w, BPF_ALU64 | BPF_ADD | BPF_X, data, m.r, 0, 0);
	}
	MOV(p, data);
	ADD(p, known);
	if (chance(w, 15))
		put(w, BPF_ALU64 | BPF_ADD | BPF_X, p, weave_number(w), 0, 0);
	if (chance(w, 15))
		step_back(w, p, end, variable ? m.r : -1);
	compare_end(w, p, end);
	if (chance(w, 10))
		move_packet(w);
	w->locked |= 1u << data | 1u << p;
	m.least = m.most = 0;
	if (chance(w, 80))
		touch(w, data, edge_of(w, &m, 0, known + (chance(w, 15) ? 1 : 0), 1 << s), s);
	else
		touch(w, p, -(1 << s) + (chance(w, 20) ? 1 : 0), s);
	w->locked &= ~(1u << data | 1u << p);
}

/* Accesses a slice of `size` bytes. In the program, r0 is the slice's address or NULL. If may_leave
 * is false, no path leaves the function. */
static void touch_slice(struct weave *w, int size, struct mover *m, bool may_leave)
{
	int s = pick(w, 4), base = m->r == 7 ? 6 : 7;

	while (1 << s > size && s)
		s--;
	if (may_leave) {
		put_out(w, BPF_JMP | BPF_JEQ | BPF_K, 0, 0, 0);
		MOV(base, 0);
		w->numbers &= ~(1u << base);
		touch_moved(w, base, m, 0, size);
		return;
	}
	/* if r0 isn't NULL, the program runs: r1 = r0; r1 += m; the access */
	put(w, BPF_JMP | BPF_JEQ | BPF_K, 0, 0, 3, 0);
	MOV(1, 0);
	put(w, BPF_ALU64 | BPF_ADD | BPF_X, 1, m->r, 0, 0);
	if (chance(w, 60))
		put(w, BPF_ST | BPF_MEM | sizes[s], 1, 0, edge_of(w, m, 0, size, 1 << s),
		    weave_imm(w));
	else
		put(w, BPF_LDX | BPF_MEM | sizes[s], 1, 1, edge_of(w, m, 0, size, 1 << s), 0);
}

/* Like find_mover(), but the number is in r6 or r7, so that it survives calls. */
static bool mover_in_kept(struct weave *w, struct mover *m, int64_t room)
{
	if (w->locked >> 6 & 3 || !find_mover(w, m, room))
		return false;
	if (m->r < 6) {
		MOV(6, m->r);
		w->numbers |= 1u << 6;
		m->r = 6;
	}
	return true;
}

/* Accesses a slice of a dynptr at the slice's edge. The dynptr refers to the direct map's value. */
static void edge_dynptr(struct weave *w)
{
	struct mover m;
	int size = 1 + pick(w, GEN_DIRECT_VALUE), off = pick(w, 8);

	if (!mover_in_kept(w, &m, size) || w->in_sub)
		return;
	MOV(1, VALUE);
	if (chance(w, 70)) {
		SET(2, size + (chance(w, 60) ? off : 0));
	} else {
		MOV(2, m.r);
		ADD(2, edge_of(w, &m, 0, GEN_DIRECT_VALUE, 0));
	}
	SET(3, 0);
	MOV(4, 10);
	ADD(4, DYNPTR);
	CALL(dynptr_from_mem);
	called(w, true);
	MOV(1, 10);
	ADD(1, DYNPTR);
	SET(2, off);
	SET(3, size);
	CALL(dynptr_data);
	called(w, false);
	touch_slice(w, size, &m, true);
	if (chance(w, 50)) {
		MOV(1, 10);
		ADD(1, BUFFER);
		MOV(2, m.r);
		ADD(2, edge_of(w, &m, 0, BUFFER_BYTES, 0));
		MOV(3, 10);
		ADD(3, DYNPTR);
		SET(4, pick(w, 8));
		SET(5, 0);
		CALL(dynptr_read);
		called(w, true);
	}
}

/* Accesses a ring buffer's record at its edge. The record is released on all paths. */
static void edge_record(struct weave *w)
{
	struct mover m;
	int size = 1 + pick(w, 64);
	bool dynptr = chance(w, 40);

	if (w->in_sub || !mover_in_kept(w, &m, size))
		return;
	put_load64(w, 1, BPF_PSEUDO_MAP_FD, GEN_RING, 0);
	SET(3, 0);
	if (!dynptr) {
		int s = pick(w, 4);

		while (1 << s > size && s)
			s--;
		SET(2, size);
		CALL(ringbuf_reserve);
		called(w, false);
		put_out(w, BPF_JMP | BPF_JEQ | BPF_K, 0, 0, 0);
		MOV(1, 0);
		put(w, BPF_ALU64 | BPF_ADD | BPF_X, 1, m.r, 0, 0);
		put(w, BPF_ST | BPF_MEM | sizes[s], 1, 0, edge_of(w, &m, 0, size, 1 << s),
		    weave_imm(w));
		MOV(1, 0);
		SET(2, 0);
		put(w, BPF_JMP | BPF_CALL, 0, 0, 0,
		    chance(w, 50) ? BPF_FUNC_ringbuf_submit : BPF_FUNC_ringbuf_discard);
		called(w, false);
		return;
	}
	SET(2, size + pick(w, 5) - 1);
	MOV(4, 10);
	ADD(4, DYNPTR);
	CALL(ringbuf_reserve_dynptr);
	called(w, true);
	MOV(1, 10);
	ADD(1, DYNPTR);
	SET(2, pick(w, 3));
	SET(3, size);
	CALL(dynptr_data);
	called(w, false);
	touch_slice(w, size, &m, false);
	MOV(1, 10);
	ADD(1, DYNPTR);
	SET(2, 0);
	put(w, BPF_JMP | BPF_CALL, 0, 0, 0,
	    chance(w, 50) ? BPF_FUNC_ringbuf_submit_dynptr : BPF_FUNC_ringbuf_discard_dynptr);
	called(w, false);
}

/* Passes a number to a helper as a size. */
static void edge_size(struct weave *w)
{
	bool skb = w->type == BPF_PROG_TYPE_SCHED_CLS || w->type == BPF_PROG_TYPE_SOCKET_FILTER;
	struct mover m;
	int room = chance(w, 50) ? GEN_DIRECT_VALUE : BUFFER_BYTES, off;

	if (!mover_in_kept(w, &m, room) || w->in_sub)
		return;
	if (room == BUFFER_BYTES)
		for (int i = 0; i < BUFFER_BYTES; i += 8)
			put(w, BPF_ST | BPF_MEM | BPF_DW, 10, 0, BUFFER + i, weave_imm(w));
	off = edge_of(w, &m, 0, room, 0);
	MOV(3, room == BUFFER_BYTES ? 10 : VALUE);
	if (room == BUFFER_BYTES)
		ADD(3, BUFFER);
	MOV(4, m.r);
	ADD(4, off);
	if (skb && chance(w, 50)) {
		MOV(1, CTX);
		SET(2, pick(w, 20));
		CALL(skb_load_bytes);
	} else if (w->type == BPF_PROG_TYPE_XDP && chance(w, 50)) {
		MOV(1, CTX);
		SET(2, pick(w, 20));
		put(w, BPF_JMP | BPF_CALL, 0, 0, 0,
		    chance(w, 60) ? BPF_FUNC_xdp_load_bytes : BPF_FUNC_xdp_store_bytes);
	} else {
		MOV(2, 3);
		MOV(3, 4);
		put_load64(w, 1, BPF_PSEUDO_MAP_FD, GEN_RING, 0);
		SET(4, 0);
		CALL(ringbuf_output);
	}
	called(w, true);
}

/* Passes a map's key to a helper. The key's address depends on a number. */
static void edge_key(struct weave *w)
{
	struct mover m;
	int map = pick(w, 2) ? GEN_ARRAY : GEN_HASH, bytes = map == GEN_ARRAY ? 4 : 8;

	if (!mover_in_kept(w, &m, GEN_DIRECT_VALUE) || w->in_sub)
		return;
	MOV(2, VALUE);
	put(w, BPF_ALU64 | BPF_ADD | BPF_X, 2, m.r, 0, 0);
	ADD(2, edge_of(w, &m, 0, GEN_DIRECT_VALUE, bytes));
	put_load64(w, 1, BPF_PSEUDO_MAP_FD, map, 0);
	CALL(map_delete_elem);
	called(w, true);
}

void weave_edge(struct weave *w)
{
	static void (*const edges[])(struct weave *) = {
		edge_direct, edge_direct, edge_direct, edge_lookup, edge_lookup, edge_stack,
		edge_stack, edge_stack, edge_packet, edge_packet, edge_packet, edge_packet,
		edge_dynptr, edge_record, edge_size, edge_key,
	};

	edges[pick(w, sizeof edges / sizeof *edges)](w);
}
