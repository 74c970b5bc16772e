/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "base/sys.h"
#include "bpf/map.h"
#include "bpf/prog.h"

struct pb_bpf_settings pb_bpf_settings = { .jit_enable = 1, .now = pb_now_ns };

uint64_t pb_bpf_enter_counted(struct pb_bpf_run *run)
{
	const struct pb_bpf_prog *prog = run->prog;
	uint64_t (*now)(void) = pb_bpf_settings.now;
	uint64_t from = now ? now() : 0;
	uint64_t ret = prog->enter(run->ctx, run);

	__atomic_add_fetch(&prog->stats->ns, now ? now() - from : 0, __ATOMIC_RELAXED);
	__atomic_add_fetch(&prog->stats->runs, 1, __ATOMIC_RELAXED);
	return ret;
}

uint64_t (*pb_bpf_tail_call(struct pb_bpf_map *map, uint32_t index, struct pb_bpf_run *run))
	(const void *ctx, struct pb_bpf_run *run)
{
	const struct pb_bpf_prog *to;

	if (run->tail_calls >= PB_BPF_MAX_TAIL_CALLS)
		return NULL;
	to = map->ops->prog(map, index);
	/* the context is the caller's: a program of another type would take it for something else */
	if (!to || to->type != run->prog->type)
		return NULL;
	run->tail_calls++;
	run->prog = to;
	return to->enter;
}
