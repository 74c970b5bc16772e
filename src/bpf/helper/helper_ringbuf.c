/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Helpers for ring buffers. */
#include "bpf/helper/dynptr.h"
#include "bpf/helper/helper_priv.h"
#include "bpf/map/map_ringbuf.h"

static void *reserve(struct pb_bpf_run *run, struct pb_bpf_map *map, uint64_t size)
{
	void *sample = pb_bpf_ringbuf_reserve(map, size, 0);

	if (sample && run->host && run->host->takes)
		run->host->takes(run, map, sample, 0);
	return sample;
}

static void submit_to(struct pb_bpf_run *run, struct pb_bpf_map *map, void *sample, uint64_t flags,
		      bool discard)
{
	if (run->host && run->host->gives)
		run->host->gives(run, sample);
	pb_bpf_ringbuf_submit(map, sample, flags, discard);
}

/* Submits or discards a record. The program passes only the record, so this function must find the
 * record's ring buffer among the program's maps. */
static void submit(struct pb_bpf_run *run, void *sample, uint64_t flags, bool discard)
{
	submit_to(run, pb_bpf_ringbuf_of(run->prog->maps, run->prog->nr_maps, sample), sample,
		  flags, discard);
}

/* r1 map, r2 data, r3 its size, r4 flags */
PB_BPF_HELPER(ringbuf_output)
{
	struct pb_bpf_map *map = PB_BPF_PTR(r1);
	void *to;

	if (r4 & ~(uint64_t)(BPF_RB_NO_WAKEUP | BPF_RB_FORCE_WAKEUP))
		return PB_BPF_ERR(EINVAL);
	to = reserve(run, map, r3);
	if (!to)
		return PB_BPF_ERR(EAGAIN);
	memcpy(to, PB_BPF_PTR(r2), r3);
	submit_to(run, map, to, r4, false);
	return 0;
}

/* r1 map, r2 size, r3 flags */
PB_BPF_HELPER(ringbuf_reserve)
{
	return r3 ? 0 : (uint64_t)reserve(run, PB_BPF_PTR(r1), r2);
}

/* r1 record, r2 flags */
PB_BPF_HELPER(ringbuf_submit)
{
	submit(run, PB_BPF_PTR(r1), r2, false);
	return 0;
}

PB_BPF_HELPER(ringbuf_discard)
{
	submit(run, PB_BPF_PTR(r1), r2, true);
	return 0;
}

/* r1 map, r2 which value to return (BPF_RB_AVAIL_DATA and others) */
PB_BPF_HELPER(ringbuf_query)
{
	return pb_bpf_ringbuf_query(PB_BPF_PTR(r1), r2);
}

/* r1 map, r2 size, r3 flags, r4 dynptr */
PB_BPF_HELPER(ringbuf_reserve_dynptr)
{
	struct pb_bpf_dynptr *d = PB_BPF_PTR(r4);
	uint32_t size = (uint32_t)r2;

	*d = (struct pb_bpf_dynptr){ 0 };
	if (r3)
		return PB_BPF_ERR(EINVAL);
	if (size > PB_BPF_DYNPTR_MAX)
		return PB_BPF_ERR(E2BIG);
	d->data = reserve(run, PB_BPF_PTR(r1), size);
	if (!d->data)
		return PB_BPF_ERR(EINVAL);
	d->size = size;
	return 0;
}

static uint64_t end_dynptr(struct pb_bpf_run *run, struct pb_bpf_dynptr *d, uint64_t flags,
			   bool discard)
{
	if (d->data)
		submit(run, d->data, flags, discard);
	*d = (struct pb_bpf_dynptr){ 0 };
	return 0;
}

/* r1 dynptr, r2 flags */
PB_BPF_HELPER(ringbuf_submit_dynptr)
{
	return end_dynptr(run, PB_BPF_PTR(r1), r2, false);
}

PB_BPF_HELPER(ringbuf_discard_dynptr)
{
	return end_dynptr(run, PB_BPF_PTR(r1), r2, true);
}
