/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Memory of one verification: blocks in classes, from 256 bytes on four to a power of two,
 * given back to their class; large ones go back where they came from; all of the rest
 * goes back at the end at once. Bounded: a program that needs more than MAX_POOL isn't
 * verified. Before that, what can be done without is given up (pool_is_short).
 */
#ifndef PB_BPF_POOL_H
#define PB_BPF_POOL_H
#include "bpf/verifier/verify.h"

#define MAX_POOL	(72u << 20)	/* of all blocks and slabs */
#define POOL_SHORT	(MAX_POOL - (8u << 20))
#define POOL_LARGE	(64u << 10)	/* a block of its own */
#define POOL_CLASSES	48

struct pool_slab;
struct pool {
	struct pb_bpf_mem *mem;
	struct pool_slab *slabs, *large;
	char *at, *end;		/* of the newest slab: not handed out yet */
	size_t taken;		/* slabs and large blocks */
	size_t used;		/* blocks of all sizes */
	void *free[POOL_CLASSES];
	bool optional;		/* what is asked for can be done without: it leaves room for the
				 * rest */
	bool failed;		/* what couldn't be done without found no room */
};

/* At least size bytes, not cleared; *room: how many (NULL: whatever). NULL: none left. */
void *pbv_pool_get(struct pool *p, size_t size, size_t *room);
/* Cleared. */
void *pbv_pool_zero(struct pool *p, size_t size);
void pbv_pool_put(struct pool *p, void *block, size_t size);
void pbv_pool_end(struct pool *p);

/* What was taken since the mark goes back at once. */
struct pool_mark { struct pool_slab *slabs, *large; };
static inline struct pool_mark pool_mark(const struct pool *p)
{
	return (struct pool_mark){ p->slabs, p->large };
}
/* Slabs that were there keep what was put into them since, but blocks given back are lost. */
void pbv_pool_back_to(struct pool *p, struct pool_mark mark);

static inline bool pool_is_short(const struct pool *p)
{
	return p->used > POOL_SHORT;
}
#endif
