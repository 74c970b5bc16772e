/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Makes a tail call: looks up, in a prog_array, the program that replaces the running program.
 *
 * A tail call in a callback leaves the frames of the helper that called the callback on the stack,
 * and a tail call in a subprogram leaves a frame of the interpreter. Each target may make such a
 * tail call again. So a tail call fails if the stack that is left is too small for its target.
 */
#include "bpf/core/host.h"
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
	if ((uint64_t)__builtin_frame_address(0) - run->stack_end < to->room) {
		if (run->host && run->host->no_room)
			run->host->no_room(run);
		return NULL;
	}
	run->tail_calls++;
	run->prog = to;
	return to->enter;
}
