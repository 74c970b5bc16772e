/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef PB_ENGINE_PROG_PRIV_H
#define PB_ENGINE_PROG_PRIV_H
#include "base/base.h"
#include "bpf/prog.h"

/* A run at a hit, and what the hit knows besides. */
struct pb_prog_run {
	struct pb_bpf_run run;
	uint64_t ip;			/* where the function begins */
	uint64_t value;			/* bpf_override_return()'s */
	bool overridden;
};

static inline struct pb_prog_run *pb_prog_run_of(struct pb_bpf_run *run)
{
	return pb_container_of(run, struct pb_prog_run, run);
}
#endif
