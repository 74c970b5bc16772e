/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * States at rest: kept states, and waiting branches except the newest. There may be a hundred
 * thousand such states, and an unpacked state may take 77 KB. But little changes from one state to
 * the next, so states at rest share what didn't change. A frame at rest is a list of pointers to
 * values. A value describes a register or a stack slot (8 bytes). Equal values are stored once. If
 * nothing changed in a frame, states share the frame.
 *
 * Values and frames at rest have reference counts, and don't change while they are shared. For each
 * frame, each state has its own struct marks of 72 bytes. This structure says which values are read
 * and which are precise. It also gives, for each register, its place in the parent state (enum
 * place).
 */
#include "bpf/verifier/env.h"
#include "bpf/verifier/kept.h"
#include "bpf/verifier/state.h"

#define FIRST_BUCKETS	256u
#define STORED		offsetof(struct reg, parent)	/* the bytes of struct reg that belong to a
							 * value */

struct value {
	struct slot is;		/* the first STORED bytes of `reg`, and `type`; must be first */
	uint32_t users;
	uint32_t hash;
	struct value *next;	/* next value in the same bucket */
};

/* The value of a slot that was never written. References to this value aren't counted. */
static const struct value nothing;
#define NOTHING		((struct value *)&nothing)

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
_Static_assert(STORED / 8 % 2 == 0 &&
	       STORED % 8 == 4, "hash() takes the words in pairs; hash() and same() take `frame`, "
				"the last 4 bytes, separately");

/* ---- the table of values -------------------------------------------------------------------- */

/* Adds buckets. If there is no memory for them, the lists in the buckets only become longer.
 * Returns false if the table has no buckets at all. */
static bool more_buckets(struct env *env)
{
	struct values *t = &env->values;
	uint32_t nr = t->nr_buckets ? t->nr_buckets * 4 : FIRST_BUCKETS;
	struct value **buckets = pool_is_short(&env->pool) ? NULL :
				 pbv_pool_zero(&env->pool, nr * sizeof(*buckets));

	if (!buckets)
		return t->nr_buckets;
	for (uint32_t i = 0; i < t->nr_buckets; i++)
		for (struct value *v = t->buckets[i], *next; v; v = next) {
			next = v->next;
			v->next = buckets[v->hash % nr];
			buckets[v->hash % nr] = v;
		}
	pbv_pool_put(&env->pool, t->buckets, t->nr_buckets * sizeof(*buckets));
	t->buckets = buckets;
	t->nr_buckets = nr;
	return true;
}

static struct value *new_value(struct env *env, const struct reg *r, uint64_t types, uint32_t h)
{
	struct values *t = &env->values;
	struct value *v = pbv_pool_get(&env->pool, sizeof *v, NULL);

	if (!v)
		return NULL;
	memcpy(&v->is.reg, r, STORED);
	memset((char *)&v->is.reg + STORED, 0, sizeof v->is.reg - STORED);
	memcpy(v->is.type, &types, SLOT);
	v->users = 1;
	v->hash = h;
	v->next = t->buckets[h % t->nr_buckets];
	t->buckets[h % t->nr_buckets] = v;
	t->nr++;
	return v;
}

/* Returns the stored value that is equal to r and types, and takes a reference to it. NULL: there
 * is no memory. `hint` is the value in the parent state, which is often the same value. */
static struct value *value_get(struct env *env, const struct reg *r, uint64_t types,
			       struct value *hint)
{
	struct values *t = &env->values;
	uint32_t h;

	if (hint != NOTHING && same(&hint->is, r, types)) {
		hint->users++;
		return hint;
	}
	if (!types && !r->type && same(&nothing.is, r, 0))
		return NOTHING;
	if (t->nr >= t->nr_buckets && !more_buckets(env))
		return NULL;
	h = hash(r, types);
	for (struct value *v = t->buckets[h % t->nr_buckets]; v; v = v->next)
		if (v->hash == h && same(&v->is, r, types)) {
			v->users++;
			return v;
		}
	return new_value(env, r, types, h);
}

static void value_put(struct env *env, struct value *v)
{
	struct values *t = &env->values;
	struct value **link;

	if (v == NOTHING || --v->users)
		return;
	for (link = &t->buckets[v->hash % t->nr_buckets]; *link != v;)
		link = &(*link)->next;
	*link = v->next;
	pbv_pool_put(&env->pool, v, sizeof *v);
	t->nr--;
}

/* ---- lists of values ----------------------------------------------------------------------- */

/* A piece of a frame's list of values. Frames share a piece in which nothing changed. */
struct values_piece {
	uint32_t users;
	struct value *value[PIECE];
};

static struct values_piece empty = { .value = {
	NOTHING, NOTHING, NOTHING, NOTHING, NOTHING, NOTHING, NOTHING, NOTHING, NOTHING, NOTHING,
	NOTHING, NOTHING, NOTHING, NOTHING, NOTHING, NOTHING, NOTHING, NOTHING, NOTHING } };

const struct slot *pbv_rest_value(const struct frame *f, uint32_t n)
{
	return &f->pieces[n / PIECE]->value[n % PIECE]->is;
}

static void piece_put(struct env *env, struct values_piece *p)
{
	if (!p || p == &empty || --p->users)
		return;
	for (uint32_t i = 0; i < PIECE; i++)
		value_put(env, p->value[i]);
	pbv_pool_put(&env->pool, p, sizeof *p);
}

/* Returns whether s->type describes the slot completely. If it doesn't, a register is spilled into
 * the slot, or the slot holds a dynptr or an iterator. */
static bool only_bytes(const struct slot *s)
{
	for (int i = 0; i < SLOT; i++)
		if (s->type[i] != S_INVALID && s->type[i] != S_MISC && s->type[i] != S_ZERO)
			return false;
	return !s->reg.type;
}

/* Returns register n (n < 11), or the register or object that slot n - 11 holds. Sets *types to the
 * types of the slot's bytes. For a register, and for a slot that the frame doesn't have, sets
 * *types to 0. */
static const struct reg *stored(const struct frame *f, uint32_t n, uint64_t *types)
{
	static const struct reg none;
	const struct slot *s;

	*types = 0;
	if (n < 11)
		return &f->regs[n];
	if (n >= 11 + f->nr_slots)
		return &none;
	s = &f->slots[n - 11];
	*types = word(s->type, 0);
	return only_bytes(s) ? &none : &s->reg;
}

/* Returns the piece of f's values that begins with value `first`, or NULL if there is no memory.
 * `base` is the same piece in the parent state. */
static struct values_piece *piece_of(struct env *env, const struct frame *f, uint32_t first,
				     struct values_piece *base)
{
	struct values_piece *p;
	uint64_t types;
	uint32_t i;

	for (i = 0; i < PIECE; i++) {
		const struct reg *r = stored(f, first + i, &types);

		if (!same(&base->value[i]->is, r, types))
			break;
	}
	if (i == PIECE) {
		/* all threads share `empty`, so nothing may write it */
		if (base != &empty)
			base->users++;
		return base;
	}
	p = pbv_pool_get(&env->pool, sizeof *p, NULL);
	if (!p)
		return NULL;
	p->users = 1;
	for (i = 0; i < PIECE; i++) {
		const struct reg *r = stored(f, first + i, &types);

		p->value[i] = value_get(env, r, types, base->value[i]);
		if (!p->value[i]) {
			for (; i < PIECE; i++)
				p->value[i] = NOTHING;
			piece_put(env, p);
			return NULL;
		}
	}
	return p;
}

/* ---- frames -------------------------------------------------------------------------------- */

static void rest_put(struct env *env, struct frame *k)
{
	if (!k || --k->users)
		return;
	for (uint32_t i = 0; i < PIECES; i++)
		piece_put(env, k->pieces[i]);
	pbv_pool_put(&env->pool, k->refs, k->room_refs * sizeof *k->refs);
	pbv_pool_put(&env->pool, k, sizeof *k);
}

#define FACTS		offsetof(struct frame, callsite)
#define FACTS_SIZE	(offsetof(struct frame, nr_refs) - FACTS)

/* Returns whether the frames are equal. Values of registers and slots aren't compared. */
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

static void mark_frame(struct marks *m, const struct frame *f)
{
	*m = (struct marks){ .nr_slots = (uint8_t)f->nr_slots };
	for (uint32_t i = 0; i < 11; i++)
		mark_reg(m, i, &f->regs[i]);
	for (uint32_t i = 0; i < f->nr_slots; i++)
		mark_slot(m, i, &f->slots[i]);
}

/* Returns a frame at rest for f. `base` is the frame of the parent state, or NULL. If nothing
 * changed, returns `base`, with one more user. Returns NULL if there is no memory. */
static struct frame *rest_of(struct env *env, const struct frame *f, struct frame *base)
{
	struct values_piece *pieces[PIECES] = { 0 };
	bool changed = !base || !same_rest(base, f), ok = true;
	struct frame *k = NULL;

	for (uint32_t i = 0; i * PIECE < 11 + f->nr_slots && ok; i++) {
		struct values_piece *was = base && base->pieces[i] ? base->pieces[i] : &empty;

		pieces[i] = piece_of(env, f, i * PIECE, was);
		ok = pieces[i];
		changed |= pieces[i] != was;
	}
	if (ok && changed)
		k = pbv_pool_zero(&env->pool, sizeof *k);
	if (k) {
		memcpy((char *)k + FACTS, (const char *)f + FACTS, FACTS_SIZE);
		memcpy(k->pieces, pieces, sizeof pieces);
		k->nr_slots = f->nr_slots;
		k->users = 1;
		if (!pbv_frame_copy_refs(env, k, f))
			return k;
		rest_put(env, k);
		return NULL;
	}
	for (uint32_t i = 0; i < PIECES; i++)
		piece_put(env, pieces[i]);
	if (!ok || changed)
		return NULL;
	base->users++;
	return base;
}

static int wake_frame(struct env *env, struct frame *f, const struct frame *k,
		      const struct marks *m)
{
	memcpy((char *)f + FACTS, (const char *)k + FACTS, FACTS_SIZE);
	f->nr_slots = 0;
	if (pbv_frame_room(env, f, k->nr_slots))
		return -ENOMEM;
	f->nr_slots = k->nr_slots;
	for (uint32_t i = 0; i < 11; i++) {
		f->regs[i] = *rest_reg(k, i);
		f->regs[i].live = (m->written >> i & 1 ? LIVE_WRITTEN : 0) |
				  (m->read >> i & 1 ? LIVE_READ : 0);
		f->regs[i].precise = m->precise >> i & 1;
		f->regs[i].parent = m->parent[i];
	}
	for (uint32_t i = 0; i < k->nr_slots; i++) {
		f->slots[i] = *rest_slot(k, i);
		f->slots[i].reg.live = (m->written_slots >> i & 1 ? LIVE_WRITTEN : 0) |
				       (m->read_slots >> i & 1 ? LIVE_READ : 0);
		f->slots[i].reg.precise = m->precise_slots >> i & 1;
		f->slots[i].reg.parent = m->linked_slots >> i & 1 ? PLACE_SAME : PLACE_NONE;
	}
	return pbv_frame_copy_refs(env, f, k);
}

/* ---- states -------------------------------------------------------------------------------- */

/* Returns whether a backward walk needs the step. If an instruction has no step, the walk assumes
 * that the path reached it from the previous instruction. */
static bool says_something(const struct step *s)
{
	const struct step plain = { .insn = s->insn, .from = s->insn - 1 };

	return memcmp(s, &plain, sizeof plain);
}

/* Copies the steps. If `kept` is set, *rest is never unpacked to continue a path, so no step is
 * added to it. Then the steps that a backward walk doesn't need are left out. But the first step
 * stays, because the walk recognises the path's first instruction by this step. */
static int rest_steps(struct env *env, struct state *rest, const struct state *st, bool kept)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < st->nr_steps; i++)
		n += !kept || !i || says_something(&st->steps[i]);
	rest->steps = n ? pbv_pool_get(&env->pool, n * sizeof *rest->steps, NULL) : NULL;
	if (n && !rest->steps)
		return -ENOMEM;
	rest->room_steps = n;
	for (uint32_t i = n = 0; i < st->nr_steps; i++)
		if (!kept || !i || says_something(&st->steps[i]))
			rest->steps[n++] = st->steps[i];
	rest->nr_steps = n;
	return 0;
}

int pbv_state_rest(struct env *env, struct state *rest, const struct state *st, bool kept)
{
	const struct state *base = st->parent;
	bool ok;

	pbv_state_copy_facts(rest, st);
	rest->marks = pbv_pool_get(&env->pool, (st->cur + 1) * sizeof *rest->marks, NULL);
	ok = rest->marks && !rest_steps(env, rest, st, kept);
	for (uint32_t n = 0; n <= st->cur && ok; n++) {
		mark_frame(&rest->marks[n], st->frames[n]);
		rest->frames[n] = rest_of(env, st->frames[n], base &&
					  n <= base->cur ? base->frames[n] : NULL);
		ok = rest->frames[n];
	}
	if (ok)
		return 0;
	pbv_state_forget(env, rest);
	return -ENOMEM;
}

int pbv_state_wake(struct env *env, struct state *st, const struct state *rest)
{
	pbv_state_copy_facts(st, rest);
	for (uint32_t n = 0; n <= rest->cur; n++) {
		if (!st->frames[n])
			st->frames[n] = pbv_frame_blank(env);
		if (!st->frames[n] ||
		    wake_frame(env, st->frames[n], rest->frames[n], &rest->marks[n]))
			return -ENOMEM;
	}
	return pbv_state_copy_steps(env, st, rest);
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
	pbv_pool_put(&env->pool, rest->steps, rest->room_steps * sizeof *rest->steps);
	rest->steps = NULL;
	rest->nr_steps = rest->room_steps = 0;
}

void pbv_state_forget(struct env *env, struct state *rest)
{
	forget_frames(env, rest);
	forget_steps(env, rest);
	pbv_pool_put(&env->pool, rest->marks, (rest->cur + 1) * sizeof *rest->marks);
	rest->marks = NULL;
}

void pbv_state_only_marks(struct env *env, struct state *rest)
{
	forget_frames(env, rest);
}

/* Drops those values of a piece that no path has read. If other frames share the piece, its values
 * must stay. But if no path has read any of its values, the frame gets the empty piece in place of
 * this piece. The caller has checked that only one state uses the frame. */
static void trim_piece(struct env *env, struct values_piece **piece, const struct marks *m,
		       uint32_t first)
{
	struct values_piece *p = *piece;
	bool any = false;

	for (uint32_t i = 0, n = first; i < PIECE; i++, n++) {
		bool read = n < 11 ? m->read >> n & 1 : n < 11 + MAX_SLOTS &&
			    m->read_slots >> (n - 11) & 1;

		any |= read;
		if (read || p == &empty || p->users > 1)
			continue;
		value_put(env, p->value[i]);
		p->value[i] = NOTHING;
	}
	if (any)
		return;
	piece_put(env, p);
	*piece = &empty;
}

static void trim_frame(struct env *env, struct frame *k, const struct marks *m)
{
	for (uint32_t i = 0; k && k->users == 1 && i < PIECES; i++)
		if (k->pieces[i])
			trim_piece(env, &k->pieces[i], m, i * PIECE);
}

void pbv_state_trim(struct env *env, struct state *rest)
{
	/* no backward walk will cross the state any more, and comparisons need only the values that
	 * were read */
	forget_steps(env, rest);
	for (uint32_t n = 0; n <= rest->cur && !rest->whole; n++)
		trim_frame(env, rest->frames[n], &rest->marks[n]);
}
