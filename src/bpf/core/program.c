/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The settings of the process, and pb_bpf_enter_counted(), which measures a run. */
#include "base/sys.h"
#include "bpf/core/program.h"

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
