/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The calls of the interpreter of watch.h: subprograms, callbacks and helpers. The description of a
 * helper says which of its arguments point to memory. Before the call, watch_call() checks that the
 * program may access this memory. Helpers that call back (bpf_loop, bpf_for_each_map_elem) are
 * implemented here, so their callbacks run on the interpreter, too.
 */
#include <stdlib.h>
#include <string.h>
#include "bpf/helper/helper.h"
#include "watch_priv.h"

uint32_t watch_stack_of_sub(const struct machine *m, uint32_t at)
{
	const struct pb_bpf_prog_spec *s = &m->w->r->spec;

	for (uint32_t i = s->nr_subs; i-- > 0; )
		if (s->subs[i].start <= at)
			return s->subs[i].stack;
	abort();
}

bool watch_push(struct machine *m, uint32_t at, uint32_t back)
{
	struct frame *f = &m->frames[m->top + 1], *caller = &m->frames[m->top];

	if (m->top + 1 == MOST_FRAMES)
		return watch_wrong(m, "too many frames");
	f->fp = caller->fp - caller->size;
	f->size = watch_stack_of_sub(m, at);
	f->back = back;
	memset(f->written, 0, sizeof f->written);
	memset(f->address, 0, sizeof f->address);
	memcpy(f->saved, m->r + 6, sizeof f->saved);
	m->r[10] = (uint64_t)f->fp;
	m->top++;
	return true;
}

void watch_pop(struct machine *m)
{
	m->top--;
	memcpy(m->r + 6, m->frames[m->top + 1].saved, sizeof m->frames[0].saved);
	m->r[10] = (uint64_t)m->frames[m->top].fp;
	for (int i = 1; i <= 5; i++)
		m->r[i] = POISON(m->w);
}

/* Runs a callback. The callback's result is in r0. */
static bool call_back(struct machine *m, uint64_t func, const uint64_t *args)
{
	uint32_t at = m->at;

	if (!(func & TOKEN) || !watch_push(m, (uint32_t)func, 0))
		return watch_wrong(m, "calls %#lx back", (unsigned long)func);
	memcpy(m->r + 1, args, 5 * sizeof *args);
	for (int i = 6; i < 10; i++)
		m->r[i] = POISON(m->w);
	if (!watch_run_from(m, (uint32_t)func, m->top))
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

bool watch_is_map(const struct pb_bpf_map *map)
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
		return watch_is_map((void *)v) ||
		       watch_wrong(m, "%s: r%d is no map", h->name, n + 1);
	case PB_BPF_ARG_PTR_TO_CTX:
		return v == (uint64_t)world_ctx() ||
		       watch_wrong(m, "%s: r%d isn't the context", h->name, n + 1);
	case PB_BPF_ARG_PTR_TO_MAP_KEY:
		return watch_check(m, v, map->attr.key_size, false);
	case PB_BPF_ARG_PTR_TO_MAP_VALUE:
		return watch_check(m, v, map->attr.value_size, write);
	case PB_BPF_ARG_PTR_TO_MEM:
		size = arg & PB_BPF_FIXED_SIZE ? h->size[n] : m->r[n + 2];
		if (arg & PB_BPF_MEM_ALIGNED && v % size)
			return watch_wrong(m, "%s: r%d isn't aligned to %d", h->name, n + 1,
					   (int)size);
		return !size || watch_check(m, v, size, write);
	default:
		return true;
	}
}

static bool check_stack(struct machine *m, uint64_t addr)
{
	bool good = true;

	/* checked like a write, because bpf_iter_num_new makes the first write to the iterator */
	return watch_in_stack(m, addr, 8, true, &good) ||
	       watch_wrong(m, "an iterator that isn't on the stack");
}

bool watch_call(struct machine *m, const struct bpf_insn *i)
{
	const struct pb_bpf_verify *v = m->w->v;
	const struct bpf_insn *from = &v->insns[m->w->r->origin[m->at]];
	bool helper = pb_bpf_ops[pb_bpf_decode(from)].form == PB_BPF_CALL_HELPER;
	const struct pb_bpf_helper *h = helper ?
		pb_bpf_helper_for(v->type, v->attach_type, v->caps, (uint32_t)from->imm) : NULL;
	uint64_t *r = m->r;
	bool good = true;

	if (BPF_CLASS(from->code) == BPF_LD && r[1] != (uint64_t)world_ctx())
		return watch_wrong(m, "reads a packet without its context");
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
