/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The interpreter of watch.h. It checks that each access is inside a stack frame, the packet, a
 * map's value or the context. It notes when a result depends on addresses, because such a result
 * may differ between runs.
 */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include "bpf/core/probe.h"
#include "watch_priv.h"

#define MAX_STEPS	(1u << 28)	/* bpf_loop may make 8 million iterations */

static char memory[2][16384] __attribute__((aligned(4096)));

bool watch_wrong(struct machine *m, const char *format, ...)
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

bool watch_in_stack(struct machine *m, uint64_t addr, uint64_t n, bool write, bool *good)
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
				*good = watch_wrong(m, "reads fp%ld, which nobody wrote",
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

bool watch_check(struct machine *m, uint64_t addr, uint64_t n, bool write)
{
	struct area values[WORLD_MOST_AREAS], packet = world_packet();
	int nr = world_values(values);
	bool good = true;

	if (watch_in_stack(m, addr, n, write, &good))
		return good;
	if (inside(&packet, addr, n))
		return !write || packet.writable || watch_wrong(m, "writes the packet");
	for (int i = 0; i < nr; i++)
		if (inside(&values[i], addr, n))
			return true;
	if (m->key.at && inside(&m->key, addr, n))
		return !write || watch_wrong(m, "writes a key");
	if (in_context(m, addr, n, write))
		return true;
	return watch_wrong(m, "%s %lu bytes at %#lx (fp %p, context %p, packet %p + %u)",
			   write ? "writes" : "reads", (unsigned long)n, (unsigned long)addr,
			   (void *)m->frames[m->top].fp, world_ctx(), (void *)packet.at,
			   packet.size);
}

/* ---- results that may differ between runs --------------------------------------------------- */

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

/* ---- memory ---------------------------------------------------------------------------------- */

static uint64_t fetch(uint64_t addr, int n)
{
	uint64_t v = 0;

	memcpy(&v, (void *)addr, (size_t)n);
	return v;
}

static bool atomic(struct machine *m, const struct bpf_insn *i, int n)
{
	uint64_t addr = m->r[i->dst_reg] + (uint64_t)(int64_t)i->off, old, new,
		 src = m->r[i->src_reg];

	if (!watch_check(m, addr, (uint64_t)n, false) || !watch_check(m, addr, (uint64_t)n, true))
		return false;
	if (addr % (uint64_t)n)
		return watch_wrong(m, "an atomic access that isn't aligned");
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

/* ---- the instructions ------------------------------------------------------------------------ */

/* Records addresses that are stored on the stack. If a load reads only a part of an address, the
 * loaded value differs between runs. */
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

	if (!watch_check(m, addr, o->width, !load))
		return false;
	if (load) {
		v = fetch(addr, o->width);
		note_stack(m, addr, o->width, true, v);
		m->r[i->dst_reg] = o->form == PB_BPF_LDSX ? watch_extend(v, o->width) : v;
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
	case PB_BPF_OP_PROBE_SB: m->r[i->dst_reg] = watch_extend(pb_bpf_probe_B(addr), 1); break;
	case PB_BPF_OP_PROBE_SH: m->r[i->dst_reg] = watch_extend(pb_bpf_probe_H(addr), 2); break;
	case PB_BPF_OP_PROBE_SW: m->r[i->dst_reg] = watch_extend(pb_bpf_probe_W(addr), 4); break;
	case PB_BPF_OP_TAIL_CALL:
		if (!watch_is_map((void *)m->r[2]) || m->r[1] != (uint64_t)world_ctx())
			return watch_wrong(m, "a tail call whose r1 isn't the context, or whose "
					   "r2 isn't a map");
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
		*dst = watch_compute(i, *dst, imm);
		return true;
	case PB_BPF_ALU_X:
		*dst = watch_compute(i, *dst, src);
		return true;
	case PB_BPF_MOVSX:
		*dst = BPF_CLASS(i->code) == BPF_ALU64 ? watch_extend(src, o->width) :
		       (uint32_t)watch_extend(src, o->width);
		return true;
	case PB_BPF_END:
		*dst = watch_swap(i, *dst, o->width);
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
		if (watch_holds(i->code, *dst, o->form == PB_BPF_IF_K ? imm : src))
			m->at += (uint32_t)(int32_t)i->off;
		return true;
	case PB_BPF_CALL_HELPER:
		return watch_call(m, i);
	case PB_BPF_CALL_PC:
		if (!watch_push(m, m->at + 1 + (uint32_t)i->imm, m->at))
			return false;
		m->at += (uint32_t)i->imm;
		return true;
	default:
		return watch_wrong(m, "no instruction");
	}
}

bool watch_run_from(struct machine *m, uint32_t at, int bottom)
{
	const struct pb_bpf_prog_spec *s = &m->w->r->spec;

	for (m->at = at; ; m->at++) {
		const struct bpf_insn *i = &s->insns[m->at];

		m->w->endless = m->steps++ > (m->w->most_steps ? m->w->most_steps : MAX_STEPS);
		if (m->at >= s->nr || m->w->endless)
			return watch_wrong(m, m->at >= s->nr ?
					      "outside the program" : "doesn't end");
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
				watch_pop(m);
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
	/* with layout 0, 1, 2 ..., fp is 4088, 2912, 1736 ... bytes before the end of the memory */
	m.frames[0].fp = stack + sizeof memory[0] - ((511 + w->layout * 365) & 511) * 8;
	m.frames[0].size = watch_stack_of_sub(&m, 0);
	for (int i = 0; i < 12; i++)
		m.r[i] = POISON(w);
	m.r[1] = (uint64_t)world_ctx();
	m.r[10] = (uint64_t)m.frames[0].fp;
	if (!watch_run_from(&m, 0, 0))
		return false;
	w->r0 = m.r[0];
	return true;
}
