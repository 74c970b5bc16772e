/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Dynptrs: pointers with a length, in 16 bytes of a program's stack. */
#include "bpf/helper/dynptr.h"
#include "bpf/helper/helper_priv.h"

/* r1 memory, r2 its size, r3 flags, r4 dynptr */
PB_BPF_HELPER(dynptr_from_mem)
{
	struct pb_bpf_dynptr *d = PB_BPF_PTR(r4);
	uint32_t size = (uint32_t)r2;

	*d = (struct pb_bpf_dynptr){ 0 };
	if (size > PB_BPF_DYNPTR_MAX)
		return PB_BPF_ERR(E2BIG);
	if (r3)
		return PB_BPF_ERR(EINVAL);
	*d = (struct pb_bpf_dynptr){ .data = PB_BPF_PTR(r1), .size = size };
	return 0;
}

static int check(const struct pb_bpf_dynptr *d, uint32_t off, uint32_t len)
{
	return len > d->size || off > d->size - len ? -E2BIG : 0;
}

/* r1 buffer, r2 its size, r3 dynptr, r4 offset, r5 flags */
PB_BPF_HELPER(dynptr_read)
{
	const struct pb_bpf_dynptr *d = PB_BPF_PTR(r3);
	int err = !d->data || r5 ? -EINVAL : check(d, (uint32_t)r4, (uint32_t)r2);

	if (err)
		pb_bpf_hide(run, PB_BPF_PTR(r1), (uint32_t)r2);
	else
		memmove(PB_BPF_PTR(r1), d->data + (uint32_t)r4, (uint32_t)r2);
	return (uint64_t)(int64_t)err;
}

/* r1 dynptr, r2 offset, r3 data, r4 its size, r5 flags */
PB_BPF_HELPER(dynptr_write)
{
	const struct pb_bpf_dynptr *d = PB_BPF_PTR(r1);
	int err = !d->data || r5 ? -EINVAL : check(d, (uint32_t)r2, (uint32_t)r4);

	if (!err)
		memmove(d->data + (uint32_t)r2, PB_BPF_PTR(r3), (uint32_t)r4);
	return (uint64_t)(int64_t)err;
}

/* r1 dynptr, r2 offset, r3 length; returns the address, or 0 */
PB_BPF_HELPER(dynptr_data)
{
	const struct pb_bpf_dynptr *d = PB_BPF_PTR(r1);

	return !d->data || check(d, (uint32_t)r2, (uint32_t)r3) ? 0 :
	       (uint64_t)(d->data + (uint32_t)r2);
}
