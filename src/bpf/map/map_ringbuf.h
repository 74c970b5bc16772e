/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Ring buffers: the operations of programs, and of the consumer.
 *
 * From page 1 of the block on, the layout is the kernel's: a page with the consumer's position, a
 * page with the producers', and the data. The data is mapped a second time right after itself, so
 * that each record is contiguous. A record has a header of 8 bytes: its length, with
 * BPF_RINGBUF_BUSY_BIT and DISCARD_BIT, and a word that only Patchbay uses. Then come the data,
 * padded to a multiple of 8.
 */
#ifndef PB_BPF_MAP_MAP_RINGBUF_H
#define PB_BPF_MAP_MAP_RINGBUF_H
#include "bpf/map/map.h"

/* Reserves size bytes, 8-aligned, for the caller to fill and submit. NULL: no room, or size is
 * too large. flags must be 0. Context: any. */
void *pb_bpf_ringbuf_reserve(struct pb_bpf_map *map, uint64_t size, uint64_t flags);
/* Submits the record; discard: the consumer will skip it. If map is NULL, no consumer is woken.
 * flags: BPF_RB_NO_WAKEUP, BPF_RB_FORCE_WAKEUP. Context: any. */
void pb_bpf_ringbuf_submit(struct pb_bpf_map *map, void *sample, uint64_t flags, bool discard);
/* Reserves, copies and submits. Returns 0, -EAGAIN (no room) or -EINVAL. Context: any. */
int pb_bpf_ringbuf_output(struct pb_bpf_map *map, const void *data, uint64_t size, uint64_t flags);
/* flags: BPF_RB_AVAIL_DATA and the like; unknown ones give 0. Context: any. */
uint64_t pb_bpf_ringbuf_query(struct pb_bpf_map *map, uint64_t flags);
/* The ring buffer among `maps` that the record lies in; NULL: none. Context: any. */
struct pb_bpf_map *pb_bpf_ringbuf_of(struct pb_bpf_map *const *maps, uint32_t nr,
				     const void *sample);

/*
 * Calls fn with each record that the buffer holds when the call begins, until fn returns a negative
 * value. Returns that value, or the number of records; -EINVAL: a process has corrupted the buffer.
 * Skips records that dead producers had reserved. Context: one thread at a time, in all processes;
 * not inside a run.
 */
typedef int pb_bpf_ringbuf_fn(void *arg, const void *data, uint64_t size);
int64_t pb_bpf_ringbuf_consume(struct pb_bpf_map *map, pb_bpf_ringbuf_fn *fn, void *arg);
#endif
