/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Iterators over numbers. The iterator is on the program's stack. The verifier lets only the
 * functions of this file change the iterator. The iterator gives the numbers start ... end - 1. If
 * these are more than PB_BPF_MAX_ITERATIONS numbers, num_new() returns -E2BIG, and the iterator
 * gives no number. So each loop that calls num_next() ends.
 */
#include <errno.h>
#include "base/mem.h"
#include "bpf/helper/helper_priv.h"
#include "bpf/helper/kfunc.h"

struct numbers {
	int32_t now, end;	/* now: the last number that was given; if now and end are 0, there
				 * are no more numbers */
};

static uint64_t num_new(uint64_t r1, uint64_t r2, uint64_t r3, uint64_t r4, uint64_t r5,
			struct pb_bpf_run *run)
{
	struct numbers *n = PB_BPF_PTR(r1);
	int32_t start = (int32_t)r2, end = (int32_t)r3;

	*n = (struct numbers){ 0, 0 };
	if (start > end)
		return PB_BPF_ERR(EINVAL);
	if ((int64_t)end - start > PB_BPF_MAX_ITERATIONS)
		return PB_BPF_ERR(E2BIG);
	/* now: the number before `start`; if start is INT32_MIN, this number wraps around */
	*n = (struct numbers){ (int32_t)((uint32_t)start - 1), end };
	return 0;
}

static uint64_t num_next(uint64_t r1, uint64_t r2, uint64_t r3, uint64_t r4, uint64_t r5,
			 struct pb_bpf_run *run)
{
	struct numbers *n = PB_BPF_PTR(r1);
	int32_t next = (int32_t)((uint32_t)n->now + 1);

	if (next >= n->end) {
		*n = (struct numbers){ 0, 0 };
		return 0;
	}
	n->now = next;
	return (uint64_t)&n->now;
}

static uint64_t num_destroy(uint64_t r1, uint64_t r2, uint64_t r3, uint64_t r4, uint64_t r5,
			    struct pb_bpf_run *run)
{
	*(struct numbers *)PB_BPF_PTR(r1) = (struct numbers){ 0, 0 };
	return 0;
}

static const struct pb_bpf_kfunc kfuncs[PB_BPF_NR_KFUNCS] = {
	[PB_BPF_KFUNC_ITER_NUM_NEW] = { "bpf_iter_num_new", num_new },
	[PB_BPF_KFUNC_ITER_NUM_NEXT] = { "bpf_iter_num_next", num_next },
	[PB_BPF_KFUNC_ITER_NUM_DESTROY] = { "bpf_iter_num_destroy", num_destroy },
};

const struct pb_bpf_kfunc *pb_bpf_kfunc_of(int32_t id)
{
	return id > PB_BPF_KFUNC_NONE && id < PB_BPF_NR_KFUNCS ? &kfuncs[id] : NULL;
}

int32_t pb_bpf_kfunc_find(const char *name)
{
	for (int32_t i = 1; i < PB_BPF_NR_KFUNCS; i++)
		if (!strcmp(kfuncs[i].name, name))
			return i;
	return PB_BPF_KFUNC_NONE;
}
