/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Maps of stack traces: the part of bpf_get_stackid that stores a stack. */
#ifndef PB_BPF_MAP_MAP_STACK_H
#define PB_BPF_MAP_MAP_STACK_H
#include "bpf/map/map.h"

#define PB_BPF_STACK_MOST	127	/* perf_event_max_stack */

/*
 * Puts a stack of nr addresses, innermost first, into the map. If a value has room for fewer
 * addresses, stores only the innermost ones. Returns the stack's id. flags: the flags of
 * bpf_get_stackid. The flags' number of frames to skip is ignored: the caller must already have
 * left these frames out of ips. -EEXIST: another stack has the bucket. -EBUSY: a thread is filling
 * the bucket. run: the run that stores the stack, or NULL. Context: any.
 */
int64_t pb_bpf_stack_put(struct pb_bpf_map *map, const uint64_t *ips, uint32_t nr, uint64_t flags,
			 struct pb_bpf_run *run);
#endif
