/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Functions that several map types use. Context: any. */
#ifndef PB_BPF_MAP_MAP_PRIV_H
#define PB_BPF_MAP_MAP_PRIV_H
#include <asm/errno.h>

#include "base/base.h"
#include "base/mem.h"
#include "bpf/core/program.h"
#include "bpf/map/map.h"

#define PB_BPF_ACCESS_FLAGS (BPF_F_RDONLY | BPF_F_WRONLY | BPF_F_RDONLY_PROG | BPF_F_WRONLY_PROG)
#define PB_BPF_MAX_VALUE (1ull << 22)	/* the kernel's KMALLOC_MAX_SIZE */

static inline uint64_t pb_load(const uint64_t *p)
{
	return __atomic_load_n(p, __ATOMIC_ACQUIRE);
}

static inline uint32_t pb_load32(const uint32_t *p)
{
	return __atomic_load_n(p, __ATOMIC_ACQUIRE);
}

static inline bool pb_replace(uint64_t *p, uint64_t *old, uint64_t new)
{
	return __atomic_compare_exchange_n(p, old, new, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE);
}

static inline bool pb_replace32(uint32_t *p, uint32_t *old, uint32_t new)
{
	return __atomic_compare_exchange_n(p, old, new, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE);
}

/* Replaces two words, aligned to 16, by a cmpxchg. If the cmpxchg fails, *old0 and *old1 receive
 * the current values. */
static inline bool pb_replace16(uint64_t *p, uint64_t *old0, uint64_t *old1, uint64_t new0,
				uint64_t new1)
{
	return pb_cpu_replace16(p, old0, old1, new0, new1);
}

static inline uint32_t pb_bpf_map_cpu_slot(const struct pb_bpf_map *m, const struct pb_bpf_run *run)
{
	uint32_t cpu_slot = run ? run->cpu_slot : 0;

	return cpu_slot < m->cpu_slots ? cpu_slot : m->cpu_slots - 1;
}

/* Returns whether the flags are valid: BPF_F_RDONLY_PROG and BPF_F_WRONLY_PROG exclude each
 * other. */
static inline bool pb_bpf_access_ok(uint32_t flags)
{
	return (flags & (BPF_F_RDONLY_PROG | BPF_F_WRONLY_PROG)) != (
			BPF_F_RDONLY_PROG | BPF_F_WRONLY_PROG);
}

/* Sets a value to 0, except for its lock. */
void pb_bpf_value_clear(const struct pb_bpf_map *m, void *value);
/* Copies one value, except for its special fields (lock, timer, kptrs). */
void pb_bpf_value_copy_special(const struct pb_bpf_map *m, void *dst, const void *src);

static inline void pb_bpf_value_copy(const struct pb_bpf_map *m, void *dst, const void *src)
{
	if (pb_unlikely(m->special))
		pb_bpf_value_copy_special(m, dst, src);
	else if (m->attr.value_size == 8)
		__builtin_memcpy(dst, src, 8);
	else if (m->attr.value_size == 4)
		__builtin_memcpy(dst, src, 4);
	else
		memcpy(dst, src, m->attr.value_size);
}

/* Copies a value out of a map, and sets the special fields to 0. */
void pb_bpf_value_out(const struct pb_bpf_map *m, void *dst, const void *src);
/* Copy the values of all per-CPU slots. Special fields are treated as in the functions above. In
 * the map the values are cpu_slot_size bytes apart. In `out` and `in` they are consecutive. */
void pb_bpf_cpu_slots_out(const struct pb_bpf_map *m, void *out, const char *slot0);
void pb_bpf_cpu_slots_in(const struct pb_bpf_map *m, char *slot0, const void *in);
/* Copy a value out of a map, or into a map, under the value's lock (BPF_F_LOCK). Return 0 or
 * -EBUSY. */
int pb_bpf_value_out_locked(const struct pb_bpf_map *m, void *dst, void *src);
int pb_bpf_value_in_locked(struct pb_bpf_map *m, void *dst, const void *src,
			   struct pb_bpf_run *run);

/* Functions for operations that a type doesn't support. They return the kernel's errors. */
int pb_bpf_no_push(struct pb_bpf_map *m, const void *value, uint64_t flags, struct pb_bpf_run *run);
int pb_bpf_no_pop(struct pb_bpf_map *m, void *value, struct pb_bpf_run *run);
int pb_bpf_no_remove(struct pb_bpf_map *m, const void *key, struct pb_bpf_run *run);
void *pb_bpf_no_lookup(struct pb_bpf_map *m, const void *key, struct pb_bpf_run *run);
int pb_bpf_no_update(struct pb_bpf_map *m, const void *key, const void *value, uint64_t flags,
		     struct pb_bpf_run *run);
int pb_bpf_no_next_key(struct pb_bpf_map *m, const void *key, void *next);
int pb_bpf_no_read(struct pb_bpf_map *m, const void *key, void *value, uint64_t flags);
int pb_bpf_no_write(struct pb_bpf_map *m, const void *key, const void *value, uint64_t flags);
int pb_bpf_no_take(struct pb_bpf_map *m, const void *key, void *value, uint64_t flags);
int64_t pb_bpf_no_each(struct pb_bpf_map *m, pb_bpf_map_fn *fn, void *arg, struct pb_bpf_run *run);
/* Read and write a value with the type's lookup and update functions. */
int pb_bpf_read_value(struct pb_bpf_map *m, const void *key, void *value, uint64_t flags);
int pb_bpf_write_value(struct pb_bpf_map *m, const void *key, const void *value, uint64_t flags);

#define PB_BPF_NO_QUEUE .push = pb_bpf_no_push, .pop = pb_bpf_no_pop, .peek = pb_bpf_no_pop

/*
 * Takes the lock that serialises the writers of some map types. Returns 0 if the lock was free.
 * Returns 1 if the caller took the lock from a holder that died, perhaps during a change. -EBUSY:
 * the caller is a handler that has interrupted the holder, or the holder makes no progress.
 */
int pb_bpf_guard_take(struct pb_bpf_map *m, uint32_t *word, struct pb_bpf_run *run);
void pb_bpf_guard_give(uint32_t *word, struct pb_bpf_run *run);
/* Takes the lock if its holder died. dead: as in pb_bpf_map_ops.repair. */
bool pb_bpf_guard_take_over(const struct pb_bpf_map *m, uint32_t *word, uint32_t dead);

/*
 * Tell the host that the run is about to take something by storing `word`, and that the run no
 * longer has it. So there is no moment at which the run has it and the host doesn't know.
 * pb_bpf_map_abandon() checks whether the run really has it. Thus the word must show the thread, or
 * a thread must seldom find the word of another.
 */
void pb_bpf_takes(struct pb_bpf_map *m, void *what, uint64_t word, struct pb_bpf_run *run);
void pb_bpf_gives(void *what, struct pb_bpf_run *run);

/* What a thread takes has a word of 32 bits: the owner number of the thread's process (map.h), and
 * the thread's id. The kernel's thread ids have at most 22 bits. The word isn't 0. */
#define PB_BPF_THREAD_BITS	22
static inline uint32_t pb_bpf_taken_by(const struct pb_bpf_map *m, uint32_t thread)
{
	uint32_t mask = (1u << PB_BPF_THREAD_BITS) - 1;

	return m->owner << PB_BPF_THREAD_BITS | (thread & mask ? thread & mask : mask);
}

/* `at` is a lock or a bucket of m for which this process waits. If this process can't find out
 * whether the holder lives, asks other processes to do so. */
static inline void pb_bpf_map_report(const struct pb_bpf_map *m, const void *at)
{
	if (!m->alive && !pb_load(&m->head->stuck))
		__atomic_store_n(&m->head->stuck,
				 (uint64_t)((const char *)at - (const char *)m->head),
				 __ATOMIC_RELAXED);
}

extern const struct pb_bpf_map_ops pb_bpf_array_ops, pb_bpf_percpu_array_ops, pb_bpf_hash_ops,
	pb_bpf_percpu_hash_ops, pb_bpf_prog_array_ops, pb_bpf_object_array_ops,
	pb_bpf_hash_of_maps_ops, pb_bpf_queue_ops, pb_bpf_lpm_ops, pb_bpf_stack_trace_ops,
	pb_bpf_ringbuf_ops;
/* BPF_MAP_LOOKUP_BATCH and LOOKUP_AND_DELETE_BATCH of a hash. *batch: on call, the bucket at which
 * to begin; on return, the bucket at which to continue. */
int pb_bpf_hash_batch(struct pb_bpf_map *m, uint32_t *batch, void *keys, void *values,
		      uint32_t *count, uint64_t flags, bool take);
int pb_bpf_array_next_key(struct pb_bpf_map *m, const void *key, void *next);
#endif
