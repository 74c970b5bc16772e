/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* An allocator with a free list for each class of sizes (pool.h). */
#include "base/base.h"
#include "base/mem.h"
#include "bpf/verifier/pool.h"

#define SLAB	(256u << 10)
#define FINE	256u	/* up to this size, the size classes are the multiples of 16 */

/* The header of a slab or of a large block. */
struct pool_slab {
	struct pool_slab *next, *prev;
	size_t size, unused;
};

/* Returns the number of the smallest size class (pool.h) with at least `size` bytes. Sets *bytes to
 * this class's size. */
static unsigned class_of(size_t size, size_t *bytes)
{
	unsigned k, part;
	size_t base;

	if (size <= FINE) {
		*bytes = size ? pb_align_up(size, 16ul) : 16;
		return (unsigned)(*bytes / 16 - 1);
	}
	k = 63 - (unsigned)__builtin_clzll(size - 1);	/* 2^k < size <= 2^(k + 1) */
	base = (size_t)1 << k;
	part = (unsigned)((size - base + base / 4 - 1) / (base / 4));
	*bytes = base + base / 4 * part;
	return FINE / 16 - 1 + (k - 8) * 4 + part;
}

static size_t bytes_of(unsigned class)
{
	size_t base;

	if (class < FINE / 16)
		return 16 * (class + 1u);
	class -= FINE / 16;
	base = (size_t)FINE << class / 4;
	return base + base / 4 * (class % 4 + 1);
}

static struct pool_slab *take(struct pool *p, size_t size, struct pool_slab **list)
{
	struct pool_slab *s;

	s = p->taken + size > (p->optional ? POOL_SHORT : MAX_POOL) ? NULL :
	    p->mem->alloc(p->mem, size);
	if (!s)
		return NULL;
	p->taken += size;
	s->size = size;
	s->prev = NULL;
	s->next = *list;
	if (s->next)
		s->next->prev = s;
	*list = s;
	return s;
}

static void *large_get(struct pool *p, size_t size, size_t *room)
{
	struct pool_slab *s = take(p, size + sizeof *s, &p->large);

	p->failed |= !s && !p->optional;
	if (!s)
		return NULL;
	if (room)
		*room = size;
	p->used += s->size;
	return s + 1;
}

static void large_put(struct pool *p, void *block)
{
	struct pool_slab *s = (struct pool_slab *)block - 1;

	if (s->next)
		s->next->prev = s->prev;
	if (s->prev)
		s->prev->next = s->next;
	else
		p->large = s->next;
	p->taken -= s->size;
	p->used -= s->size;
	p->mem->free(p->mem, s, s->size);
}

static void push(struct pool *p, unsigned class, void *block)
{
	memcpy(block, &p->free[class], sizeof(void *));
	p->free[class] = block;
}

static void *pop(struct pool *p, unsigned class)
{
	void *block = p->free[class];

	if (block)
		memcpy(&p->free[class], block, sizeof(void *));
	return block;
}

/* Cuts free bytes into blocks of the largest classes that fit. */
static void scatter(struct pool *p, char *from, size_t bytes)
{
	while (bytes >= 16) {
		size_t size;
		unsigned class = class_of(bytes < POOL_LARGE ? bytes : POOL_LARGE, &size);

		while (bytes_of(class) > bytes)
			class--;
		size = bytes_of(class);
		push(p, class, from);
		from += size;
		bytes -= size;
	}
}

static bool more(struct pool *p)
{
	struct pool_slab *s = take(p, SLAB, &p->slabs);

	if (!s)
		return false;
	scatter(p, p->at, (size_t)(p->end - p->at));
	p->at = (char *)(s + 1);
	p->end = (char *)s + SLAB;
	return true;
}

/* Called if the newest slab has no room, and no new slab can be taken. Takes a larger block from a
 * free list, and frees the bytes of it that aren't needed. */
static void *cut(struct pool *p, unsigned class, size_t bytes)
{
	for (unsigned c = class + 1; c < POOL_CLASSES; c++) {
		char *block = pop(p, c);

		if (block) {
			scatter(p, block + bytes, bytes_of(c) - bytes);
			return block;
		}
	}
	return NULL;
}

void *pbv_pool_get(struct pool *p, size_t size, size_t *room)
{
	size_t bytes;
	unsigned c;
	void *block;

	if (size > POOL_LARGE)
		return large_get(p, size, room);
	c = class_of(size, &bytes);
	block = pop(p, c);
	if (!block) {
		if ((size_t)(p->end - p->at) >= bytes || more(p)) {
			block = p->at;
			p->at += bytes;
		} else {
			block = cut(p, c, bytes);
		}
	}
	p->failed |= !block && !p->optional;
	if (!block)
		return NULL;
	if (room)
		*room = bytes;
	p->used += bytes;
	return block;
}

void *pbv_pool_zero(struct pool *p, size_t size)
{
	void *block = pbv_pool_get(p, size, NULL);

	if (block)
		memset(block, 0, size);
	return block;
}

void pbv_pool_put(struct pool *p, void *block, size_t size)
{
	size_t bytes;
	unsigned c;

	if (!block)
		return;
	if (size > POOL_LARGE) {
		large_put(p, block);
		return;
	}
	c = class_of(size, &bytes);
	p->used -= bytes;
	push(p, c, block);
}

static void end(struct pool *p, struct pool_slab **list, struct pool_slab *up_to)
{
	while (*list != up_to) {
		struct pool_slab *s = *list;

		*list = s->next;
		p->mem->free(p->mem, s, s->size);
	}
	if (up_to)
		up_to->prev = NULL;
}

void pbv_pool_back_to(struct pool *p, struct pool_mark mark)
{
	end(p, &p->slabs, mark.slabs);
	end(p, &p->large, mark.large);
	p->at = p->end = NULL;
	memset(p->free, 0, sizeof p->free);
}

void pbv_pool_end(struct pool *p)
{
	pbv_pool_back_to(p, (struct pool_mark){ 0 });
}
