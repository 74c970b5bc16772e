/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "arch/x86_64/stop.h"

unsigned pb_agent_tid;

int pb_stop_and_poke(const struct pb_patch *p, size_t nr, uint64_t (*moved)(uint64_t pc),
		     uint64_t *longest_ns)
{
	return -11;
}
