/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "engine/clock.h"
#include "arch/x86_64/layout.h"
#include "base/base.h"
#include <stdbool.h>

uint8_t pb_no_clock;
uint64_t pb_frozen_clock;

static bool no_tsc;		/* whatever --clock says */

uint64_t pb_clock(void)
{
	return pb_no_clock ? pb_frozen_clock : pb_rdtsc();
}

uint64_t pb_clock_ticks(void)
{
	return no_tsc ? 0 : pb_rdtsc();
}

void pb_clock_freeze(void)
{
	no_tsc = true;
	if (pb_no_clock)
		return;
	pb_frozen_clock = pb_rdtsc();
	pb_barrier();
	pb_no_clock = PB_CLOCK_FROZEN;
}
