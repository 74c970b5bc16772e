/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Ring buffers: what programs do with them, and the consumer's side.
 *
 * The kernel's layout, at page 1 of the block: a page with the consumer's position, one
 * with the producers', the data, and the data once more after it (addresses only), so
 * that a record is never in two pieces. A record is a header of 8 bytes, its length with
 * BPF_RINGBUF_BUSY_BIT and DISCARD_BIT and a word of ours, then the data, then as much as
 * makes it a multiple of 8.
 */
#ifndef PB_BPF_MAP_MAP_RINGBUF_H
#define PB_BPF_MAP_MAP_RINGBUF_H
#include "bpf/map/map.h"

/* size bytes to fill, 8-aligned, until submit; NULL: no room, or too much. flags: 0.
 * Context: any. */
void *pb_bpf_ringbuf_reserve(struct pb_bpf_map *map, uint64_t size, uint64_t flags);
/* Hands the record over; discard: the consumer shall not see it. map: NULL, no consumer is woken.
 * flags: BPF_RB_NO_WAKEUP, BPF_RB_FORCE_WAKEUP. Context: any. */
void pb_bpf_ringbuf_submit(struct pb_bpf_map *map, void *sample, uint64_t flags, bool discard);
/* 0, -EAGAIN: no room, -EINVAL. Context: any. */
int pb_bpf_ringbuf_output(struct pb_bpf_map *map, const void *data, uint64_t size, uint64_t flags);
/* flags: BPF_RB_AVAIL_DATA and the like; others give 0. Context: any. */
uint64_t pb_bpf_ringbuf_query(struct pb_bpf_map *map, uint64_t flags);
/* The one that a record lies in; NULL: none of them. Context: any. */
struct pb_bpf_map *pb_bpf_ringbuf_of(struct pb_bpf_map *const *maps, uint32_t nr,
				     const void *sample);

/*
 * Hands what has come until now to fn, which ends it by a value < 0. Returns how many, or that
 * value; -EINVAL: somebody has destroyed it.
 * What a producer that died had reserved is passed over. Context: one thread at a time, of
 * all processes; not inside a run.
 */
typedef int pb_bpf_ringbuf_fn(void *arg, const void *data, uint64_t size);
int64_t pb_bpf_ringbuf_consume(struct pb_bpf_map *map, pb_bpf_ringbuf_fn *fn, void *arg);
#endif
