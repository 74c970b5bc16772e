/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Macros for the helpers' functions. PB_BPF_HELPER(name) begins the definition of a helper's
 * function, with the parameters r1 ... r5 and run. If the arguments aren't obvious, a comment lists
 * them, before the function or before the first of several similar functions. If the comment
 * doesn't name r1, r1 is the map or the context. The functions rely on the verifier, which has
 * checked the arguments. Errors are those of the kernel.
 */
#ifndef PB_BPF_HELPER_HELPER_PRIV_H
#define PB_BPF_HELPER_HELPER_PRIV_H
#include <asm/errno.h>
#include <stdbool.h>
#include "base/mem.h"
#include "bpf/core/host.h"
#include "bpf/core/packet.h"
#include "bpf/helper/helper_fns.h"
#include "bpf/helper/prog_type.h"
#include "bpf/map/map.h"

#define PB_BPF_HELPER(name) \
	uint64_t pb_bpf_do_##name(uint64_t r1, uint64_t r2, uint64_t r3, uint64_t r4, uint64_t r5, \
				  struct pb_bpf_run *run)

#define PB_BPF_PTR(r)	((void *)(r))
#define PB_BPF_ERR(err)	((uint64_t)(int64_t)-(err))

/* Called if a helper has failed that would have written the buffer, and the kernel's helper leaves
 * it as it was. The verifier takes the buffer for written. So unless the program may read memory
 * that was never written, the buffer is cleared. */
static inline void pb_bpf_hide(const struct pb_bpf_run *run, void *buf, uint32_t size)
{
	if (!run->prog || !run->prog->perfmon)
		memset(buf, 0, size);
}

#endif
