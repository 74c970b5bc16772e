/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The memory of one verification. Blocks of up to POOL_LARGE bytes are cut from slabs, which are
 * allocations of 256 KB. A larger block has an allocation of its own. Small blocks come in size
 * classes: the multiples of 16 up to 256 bytes, then 320, 384, 448, 512, 640, 768 and so on, with
 * four classes from each power of two to the next. A freed small block goes to the free list of its
 * class. A freed large block goes back to the allocator `mem`. At the end all slabs are freed at
 * once. When memory gets short (pool_is_short), the verifier drops kept states. A program that
 * still needs more than MAX_POOL is refused.
 */
#ifndef PB_BPF_POOL_H
#define PB_BPF_POOL_H
#include "bpf/verifier/verify.h"

#define MAX_POOL	(72u << 20)	/* bytes of all slabs and large blocks */
#define POOL_SHORT	(MAX_POOL - (8u << 20))
#define POOL_LARGE	(64u << 10)	/* each larger block has its own allocation */
#define POOL_CLASSES	48

struct pool_slab;
struct pool {
	struct pb_bpf_mem *mem;
	struct pool_slab *slabs, *large;
	char *at, *end;		/* the free bytes of the newest slab */
	size_t taken;		/* bytes of all slabs and large blocks */
	size_t used;		/* bytes of blocks in use */
	void *free[POOL_CLASSES];
	bool optional;		/* requests may fail, and may take memory only up to POOL_SHORT */
	bool failed;		/* a request that was not optional has failed */
};

/* Returns a block of at least `size` bytes, or NULL if no memory is left. The bytes aren't zeroed.
 * Sets *room to the block's size, unless room is NULL. */
void *pbv_pool_get(struct pool *p, size_t size, size_t *room);
/* Returns `size` bytes, all of them zero, or NULL if no memory is left. */
void *pbv_pool_zero(struct pool *p, size_t size);
void pbv_pool_put(struct pool *p, void *block, size_t size);
void pbv_pool_end(struct pool *p);

/* Remembers which slabs and large blocks the pool has, for pbv_pool_back_to(). */
struct pool_mark { struct pool_slab *slabs, *large; };
static inline struct pool_mark pool_mark(const struct pool *p)
{
	return (struct pool_mark){ p->slabs, p->large };
}
/* Frees the slabs and large blocks that were taken after the mark. Empties the free lists. */
void pbv_pool_back_to(struct pool *p, struct pool_mark mark);

static inline bool pool_is_short(const struct pool *p)
{
	return p->used > POOL_SHORT;
}
#endif
