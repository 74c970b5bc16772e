/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Maps of stacks: what bpf_get_stackid does once it has the stack. */
#ifndef PB_BPF_MAP_MAP_STACK_H
#define PB_BPF_MAP_MAP_STACK_H
#include "bpf/map/map.h"

#define PB_BPF_STACK_MOST	127	/* perf_event_max_stack */

/*
 * The stack's number: of the nr addresses, the innermost first, as many as the map's
 * values hold. flags: the helper's, those bits that skip frames have been obeyed already.
 * -EEXIST: another stack has its place; -EBUSY: somebody is filling that. Context: any.
 */
int64_t pb_bpf_stack_put(struct pb_bpf_map *map, const uint64_t *ips, uint32_t nr, uint64_t flags);
#endif
