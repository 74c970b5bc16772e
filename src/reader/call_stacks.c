/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Keeps stacks in a hash table. The key of a stack with the id 0 (a thread's own stack) is the
 * thread's serial. The key of any other stack is the process, its image, and the stack's id: in
 * older recordings, an id is unique only in the image of a process.
 *
 * The ids come from the data, which isn't trusted. So the hash has a random seed. Otherwise a file
 * could have a million stacks with the same hash.
 */
#include "reader/call_stacks.h"

#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "base/sys.h"

#define MAX_DEPTH	(1u << 22)
#define MAX_STACKS	(1u << 20)
#define BUDGET		(1u << 22)	/* limit of the steps of all failed searches of one stack */
#define BUDGET_SHORT	64		/* limit of the steps of one search after BUDGET is used
					 * up */
#define MAX_NESTED	64		/* pb_stack_switch() follows at most this many links
					 * `from` */
#define OWN_STACK	(1ull << 63)	/* the bit of an id that marks a thread's own stack
					 * (doc/design/record-format.md) */

struct pb_stacks {
	struct pb_call_stack **table;	/* the hash table: open addressing, the size is a power of
					 * two */
	size_t size;
	struct pb_call_stack **order;	/* the stacks in the order in which they first appeared */
	size_t nr;
	uint64_t seed;
};

struct key {
	uint64_t id;
	uint32_t owner, image;		/* owner: the pid, or the serial if the id is 0 */
};

struct pb_stacks *pb_stacks_new(void)
{
	struct pb_stacks *s = calloc(1, sizeof(*s));

	if (!s)
		return NULL;
	s->size = 64;
	if (getrandom(&s->seed, sizeof(s->seed), GRND_NONBLOCK) != sizeof(s->seed))
		s->seed = pb_now_ns() ^ (uintptr_t)s;
	s->table = calloc(s->size, sizeof(*s->table));
	s->order = calloc(s->size, sizeof(*s->order));
	if (s->table && s->order)
		return s;
	pb_stacks_free(s);
	return NULL;
}

void pb_stacks_free(struct pb_stacks *s)
{
	if (!s)
		return;
	for (size_t i = 0; i < s->nr; i++) {
		free(s->order[i]->calls);
		free(s->order[i]);
	}
	free(s->order);
	free(s->table);
	free(s);
}

static uint64_t mix(uint64_t h)
{
	h = (h ^ h >> 33) * 0xff51afd7ed558ccdull;
	h = (h ^ h >> 33) * 0xc4ceb9fe1a85ec53ull;
	return h ^ h >> 33;
}

static size_t hash(const struct pb_stacks *s, struct key k)
{
	return (size_t)mix(mix(k.id ^ s->seed) ^ ((uint64_t)k.owner << 32 | k.image));
}

static struct key make_key(uint32_t pid, uint32_t serial, uint32_t image, uint64_t id)
{
	return (struct key){ id, id ? pid : serial, id ? image : 0 };
}

static bool has_key(const struct pb_call_stack *c, struct key k)
{
	struct key own = make_key(c->pid, c->serial, c->key_image, c->id);

	return own.id == k.id && own.owner == k.owner && own.image == k.image;
}

/* Returns a free place of the table for a stack with this key. */
static size_t free_place(const struct pb_stacks *s, struct key k)
{
	size_t at = hash(s, k) & (s->size - 1);

	while (s->table[at])
		at = (at + 1) & (s->size - 1);
	return at;
}

static bool enlarge(struct pb_stacks *s)
{
	size_t size = s->size * 2;
	struct pb_call_stack **table = calloc(size, sizeof(*table));
	struct pb_call_stack **order = realloc(s->order, size * sizeof(*order));

	if (order)
		s->order = order;
	if (!table || !order) {
		free(table);
		return false;
	}
	free(s->table);
	s->table = table;
	s->size = size;
	for (size_t i = 0; i < s->nr; i++) {
		struct pb_call_stack *c = order[i];

		s->table[free_place(s, make_key(c->pid, c->serial, c->key_image, c->id))] = c;
	}
	return true;
}

struct pb_call_stack *pb_stacks_get(struct pb_stacks *s, uint32_t pid, uint32_t serial,
				    uint32_t image, uint64_t id)
{
	struct key key = make_key(pid, serial, image, id);
	size_t at = hash(s, key) & (s->size - 1);
	struct pb_call_stack *c;

	for (; (c = s->table[at]); at = (at + 1) & (s->size - 1))
		if (has_key(c, key))
			return c;
	if (s->nr >= MAX_STACKS)
		return s->order[0];
	if (s->nr * 2 >= s->size && !enlarge(s))
		return NULL;
	c = calloc(1, sizeof(*c));
	if (!c)
		return NULL;
	c->pid = pid;
	c->serial = serial;
	c->key_image = image;
	c->id = id;
	c->budget = BUDGET;
	s->table[free_place(s, key)] = s->order[s->nr++] = c;
	return c;
}

struct pb_call_stack *pb_stacks_nth(struct pb_stacks *s, size_t n)
{
	return n < s->nr ? s->order[n] : NULL;
}

bool pb_stack_is_own(const struct pb_call_stack *s)
{
	return !s->id || s->id & OWN_STACK;
}

void pb_stack_switch(struct pb_call_stack *prev, struct pb_call_stack *to)
{
	const struct pb_call_stack *s = prev;

	if (pb_stack_is_own(to))
		return;
	/* if `to` is in the chain already, the thread returns to an outer stack, and the links stay
	 * as they are */
	for (int n = 0; s && n < MAX_NESTED; s = s->from, n++)
		if (s->from == to)
			return;
	/* If the chain is too long to be searched, `to` may be in it. A new link would then close
	 * the chain to a ring, and the depth of the ring's stacks would grow with each turn. So
	 * only a stack that has no link yet gets one. */
	if (s && to->from)
		return;
	to->from = prev;
	to->entered = true;
}

struct pb_open_call *pb_stack_push_slow(struct pb_call_stack *s)
{
	uint32_t room = s->room ? s->room * 2 : 4;
	struct pb_open_call *calls;

	if (room > MAX_DEPTH)
		return NULL;
	calls = realloc(s->calls, room * sizeof(*calls));
	if (!calls)
		return NULL;
	s->calls = calls;
	s->room = room;
	return calls;
}

int64_t pb_stack_find(struct pb_call_stack *s, uint32_t site)
{
	uint32_t limit = s->budget > s->depth ? s->depth : BUDGET_SHORT;

	for (uint32_t n = 0; n < limit && n < s->depth; n++)
		if (s->calls[s->depth - 1 - n].site == site)
			return s->depth - 1 - n;
	s->budget -= s->budget > s->depth ? s->depth : 0;
	return -1;
}
