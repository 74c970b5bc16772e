/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Memory of one verification: blocks in classes of four sizes to a power of two,
 * given back to their class; everything goes back at the end at once. Bounded: a
 * program that needs more than POOL_MOST isn't verified.
 */
#ifndef PB_BPF_POOL_H
#define PB_BPF_POOL_H
#include "bpf/verify.h"

#define POOL_MOST	(1ull << 30)
#define POOL_CLASSES	96

struct pool_slab;
struct pool {
	struct pb_bpf_mem *mem;
	struct pool_slab *slabs;
	char *at, *end;		/* of the newest slab: not handed out yet */
	uint64_t used;
	void *free[POOL_CLASSES];
};

/* At least size bytes, not cleared; *room: how many (NULL: whatever). NULL: none left. */
void *pool_get(struct pool *p, size_t size, size_t *room);
/* Cleared. */
void *pool_zero(struct pool *p, size_t size);
void pool_put(struct pool *p, void *block, size_t size);
void pool_end(struct pool *p);
#endif
