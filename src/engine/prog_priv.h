/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef PB_ENGINE_PROG_PRIV_H
#define PB_ENGINE_PROG_PRIV_H
#include <stddef.h>
#include "base/base.h"
#include "bpf/prog.h"

/* A run at a hit, and what the hit knows besides. */
struct pb_prog_run {
	uint64_t frame;			/* arch/x86_64/prog_call.S */
	struct pb_bpf_run run;
	uint64_t ip;			/* where the function begins */
	uint64_t value;			/* bpf_override_return()'s */
	bool overridden;
};

_Static_assert(offsetof(struct pb_prog_run, run) == 8, "prog_call.S");

/* prog_call.S: what pb_bpf_enter() does, where unwinders may come; and room for native code. */
uint64_t pb_prog_call(const void *ctx, struct pb_bpf_run *run,
		      uint64_t (*enter)(const void *ctx, struct pb_bpf_run *run));
extern char pb_prog_code[];

static inline struct pb_prog_run *pb_prog_run_of(struct pb_bpf_run *run)
{
	return pb_container_of(run, struct pb_prog_run, run);
}
#endif
