/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Makes a tail call: looks up, in a prog_array, the program that replaces the running program. */
#include "bpf/core/program.h"
#include "bpf/map/map.h"

uint64_t (*pb_bpf_tail_call(struct pb_bpf_map *map, uint32_t index, struct pb_bpf_run *run))
	(const void *ctx, struct pb_bpf_run *run)
{
	const struct pb_bpf_prog *to;

	if (run->tail_calls >= PB_BPF_MAX_TAIL_CALLS)
		return NULL;
	to = map->ops->prog(map, index);
	/* the context stays the same, and a program of another type would misread it */
	if (!to || to->type != run->prog->type)
		return NULL;
	run->tail_calls++;
	run->prog = to;
	return to->enter;
}
