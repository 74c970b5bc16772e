/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * States at rest: the kept ones, and branches that wait. There are up to a hundred
 * thousand, and a state taken apart may have 82 KB, but from one to the next little
 * changes. So a frame at rest is a list of values: what a register or a slot may be,
 * once for all that are the same. A frame in which nothing changed is one frame for
 * all its states.
 *
 * Values and frames at rest never change; they count their users. What is marked later
 * (reads, precision), and where a register came from, is in struct marks, which each
 * state has for itself: 80 bytes a frame.
 */
#include "bpf/verifier/env.h"

#define VALUES_A_BLOCK	120		/* 16 KB */
#define FIRST_BUCKETS	256u
#define STORED		offsetof(struct reg, parent)	/* of a register: what a value is */
#define NOTHING		0		/* the value of a slot that was never written; not counted */

struct value {
	uint32_t users;
	uint32_t next;		/* of the same bucket, or free */
	struct slot is;		/* without its last members: STORED bytes, and types */
};

static struct value *value_at(const struct env *env, uint32_t n)
{
	return &env->values.blocks[n / VALUES_A_BLOCK][n % VALUES_A_BLOCK];
}

const struct slot *value_of(const struct env *env, uint32_t n)
{
	return &value_at(env, n)->is;
}

static uint64_t word(const void *p, size_t n)
{
	uint64_t w;

	memcpy(&w, (const char *)p + 8 * n, 8);
	return w;
}

static bool same(const struct slot *s, const struct reg *r, uint64_t types)
{
	for (size_t n = 0; n < STORED / 8; n++)
		if (word(&s->reg, n) != word(r, n))
			return false;
	return s->reg.frame == r->frame && word(s->type, 0) == types;
}

static uint32_t hash(const struct reg *r, uint64_t types)
{
	uint64_t a = types, b = r->frame;

	for (size_t n = 0; n < STORED / 8; n += 2) {
		a = (a ^ word(r, n)) * 0x9e3779b97f4a7c15;
		b = (b ^ word(r, n + 1)) * 0xc2b2ae3d27d4eb4f;
		a ^= a >> 29;
		b ^= b >> 31;
	}
	a += b * 31;
	return (uint32_t)(a ^ a >> 32);
}
_Static_assert(STORED / 8 % 2 == 0 && STORED % 8 == 4, "hash and same go over words, two at a time, and `frame`");

/* ---- the table of values -------------------------------------------------------------------- */

static bool more_buckets(struct env *env)
{
	struct values *t = &env->values;
	uint32_t nr = t->nr_buckets ? t->nr_buckets * 4 : FIRST_BUCKETS;
	uint32_t *buckets = pool_zero(&env->pool, nr * sizeof *buckets);

	if (!buckets)
		return false;
	for (uint32_t i = 0; i < t->nr_buckets; i++)
		for (uint32_t n = t->buckets[i], next; n; n = next) {
			struct value *v = value_at(env, n);
			uint32_t *b = &buckets[hash(&v->is.reg, word(v->is.type, 0)) % nr];

			next = v->next;
			v->next = *b;
			*b = n;
		}
	pool_put(&env->pool, t->buckets, t->nr_buckets * sizeof *buckets);
	t->buckets = buckets;
	t->nr_buckets = nr;
	return true;
}

static bool more_values(struct env *env)
{
	struct values *t = &env->values;

	if (t->nr_blocks == t->room_blocks) {
		uint32_t room = t->room_blocks * 2 + 16;
		struct value **blocks = pool_get(&env->pool, room * sizeof(*blocks), NULL);

		if (!blocks)
			return false;
		if (t->nr_blocks)
			memcpy(blocks, t->blocks, t->nr_blocks * sizeof(*blocks));
		pool_put(&env->pool, t->blocks, t->room_blocks * sizeof(*blocks));
		t->blocks = blocks;
		t->room_blocks = room;
	}
	t->blocks[t->nr_blocks] = pool_get(&env->pool, VALUES_A_BLOCK * sizeof(struct value), NULL);
	if (!t->blocks[t->nr_blocks])
		return false;
	if (!t->nr_blocks) {
		memset(t->blocks[0], 0, sizeof(struct value));
		t->fresh = NOTHING + 1;
	}
	t->nr_blocks++;
	return true;
}

static uint32_t new_value(struct env *env, const struct reg *r, uint64_t types, uint32_t bucket)
{
	struct values *t = &env->values;
	uint32_t n = t->free;
	struct value *v;

	if (n)
		t->free = value_at(env, n)->next;
	else if (t->fresh < t->nr_blocks * VALUES_A_BLOCK || more_values(env))
		n = t->fresh++;
	else
		return NO_VALUE;
	v = value_at(env, n);
	memcpy(&v->is.reg, r, STORED);
	memset((char *)&v->is.reg + STORED, 0, sizeof v->is.reg - STORED);
	memcpy(v->is.type, &types, SLOT);
	v->users = 1;
	v->next = t->buckets[bucket];
	t->buckets[bucket] = n;
	t->nr++;
	return n;
}

/* The value's number, with one user more. hint: it was that before. */
static uint32_t value_get(struct env *env, const struct reg *r, uint64_t types, uint32_t hint)
{
	struct values *t = &env->values;
	uint32_t bucket;

	if (hint && same(value_of(env, hint), r, types)) {
		value_at(env, hint)->users++;
		return hint;
	}
	if (t->nr >= t->nr_buckets && (!more_buckets(env) || (!t->nr_blocks && !more_values(env))))
		return NO_VALUE;
	if (!types && !r->type && same(value_of(env, NOTHING), r, 0))
		return NOTHING;
	bucket = hash(r, types) % t->nr_buckets;
	for (uint32_t n = t->buckets[bucket]; n; n = value_at(env, n)->next)
		if (same(value_of(env, n), r, types)) {
			value_at(env, n)->users++;
			return n;
		}
	return new_value(env, r, types, bucket);
}

static void value_put(struct env *env, uint32_t n)
{
	struct values *t = &env->values;
	struct value *v = value_at(env, n);
	uint32_t *link;

	if (n == NOTHING || --v->users)
		return;
	for (link = &t->buckets[hash(&v->is.reg, word(v->is.type, 0)) % t->nr_buckets]; *link != n;)
		link = &value_at(env, *link)->next;
	*link = v->next;
	v->next = t->free;
	t->free = n;
	t->nr--;
}

/* ---- frames ------------------------------------------------------------------------------------ */

static size_t rest_size(uint32_t nr_slots)
{
	return sizeof(struct frame) + (11 + nr_slots) * sizeof(uint32_t);
}

static void rest_put(struct env *env, struct frame *k)
{
	if (!k || --k->users)
		return;
	for (uint32_t i = 0; i < 11 + k->nr_slots; i++)
		value_put(env, k->values[i]);
	pool_put(&env->pool, k->refs, k->room_refs * sizeof *k->refs);
	pool_put(&env->pool, k, rest_size(k->room_slots));
}

#define FACTS		offsetof(struct frame, callsite)
#define FACTS_SIZE	(offsetof(struct frame, nr_refs) - FACTS)

/* Apart from values. */
static bool same_rest(const struct frame *k, const struct frame *f)
{
	return k->nr_slots == f->nr_slots && k->nr_refs == f->nr_refs &&
	       !memcmp((const char *)k + FACTS, (const char *)f + FACTS, FACTS_SIZE) &&
	       (!f->nr_refs || !memcmp(k->refs, f->refs, f->nr_refs * sizeof *f->refs));
}

static void mark_reg(struct marks *m, unsigned i, const struct reg *r)
{
	uint16_t bit = (uint16_t)(1u << i);

	m->written |= r->live & LIVE_WRITTEN ? bit : 0;
	m->precise |= r->precise ? bit : 0;
	m->scalar |= r->type == SCALAR ? bit : 0;
	m->parent[i] = r->parent;
}

static void mark_slot(struct marks *m, unsigned i, const struct slot *s)
{
	uint64_t bit = 1ull << i;

	m->written_slots |= s->reg.live & LIVE_WRITTEN ? bit : 0;
	m->precise_slots |= s->reg.precise ? bit : 0;
	m->scalar_slots |= slot_spilled(s) && s->reg.type == SCALAR ? bit : 0;
	m->linked_slots |= s->reg.parent == PLACE_SAME ? bit : 0;
}

/* base: what the frame probably still is; NULL: nobody knows. */
static struct frame *rest_of(struct env *env, const struct frame *f, struct frame *base, struct marks *m)
{
	static const struct reg none;
	uint32_t values[11 + MAX_SLOTS], nr = 11 + f->nr_slots, changed = 0;
	struct frame *k;

	*m = (struct marks){ .nr_slots = (uint8_t)f->nr_slots };
	for (uint32_t i = 0; i < nr; i++) {
		const struct slot *s = i < 11 ? NULL : &f->slots[i - 11];
		uint32_t hint = base && i < 11 + base->nr_slots ? base->values[i] : 0;
		const struct reg *r = s ? &s->reg : &f->regs[i];

		if (s)
			mark_slot(m, i - 11, s);
		else
			mark_reg(m, i, r);
		/* of a slot without a register only the types mean something */
		if (s && !r->type && !slot_spilled(s))
			r = &none;
		values[i] = value_get(env, r, s ? word(s->type, 0) : 0, hint);
		if (values[i] == NO_VALUE)
			return NULL;
		changed |= values[i] ^ hint;
	}
	if (base && !changed && same_rest(base, f)) {
		for (uint32_t i = 0; i < nr; i++)
			value_put(env, values[i]);
		base->users++;
		return base;
	}
	k = pool_get(&env->pool, rest_size(f->nr_slots), NULL);
	if (!k)
		return NULL;
	memset(k, 0, sizeof *k);
	memcpy((char *)k + FACTS, (const char *)f + FACTS, FACTS_SIZE);
	memcpy(k->values, values, nr * sizeof *values);
	k->nr_slots = k->room_slots = f->nr_slots;
	k->users = 1;
	return frame_copy_refs(env, k, f) ? NULL : k;
}

static int wake_frame(struct env *env, struct frame *f, const struct frame *k, const struct marks *m)
{
	memcpy((char *)f + FACTS, (const char *)k + FACTS, FACTS_SIZE);
	f->nr_slots = 0;
	if (frame_room(env, f, k->nr_slots))
		return -ENOMEM;
	f->nr_slots = k->nr_slots;
	for (uint32_t i = 0; i < 11; i++) {
		f->regs[i] = value_of(env, k->values[i])->reg;
		f->regs[i].live = (m->written >> i & 1 ? LIVE_WRITTEN : 0) | (m->read >> i & 1 ? LIVE_READ : 0);
		f->regs[i].precise = m->precise >> i & 1;
		f->regs[i].parent = m->parent[i];
	}
	for (uint32_t i = 0; i < k->nr_slots; i++) {
		f->slots[i] = *value_of(env, k->values[11 + i]);
		f->slots[i].reg.live = (m->written_slots >> i & 1 ? LIVE_WRITTEN : 0) |
				       (m->read_slots >> i & 1 ? LIVE_READ : 0);
		f->slots[i].reg.precise = m->precise_slots >> i & 1;
		f->slots[i].reg.parent = m->linked_slots >> i & 1 ? PLACE_SAME : PLACE_NONE;
	}
	return frame_copy_refs(env, f, k);
}

/* ---- states --------------------------------------------------------------------------------------- */

int state_rest(struct env *env, struct state *rest, const struct state *st)
{
	const struct state *base = st->parent;
	struct step *steps = NULL;

	state_copy_facts(rest, st);
	rest->marks = pool_get(&env->pool, (st->cur + 1) * sizeof *rest->marks, NULL);
	if (st->nr_steps)
		steps = pool_get(&env->pool, st->nr_steps * sizeof *steps, NULL);
	if (!rest->marks || (st->nr_steps && !steps))
		return -ENOMEM;
	if (st->nr_steps)
		memcpy(steps, st->steps, st->nr_steps * sizeof *steps);
	rest->steps = steps;
	rest->nr_steps = rest->room_steps = st->nr_steps;
	for (uint32_t n = 0; n <= st->cur; n++) {
		rest->frames[n] = rest_of(env, st->frames[n], base && n <= base->cur ? base->frames[n] : NULL,
					  &rest->marks[n]);
		if (!rest->frames[n])
			return -ENOMEM;
	}
	return 0;
}

int state_wake(struct env *env, struct state *st, const struct state *rest)
{
	state_copy_facts(st, rest);
	for (uint32_t n = 0; n <= rest->cur; n++) {
		if (!st->frames[n])
			st->frames[n] = frame_blank(env);
		if (!st->frames[n] || wake_frame(env, st->frames[n], rest->frames[n], &rest->marks[n]))
			return -ENOMEM;
	}
	return state_copy_steps(env, st, rest);
}

static void forget_frames(struct env *env, struct state *rest)
{
	for (uint32_t n = 0; n <= rest->cur; n++) {
		rest_put(env, rest->frames[n]);
		rest->frames[n] = NULL;
	}
}

static void forget_steps(struct env *env, struct state *rest)
{
	pool_put(&env->pool, rest->steps, rest->room_steps * sizeof *rest->steps);
	rest->steps = NULL;
	rest->nr_steps = rest->room_steps = 0;
}

void state_forget(struct env *env, struct state *rest)
{
	forget_frames(env, rest);
	forget_steps(env, rest);
	pool_put(&env->pool, rest->marks, (rest->cur + 1) * sizeof *rest->marks);
	rest->marks = NULL;
}

void state_only_marks(struct env *env, struct state *rest)
{
	forget_frames(env, rest);
}

/* Of a frame that no other state has, what wasn't read goes. */
static void trim_frame(struct env *env, struct frame *k, const struct marks *m)
{
	if (!k || k->users > 1)
		return;
	for (uint32_t i = 0; i < 11 + k->nr_slots; i++) {
		if (i < 11 ? m->read >> i & 1 : m->read_slots >> (i - 11) & 1)
			continue;
		value_put(env, k->values[i]);
		k->values[i] = NOTHING;
	}
}

void state_trim(struct env *env, struct state *rest)
{
	/* nobody walks back over it, and only what was read is compared */
	forget_steps(env, rest);
	for (uint32_t n = 0; n <= rest->cur && !rest->whole; n++)
		trim_frame(env, rest->frames[n], &rest->marks[n]);
}
