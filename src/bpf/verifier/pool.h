/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The memory of one verification. Blocks come in classes of sizes: multiples of 16 up to 256 bytes,
 * then four classes to a power of two. A freed block goes to the free list of its class, and a
 * large block back to its allocator. Slabs are freed at the end, all at once. A program that needs
 * more than MAX_POOL isn't verified. When memory gets short (pool_is_short), the verifier drops
 * kept states.
 */
#ifndef PB_BPF_POOL_H
#define PB_BPF_POOL_H
#include "bpf/verifier/verify.h"

#define MAX_POOL	(72u << 20)	/* bytes of all slabs and large blocks */
#define POOL_SHORT	(MAX_POOL - (8u << 20))
#define POOL_LARGE	(64u << 10)	/* larger blocks have an allocation of their own */
#define POOL_CLASSES	48

struct pool_slab;
struct pool {
	struct pb_bpf_mem *mem;
	struct pool_slab *slabs, *large;
	char *at, *end;		/* of the newest slab: bytes not handed out yet */
	size_t taken;		/* bytes of slabs and large blocks */
	size_t used;		/* bytes of blocks in use */
	void *free[POOL_CLASSES];
	bool optional;		/* the request may fail: it may take memory only up to
				 * POOL_SHORT */
	bool failed;		/* a request that may not fail has failed */
};

/* Returns at least size bytes, not zeroed, and in *room (may be NULL) how many. NULL: no memory
 * is left. */
void *pbv_pool_get(struct pool *p, size_t size, size_t *room);
/* Returns size zeroed bytes. */
void *pbv_pool_zero(struct pool *p, size_t size);
void pbv_pool_put(struct pool *p, void *block, size_t size);
void pbv_pool_end(struct pool *p);

/* A mark: pbv_pool_back_to() frees all slabs that were taken after it. */
struct pool_mark { struct pool_slab *slabs, *large; };
static inline struct pool_mark pool_mark(const struct pool *p)
{
	return (struct pool_mark){ p->slabs, p->large };
}
/* Frees the slabs and large blocks taken after the mark, and empties the free lists. */
void pbv_pool_back_to(struct pool *p, struct pool_mark mark);

static inline bool pool_is_short(const struct pool *p)
{
	return p->used > POOL_SHORT;
}
#endif
