/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Ring buffers: the operations of programs, and of the consumer.
 *
 * The map's memory begins with a page for struct pb_bpf_map_head. From the second page on, the
 * layout is the kernel's: a page with the consumer's position, a page with the producers' position,
 * and the data. The data is mapped a second time right after its end, so that each record is
 * contiguous. A record begins with a header of two 4-byte words. The first word has the record's
 * length, BPF_RINGBUF_BUSY_BIT and BPF_RINGBUF_DISCARD_BIT. The second word has the producer's
 * owner number and a generation (map_ringbuf.c). The kernel stores another number there; consumers
 * ignore this word. The record's data follow, padded to a multiple of 8.
 */
#ifndef PB_BPF_MAP_MAP_RINGBUF_H
#define PB_BPF_MAP_MAP_RINGBUF_H
#include "bpf/map/map.h"

/* Reserves `size` bytes, aligned to 8. The caller must fill and submit them. NULL: there is no
 * room, or `size` is too large. flags must be 0. Context: any. */
void *pb_bpf_ringbuf_reserve(struct pb_bpf_map *map, uint64_t size, uint64_t flags);
/* Submits the record. If `discard` is set, the consumer will skip the record. If map is NULL, wakes
 * no consumer. flags: BPF_RB_NO_WAKEUP, BPF_RB_FORCE_WAKEUP. Context: any. */
void pb_bpf_ringbuf_submit(struct pb_bpf_map *map, void *sample, uint64_t flags, bool discard);
/* Returns the value that the flags select, for example BPF_RB_AVAIL_DATA. For unknown flags,
 * returns 0. Context: any. */
uint64_t pb_bpf_ringbuf_query(struct pb_bpf_map *map, uint64_t flags);
/* Returns the ring buffer among `maps` that contains the record. NULL: none contains it. Context:
 * any. */
struct pb_bpf_map *pb_bpf_ringbuf_of(struct pb_bpf_map *const *maps, uint32_t nr,
				     const void *sample);

/*
 * Calls fn for each record that the buffer holds when this call begins, but stops at the first
 * record that isn't submitted. If fn returns a negative value, stops and returns this value.
 * Otherwise returns the number of records. -EINVAL: a process has corrupted the buffer. Skips
 * records that dead producers had reserved. Context: not inside a run. At any time, only one thread
 * of all processes together may be in this function.
 */
typedef int pb_bpf_ringbuf_fn(void *arg, const void *data, uint64_t size);
int64_t pb_bpf_ringbuf_consume(struct pb_bpf_map *map, pb_bpf_ringbuf_fn *fn, void *arg);
#endif
