/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "base/base.h"
#include "base/mem.h"
#include "bpf/verifier/pool.h"

#define SLAB	(256u << 10)

struct pool_slab {
	struct pool_slab *next;
	size_t size;
};

/* 64 << k, and a quarter, a half, three quarters more: all multiples of 16. */
static unsigned class_of(size_t size, size_t *bytes)
{
	unsigned k, part;
	size_t base;

	if (size <= 64) {
		*bytes = 64;
		return 0;
	}
	k = 63 - (unsigned)__builtin_clzll(size - 1);	/* 2^k < size <= 2^(k + 1) */
	base = (size_t)1 << k;
	part = (unsigned)((size - base + base / 4 - 1) / (base / 4));
	*bytes = base + base / 4 * part;
	return (k - 6) * 4 + part;
}

static bool more(struct pool *p, size_t bytes)
{
	size_t size = bytes + sizeof(struct pool_slab) > SLAB ? bytes + sizeof(struct pool_slab) : SLAB;
	struct pool_slab *s;

	if (p->used + size > POOL_MOST)
		return false;
	s = p->mem->alloc(p->mem, size);
	if (!s)
		return false;
	p->used += size;
	s->next = p->slabs;
	s->size = size;
	p->slabs = s;
	p->at = (char *)(s + 1);
	p->end = (char *)s + size;
	return true;
}

void *pool_get(struct pool *p, size_t size, size_t *room)
{
	size_t bytes;
	unsigned c = class_of(size, &bytes);
	void *block = NULL;

	if (c >= POOL_CLASSES)
		return NULL;
	if (room)
		*room = bytes;
	block = p->free[c];
	if (block) {
		memcpy(&p->free[c], block, sizeof(void *));
		return block;
	}
	if ((size_t)(p->end - p->at) < bytes && !more(p, bytes))
		return NULL;
	block = p->at;
	p->at += bytes;
	return block;
}

void *pool_zero(struct pool *p, size_t size)
{
	void *block = pool_get(p, size, NULL);

	if (block)
		memset(block, 0, size);
	return block;
}

void pool_put(struct pool *p, void *block, size_t size)
{
	size_t bytes;
	unsigned c = class_of(size, &bytes);

	if (!block)
		return;
	memcpy(block, &p->free[c], sizeof(void *));
	p->free[c] = block;
}

void pool_end(struct pool *p)
{
	struct pool_slab *next;

	for (struct pool_slab *s = p->slabs; s; s = next) {
		next = s->next;
		p->mem->free(p->mem, s, s->size);
	}
	*p = (struct pool){ .mem = p->mem };
}
