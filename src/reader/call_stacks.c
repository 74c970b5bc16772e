/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Keeps stacks in a hash table. The key of a stack with the id 0 (a thread's own stack) is the
 * thread's serial. The key of any other stack is the process and the stack's id. */
#include "reader/call_stacks.h"

#include <stdlib.h>
#include <string.h>

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
};

struct pb_stacks *pb_stacks_new(void)
{
	struct pb_stacks *s = calloc(1, sizeof(*s));

	if (!s)
		return NULL;
	s->size = 64;
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

static size_t hash(uint32_t key, uint64_t id)
{
	uint64_t h = (id ^ (uint64_t)key << 32 ^ key) * 0x9e3779b97f4a7c15ull;

	return (size_t)(h ^ h >> 29);
}

static uint32_t key_of(const struct pb_call_stack *c)
{
	return c->id ? c->pid : c->serial;
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
	for (size_t i = 0; i < s->nr; i++) {
		size_t at = hash(key_of(order[i]), order[i]->id) & (size - 1);

		while (table[at])
			at = (at + 1) & (size - 1);
		table[at] = order[i];
	}
	free(s->table);
	s->table = table;
	s->size = size;
	return true;
}

struct pb_call_stack *pb_stacks_get(struct pb_stacks *s, uint32_t pid, uint32_t serial, uint64_t id)
{
	uint32_t key = id ? pid : serial;
	size_t at = hash(key, id) & (s->size - 1);
	struct pb_call_stack *c;

	for (; (c = s->table[at]); at = (at + 1) & (s->size - 1))
		if (c->id == id && key_of(c) == key)
			return c;
	if (s->nr >= MAX_STACKS)
		return s->order[0];
	if (s->nr * 2 >= s->size) {
		if (!enlarge(s))
			return NULL;
		at = hash(key, id) & (s->size - 1);
		while (s->table[at])
			at = (at + 1) & (s->size - 1);
	}
	c = calloc(1, sizeof(*c));
	if (!c)
		return NULL;
	c->pid = pid;
	c->serial = serial;
	c->id = id;
	c->budget = BUDGET;
	s->table[at] = s->order[s->nr++] = c;
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
