/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The interpreter of watch.h. It compares each access with the stack frames, the packet, the maps'
 * values and the context. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "bpf/core/probe.h"
#include "bpf/helper/helper.h"
#include "watch.h"
#include "world.h"

#define MAX_STEPS	(1u << 28)	/* bpf_loop may make 8 million iterations */
#define MOST_FRAMES	32
#define TOKEN		(1ull << 63)	/* marks the index of a callback's first instruction */
/* the contents of registers that the program must not read */
#define POISON(w)	(0xdead000000000000ull + (w)->layout)

struct frame {
	char *fp;
	uint32_t size, back;	/* size: in bytes; back: index of the caller's call instruction */
	uint64_t saved[4];	/* the caller's r6 to r9 */
	bool written[512];	/* [i]: the byte at fp - 1 - i was written */
	bool address[512];	/* [i]: the byte at fp - 1 - i is part of an address that a single
				 * store wrote as a whole */
};

struct machine {
	struct watch *w;
	struct frame frames[MOST_FRAMES];
	int top;
	uint64_t r[12];
	uint32_t at, steps;
	bool strict;		/* the program must not read unwritten stack */
	struct area key;	/* the key that the callback of bpf_for_each_map_elem gets */
};

static char memory[2][16384] __attribute__((aligned(4096)));

static bool wrong(struct machine *m, const char *format, ...)
{
	struct watch *w = m->w;
	va_list ap;
	int n = snprintf(w->why, sizeof w->why, "insn %u (resolved %u): ",
			 w->r->origin[m->at], m->at);

	va_start(ap, format);
	vsnprintf(w->why + n, sizeof w->why - (size_t)n, format, ap);
	va_end(ap);
	return false;
}

static bool inside(const struct area *a, uint64_t addr, uint64_t n)
{
	uint64_t at = (uint64_t)a->at;

	return addr >= at && n <= a->size && addr - at <= a->size - n;
}

/* ---- memory that a program may access --------------------------------------------------- */

static bool in_stack(struct machine *m, uint64_t addr, uint64_t n, bool write, bool *good)
{
	for (int i = m->top; i >= 0; i--) {
		struct frame *f = &m->frames[i];
		struct area a = { f->fp - f->size, f->size, true };

		if (!n || !inside(&a, addr, n))
			continue;
		*good = true;
		for (uint64_t b = 0; b < n; b++) {
			bool *written = &f->written[(uint64_t)f->fp - 1 - (addr + b)];

			if (write)
				*written = true;
			else if (!*written && !m->strict)
				m->w->vague = true;
			else if (!*written)
				*good = wrong(m, "reads fp%ld, which nobody wrote",
					      (long)(addr + b - (uint64_t)f->fp));
		}
		return true;
	}
	return false;
}

static bool field_has(const struct pb_bpf_field *f, uint64_t off, uint64_t n, bool write)
{
	unsigned need = write ? PB_BPF_FIELD_WRITE | PB_BPF_FIELD_WRITE_PRIV :
			PB_BPF_FIELD_READ | PB_BPF_FIELD_READ_PRIV;
	uint64_t size = f->kind != PB_BPF_FIELD_SCALAR ? 8 : f->size;

	return f->flags & need && off >= f->at && off + n <= f->at + size;
}

static bool in_context(struct machine *m, uint64_t addr, uint64_t n, bool write)
{
	const struct pb_bpf_type *t = m->w->v->type;
	uint64_t off = addr - (uint64_t)world_ctx();

	if (m->w->v->facts->insns[m->w->r->origin[m->at]].access != PB_BPF_ACCESS_CTX)
		return false;
	for (uint32_t i = 0; i < t->nr_fields; i++)
		if (field_has(&t->fields[i], off, n, write))
			return true;
	return !t->nr_fields && !write && off >= t->any_from && off + n <= t->ctx_size;
}

static bool check(struct machine *m, uint64_t addr, uint64_t n, bool write)
{
	struct area values[WORLD_MOST_AREAS], packet = world_packet();
	int nr = world_values(values);
	bool good = true;

	if (in_stack(m, addr, n, write, &good))
		return good;
	if (inside(&packet, addr, n))
		return !write || packet.writable || wrong(m, "writes the packet");
	for (int i = 0; i < nr; i++)
		if (inside(&values[i], addr, n))
			return true;
	if (m->key.at && inside(&m->key, addr, n))
		return !write || wrong(m, "writes a key");
	if (in_context(m, addr, n, write))
		return true;
	return wrong(m, "%s %lu bytes at %#lx (fp %p, context %p, packet %p + %u)",
		     write ? "writes" : "reads", (unsigned long)n, (unsigned long)addr,
		     (void *)m->frames[m->top].fp, world_ctx(), (void *)packet.at, packet.size);
}

/* ---- arithmetic ------------------------------------------------------------------------------ */

static uint64_t divide(uint64_t d, uint64_t s, bool wide, bool sign, bool mod)
{
	if (!s)
		return mod ? d : 0;
	if (!sign)
		return mod ? d % s : d / s;
	if (wide)
		return (int64_t)s == -1 ? mod ? 0 : -d :
		       (uint64_t)(mod ? (int64_t)d % (int64_t)s : (int64_t)d / (int64_t)s);
	return (int32_t)s == -1 ? mod ? 0 : -d :
	       (uint64_t)(mod ? (int32_t)d % (int32_t)s : (int32_t)d / (int32_t)s);
}

static uint64_t compute(const struct bpf_insn *i, uint64_t d, uint64_t s)
{
	bool wide = BPF_CLASS(i->code) == BPF_ALU64;
	unsigned op = BPF_OP(i->code), by = (unsigned)s & (wide ? 63 : 31);

	if (!wide) {
		d = (uint32_t)d;
		s = (uint32_t)s;
	}
	switch (op) {
	case BPF_ADD: d += s; break;
	case BPF_SUB: d -= s; break;
	case BPF_MUL: d *= s; break;
	case BPF_DIV: case BPF_MOD: d = divide(d, s, wide, i->off, op == BPF_MOD); break;
	case BPF_OR: d |= s; break;
	case BPF_AND: d &= s; break;
	case BPF_XOR: d ^= s; break;
	case BPF_LSH: d <<= by; break;
	case BPF_RSH: d >>= by; break;
	case BPF_ARSH:
		d = wide ? (uint64_t)((int64_t)d >> by) : (uint64_t)((int32_t)d >> by);
		break;
	case BPF_NEG: d = -d; break;
	default: d = s;
	}
	return wide ? d : (uint32_t)d;
}

static uint64_t extend(uint64_t v, int bytes)
{
	return (uint64_t)((int64_t)(v << (64 - bytes * 8)) >> (64 - bytes * 8));
}

static uint64_t swap(const struct bpf_insn *i, uint64_t v, int bytes)
{
	uint64_t low = bytes < 8 ? v & ((1ull << bytes * 8) - 1) : v;

	if (BPF_CLASS(i->code) == BPF_ALU && !(i->code & BPF_TO_BE))
		return low;
	return __builtin_bswap64(low) >> (64 - bytes * 8);
}

static bool holds(unsigned code, uint64_t d, uint64_t s)
{
	int64_t sd = (int64_t)d, ss = (int64_t)s;

	if (BPF_CLASS(code) == BPF_JMP32) {
		d = (uint32_t)d;
		s = (uint32_t)s;
		sd = (int32_t)d;
		ss = (int32_t)s;
	}
	switch (BPF_OP(code)) {
	case BPF_JEQ: return d == s;
	case BPF_JNE: return d != s;
	case BPF_JGT: return d > s;
	case BPF_JGE: return d >= s;
	case BPF_JLT: return d < s;
	case BPF_JLE: return d <= s;
	case BPF_JSGT: return sd > ss;
	case BPF_JSGE: return sd >= ss;
	case BPF_JSLT: return sd < ss;
	case BPF_JSLE: return sd <= ss;
	default: return d & s;
	}
}

/* ---- memory ---------------------------------------------------------------------------------- */

static uint64_t fetch(uint64_t addr, int n)
{
	uint64_t v = 0;

	memcpy(&v, (void *)addr, (size_t)n);
	return v;
}

static bool like_address(const struct machine *m, uint64_t v);

static bool atomic(struct machine *m, const struct bpf_insn *i, int n)
{
	uint64_t addr = m->r[i->dst_reg] + (uint64_t)(int64_t)i->off, old, new,
		 src = m->r[i->src_reg];

	if (!check(m, addr, (uint64_t)n, false) || !check(m, addr, (uint64_t)n, true))
		return false;
	if (addr % (uint64_t)n)
		return wrong(m, "an atomic access that isn't aligned");
	/* a bit of an address may be the same in all layouts, but differ in a real run */
	m->w->vague |= like_address(m, src);
	new = old = fetch(addr, n);
	switch (i->imm & ~BPF_FETCH) {
	case BPF_ADD: new += src; break;
	case BPF_OR: new |= src; break;
	case BPF_AND: new &= src; break;
	case BPF_XOR: new ^= src; break;
	case BPF_XCHG & ~BPF_FETCH: new = src; break;
	default:
		new = old == (n == 4 ? (uint32_t)m->r[0] : m->r[0]) ? src : old;
		m->r[0] = old;
	}
	memcpy((void *)addr, &new, (size_t)n);
	if (i->imm & BPF_FETCH && i->imm != BPF_CMPXCHG)
		m->r[i->src_reg] = old;
	return true;
}

/* ---- calls ----------------------------------------------------------------------------------- */

static bool run_from(struct machine *m, uint32_t at, int bottom);

static uint32_t size_of_sub(const struct machine *m, uint32_t at)
{
	const struct pb_bpf_prog_spec *s = &m->w->r->spec;

	for (uint32_t i = s->nr_subs; i-- > 0; )
		if (s->subs[i].start <= at)
			return s->subs[i].stack;
	abort();
}

static bool push(struct machine *m, uint32_t at, uint32_t back)
{
	struct frame *f = &m->frames[m->top + 1], *caller = &m->frames[m->top];

	if (m->top + 1 == MOST_FRAMES)
		return wrong(m, "too many frames");
	f->fp = caller->fp - caller->size;
	f->size = size_of_sub(m, at);
	f->back = back;
	memset(f->written, 0, sizeof f->written);
	memset(f->address, 0, sizeof f->address);
	memcpy(f->saved, m->r + 6, sizeof f->saved);
	m->r[10] = (uint64_t)f->fp;
	m->top++;
	return true;
}

static void pop(struct machine *m)
{
	m->top--;
	memcpy(m->r + 6, m->frames[m->top + 1].saved, sizeof m->frames[0].saved);
	m->r[10] = (uint64_t)m->frames[m->top].fp;
	for (int i = 1; i <= 5; i++)
		m->r[i] = POISON(m->w);
}

/* Runs a callback. Its result is in r0. */
static bool call_back(struct machine *m, uint64_t func, const uint64_t *args)
{
	uint32_t at = m->at;

	if (!(func & TOKEN) || !push(m, (uint32_t)func, 0))
		return wrong(m, "calls %#lx back", (unsigned long)func);
	memcpy(m->r + 1, args, 5 * sizeof *args);
	for (int i = 6; i < 10; i++)
		m->r[i] = POISON(m->w);
	if (!run_from(m, (uint32_t)func, m->top))
		return false;
	m->at = at;
	return true;
}

static bool loop(struct machine *m)
{
	uint64_t nr = (uint32_t)m->r[1], func = m->r[2], arg = m->r[3], n = 0;

	/* if Linux inlines the loop, it compares the whole register; the helper compares only the
	 * low half */
	m->w->vague |= nr != m->r[1];
	if (m->r[4] || nr > 8 << 20) {
		m->r[0] = m->r[4] ? (uint64_t)-22 : (uint64_t)-7;
		/* if Linux inlines the loop, the upper half of -E2BIG is 0 */
		m->w->vague |= !m->r[4];
		return true;
	}
	while (n < nr) {
		if (!call_back(m, func, (uint64_t[5]){ n, arg }))
			return false;
		n++;
		if (m->r[0])
			break;
	}
	m->r[0] = n;
	return true;
}

struct walk {
	struct machine *m;
	uint64_t func, arg;
	bool good;
};

static int64_t walk_one(void *arg, struct pb_bpf_map *map, const void *key, void *value)
{
	struct walk *w = arg;

	w->m->key = (struct area){ (char *)key, map->attr.key_size, false };
	w->good = w->good &&
		  call_back(w->m, w->func, (uint64_t[5]){ (uint64_t)map, (uint64_t)key,
							  (uint64_t)value, w->arg });
	w->m->key.at = NULL;
	return !w->good || w->m->r[0];
}

static bool walk(struct machine *m)
{
	struct pb_bpf_map *map = (struct pb_bpf_map *)m->r[1];
	struct walk w = { m, m->r[2], m->r[3], true };

	if (m->r[4]) {
		m->r[0] = (uint64_t)-22;
		return true;
	}
	m->r[0] = (uint64_t)map->ops->each(map, walk_one, &w, m->w->run);
	return w.good;
}

static bool is_map(const struct pb_bpf_map *map)
{
	for (int i = 0; i < GEN_MAPS; i++)
		if (world_maps[i] == map)
			return true;
	return false;
}

static bool check_arg(struct machine *m, const struct pb_bpf_helper *h, int n, uint64_t arg)
{
	const struct pb_bpf_map *map = (const struct pb_bpf_map *)m->r[1];
	uint64_t v = m->r[n + 1], size;
	bool write = arg & PB_BPF_MEM_WRITE;

	if (arg & PB_BPF_MAYBE_NULL && !v)
		return true;
	switch (arg & PB_BPF_ARG_BASE) {
	case PB_BPF_ARG_CONST_MAP_PTR:
		return is_map((void *)v) || wrong(m, "%s: r%d is no map", h->name, n + 1);
	case PB_BPF_ARG_PTR_TO_CTX:
		return v == (uint64_t)world_ctx() ||
		       wrong(m, "%s: r%d isn't the context", h->name, n + 1);
	case PB_BPF_ARG_PTR_TO_MAP_KEY:
		return check(m, v, map->attr.key_size, false);
	case PB_BPF_ARG_PTR_TO_MAP_VALUE:
		return check(m, v, map->attr.value_size, write);
	case PB_BPF_ARG_PTR_TO_MEM:
		size = arg & PB_BPF_FIXED_SIZE ? h->size[n] : m->r[n + 2];
		if (arg & PB_BPF_MEM_ALIGNED && v % size)
			return wrong(m, "%s: r%d isn't aligned to %d", h->name, n + 1, (int)size);
		return !size || check(m, v, size, write);
	default:
		return true;
	}
}

static bool check_stack(struct machine *m, uint64_t addr)
{
	bool good = true;

	/* checked like a write, because bpf_iter_num_new makes the first write to the iterator */
	return in_stack(m, addr, 8, true, &good) || wrong(m, "an iterator that isn't on the stack");
}

static bool call(struct machine *m, const struct bpf_insn *i)
{
	const struct pb_bpf_verify *v = m->w->v;
	const struct bpf_insn *from = &v->insns[m->w->r->origin[m->at]];
	bool helper = pb_bpf_ops[pb_bpf_decode(from)].form == PB_BPF_CALL_HELPER;
	const struct pb_bpf_helper *h = helper ?
		pb_bpf_helper_for(v->type, v->attach_type, v->caps, (uint32_t)from->imm) : NULL;
	uint64_t *r = m->r;
	bool good = true;

	if (BPF_CLASS(from->code) == BPF_LD && r[1] != (uint64_t)world_ctx())
		return wrong(m, "reads a packet without its context");
	/* the argument of an iterator's function is the address of an iterator on the stack */
	if (BPF_CLASS(from->code) == BPF_JMP && !helper && !check_stack(m, r[1]))
		return false;
	for (int n = 0; h && n < 5; n++)
		if (!check_arg(m, h, n, h->arg[n]))
			return false;
	if (h && from->imm == BPF_FUNC_loop)
		good = loop(m);
	else if (h && from->imm == BPF_FUNC_for_each_map_elem)
		good = walk(m);
	else
		r[0] = m->w->r->spec.calls[i->imm](r[1], r[2], r[3], r[4], r[5], m->w->run);
	if (h && h->flags & PB_BPF_HELPER_MOVES_PKT)
		world_move_packet();
	for (int n = 1; n <= 5; n++)
		r[n] = POISON(m->w);
	return good;
}

/* Returns whether v is near an object whose address differs between runs. */
static bool like_address(const struct machine *m, uint64_t v)
{
	const uint64_t near = 1 << 20,
		       places[] = { m->r[10], (uint64_t)world_packet().at, (uint64_t)world_ctx() };

	for (size_t i = 0; i < sizeof places / sizeof *places; i++)
		if (places[i] && v - places[i] + near < 2 * near)
			return true;
	for (int i = 0; i < GEN_MAPS; i++)
		if (world_element(i, 0) && v - (uint64_t)world_element(i, 0) + near < 2 * near)
			return true;
	return false;
}

static bool in_packet(uint64_t v)
{
	struct area p = world_packet();

	return p.size && v - (uint64_t)p.at <= p.size + 0xffff;
}

/* Returns whether v looks like the low half of an address. A 32-bit move or a sign extension makes
 * such a number. If the low half of an address is near 0, the result is false, because v may be any
 * small number. */
static bool like_half(const struct machine *m, uint64_t v)
{
	const uint32_t near = 1 << 20, small = 1 << 24,
		       places[] = { (uint32_t)m->r[10], (uint32_t)(uint64_t)world_ctx() };

	if (v != (uint32_t)v && v != (uint64_t)(int64_t)(int32_t)v)
		return false;
	for (size_t i = 0; i < sizeof places / sizeof *places; i++)
		if (places[i] + small >= 2 * small && (uint32_t)v - places[i] + near < 2 * near)
			return true;
	return false;
}

/* If a comparison depends on an address, the jump may differ in another run. Comparisons of two
 * addresses in the packet are an exception. */
static void note_comparison(struct machine *m, unsigned code, uint64_t a, uint64_t b)
{
	unsigned op = BPF_OP(code);
	bool sign = op == BPF_JSGT || op == BPF_JSGE || op == BPF_JSLT || op == BPF_JSLE;

	if ((like_address(m, a) && (b || sign)) || (like_address(m, b) && (a || sign)))
		m->w->vague |= !(in_packet(a) && in_packet(b));
	m->w->vague |= like_half(m, a) || like_half(m, b);
}

/* ---- the instructions ------------------------------------------------------------------------ */

/* Records addresses that are stored on the stack. If a load reads only a part of an address, its
 * result differs between runs. */
static void note_stack(struct machine *m, uint64_t addr, int n, bool load, uint64_t v)
{
	for (int i = m->top; i >= 0; i--) {
		struct frame *f = &m->frames[i];
		struct area a = { f->fp - f->size, f->size, true };
		int parts = 0;

		if (!inside(&a, addr, (uint64_t)n))
			continue;
		for (int b = 0; b < n; b++) {
			bool *address = &f->address[(uint64_t)f->fp - 1 - (addr + (uint64_t)b)];

			parts += *address;
			if (!load)
				*address = n == 8 && like_address(m, v);
		}
		m->w->vague |= load && parts && !(n == 8 && like_address(m, v));
		return;
	}
}

static bool step_memory(struct machine *m, const struct bpf_insn *i, const struct pb_bpf_opinfo *o)
{
	bool load = o->form == PB_BPF_LDX || o->form == PB_BPF_LDSX;
	uint64_t addr = m->r[load ? i->src_reg : i->dst_reg] + (uint64_t)(int64_t)i->off, v;

	if (!check(m, addr, o->width, !load))
		return false;
	if (load) {
		v = fetch(addr, o->width);
		note_stack(m, addr, o->width, true, v);
		m->r[i->dst_reg] = o->form == PB_BPF_LDSX ? extend(v, o->width) : v;
	} else {
		v = o->form == PB_BPF_ST ? (uint64_t)(int64_t)i->imm : m->r[i->src_reg];
		memcpy((void *)addr, &v, o->width);
		note_stack(m, addr, o->width, false, v);
	}
	return true;
}

static bool step_probe(struct machine *m, const struct bpf_insn *i, unsigned op)
{
	uint64_t addr = m->r[i->src_reg] + (uint64_t)(int64_t)i->off;

	switch (op) {
	case PB_BPF_OP_PROBE_B: m->r[i->dst_reg] = pb_bpf_probe_B(addr); break;
	case PB_BPF_OP_PROBE_H: m->r[i->dst_reg] = pb_bpf_probe_H(addr); break;
	case PB_BPF_OP_PROBE_W: m->r[i->dst_reg] = pb_bpf_probe_W(addr); break;
	case PB_BPF_OP_PROBE_DW: m->r[i->dst_reg] = pb_bpf_probe_DW(addr); break;
	case PB_BPF_OP_PROBE_SB: m->r[i->dst_reg] = extend(pb_bpf_probe_B(addr), 1); break;
	case PB_BPF_OP_PROBE_SH: m->r[i->dst_reg] = extend(pb_bpf_probe_H(addr), 2); break;
	case PB_BPF_OP_PROBE_SW: m->r[i->dst_reg] = extend(pb_bpf_probe_W(addr), 4); break;
	case PB_BPF_OP_TAIL_CALL:
		if (!is_map((void *)m->r[2]) || m->r[1] != (uint64_t)world_ctx())
			return wrong(m, "a tail call of something else");
		break;	/* the program array is empty, so the tail call does nothing */
	}
	return true;
}

static void step_load64(struct machine *m, const struct bpf_insn *i)
{
	m->r[i->dst_reg] = i->src_reg == BPF_PSEUDO_FUNC ?
			   TOKEN | (m->at + 1 + (uint64_t)(int64_t)i->imm) :
			   (uint64_t)(uint32_t)i[1].imm << 32 | (uint32_t)i->imm;
	m->at++;
}

static bool step(struct machine *m, const struct bpf_insn *i, const struct pb_bpf_opinfo *o)
{
	uint64_t *dst = &m->r[i->dst_reg], src = m->r[i->src_reg], imm = (uint64_t)(int64_t)i->imm;

	switch (o->form) {
	case PB_BPF_ALU_K: case PB_BPF_NEG:
		*dst = compute(i, *dst, imm);
		return true;
	case PB_BPF_ALU_X:
		*dst = compute(i, *dst, src);
		return true;
	case PB_BPF_MOVSX:
		*dst = BPF_CLASS(i->code) == BPF_ALU64 ? extend(src, o->width) :
		       (uint32_t)extend(src, o->width);
		return true;
	case PB_BPF_END:
		*dst = swap(i, *dst, o->width);
		return true;
	case PB_BPF_LD64:
		step_load64(m, i);
		return true;
	case PB_BPF_LDX: case PB_BPF_LDSX: case PB_BPF_ST: case PB_BPF_STX:
		return step_memory(m, i, o);
	case PB_BPF_ATOMIC: case PB_BPF_FETCH: case PB_BPF_XCHANGE: case PB_BPF_COMPARE:
		return atomic(m, i, o->width);
	case PB_BPF_GOTO:
		m->at += (uint32_t)(int32_t)i->off;
		return true;
	case PB_BPF_GOTOL:
		m->at += (uint32_t)i->imm;
		return true;
	case PB_BPF_IF_K: case PB_BPF_IF_X:
		note_comparison(m, i->code, *dst, o->form == PB_BPF_IF_K ? imm : src);
		if (holds(i->code, *dst, o->form == PB_BPF_IF_K ? imm : src))
			m->at += (uint32_t)(int32_t)i->off;
		return true;
	case PB_BPF_CALL_HELPER:
		return call(m, i);
	case PB_BPF_CALL_PC:
		if (!push(m, m->at + 1 + (uint32_t)i->imm, m->at))
			return false;
		m->at += (uint32_t)i->imm;
		return true;
	default:
		return wrong(m, "no instruction");
	}
}

/* Runs the program until the frame `bottom` returns. */
static bool run_from(struct machine *m, uint32_t at, int bottom)
{
	const struct pb_bpf_prog_spec *s = &m->w->r->spec;

	for (m->at = at; ; m->at++) {
		const struct bpf_insn *i = &s->insns[m->at];

		m->w->endless = m->steps++ > (m->w->most_steps ? m->w->most_steps : MAX_STEPS);
		if (m->at >= s->nr || m->w->endless)
			return wrong(m, m->at >= s->nr ? "outside the program" : "doesn't end");
		if (m->w->look &&
		    (!m->at || m->w->r->origin[m->at - 1] != m->w->r->origin[m->at]) &&
		    !m->w->look(m->w, m, m->w->r->origin[m->at]))
			return false;
		if (s->ops[m->at] >= PB_BPF_NR_OPS) {
			if (!step_probe(m, i, s->ops[m->at]))
				return false;
		} else if (pb_bpf_ops[s->ops[m->at]].form == PB_BPF_RETURN) {
			bool last = m->top == bottom;

			m->at = m->frames[m->top].back;
			if (m->top)
				pop(m);
			if (last)
				return true;
		} else if (!step(m, i, &pb_bpf_ops[s->ops[m->at]])) {
			return false;
		}
	}
}

int watch_frame(const struct machine *m)
{
	return m->top;
}

uint64_t watch_reg(const struct machine *m, int frame, int reg)
{
	return frame == m->top ? m->r[reg] :
	       reg == 10 ? (uint64_t)m->frames[frame].fp : m->frames[frame + 1].saved[reg - 6];
}

bool watch_run(struct watch *w)
{
	static struct machine m;
	char *stack = memory[w->layout & 1];

	m.w = w;
	m.top = 0;
	m.steps = 0;
	m.key.at = NULL;
	w->vague = w->endless = false;
	m.strict = !(w->v->caps & PB_BPF_CAP_PERFMON);
	memset(stack, 0x11 + 0x66 * (int)(w->layout & 1), sizeof memory[0]);
	memset(&m.frames[0], 0, sizeof m.frames[0]);
	/* with layout 0, 1, 2 ..., fp is 4088, 2912, 1736 ... bytes before the end */
	m.frames[0].fp = stack + sizeof memory[0] - ((511 + w->layout * 365) & 511) * 8;
	m.frames[0].size = size_of_sub(&m, 0);
	for (int i = 0; i < 12; i++)
		m.r[i] = POISON(w);
	m.r[1] = (uint64_t)world_ctx();
	m.r[10] = (uint64_t)m.frames[0].fp;
	if (!run_from(&m, 0, 0))
		return false;
	w->r0 = m.r[0];
	return true;
}
