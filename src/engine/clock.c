/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The time in records: the TSC, or one frozen number. --clock=none freezes the clock at 0 from the
 * start. A clock that is turned off later freezes at that moment, so that the records of a chunk
 * stay ordered. If the program forbids reading the TSC, the clock freezes for good.
 */
#include "engine/clock.h"
#include "arch/arch.h"
#include "base/base.h"
#include "base/sys.h"

uint8_t pb_no_clock;
uint64_t pb_frozen_clock;

static bool no_tsc;		/* the TSC mustn't be read, whatever --clock says */

uint64_t pb_clock(void)
{
	return pb_no_clock ? pb_frozen_clock : pb_cpu_counter();
}

uint64_t pb_clock_ticks(void)
{
	return no_tsc ? 0 : pb_cpu_counter();
}

static void freeze_at(uint64_t time, uint8_t how)
{
	pb_frozen_clock = time;
	pb_barrier();
	__atomic_store_n(&pb_no_clock, how, __ATOMIC_RELEASE);
}

void pb_clock_set(bool none, bool live)
{
	if (no_tsc || (none && pb_no_clock == PB_CLOCK_NONE))
		return;
	if (!none)
		__atomic_store_n(&pb_no_clock, 0, __ATOMIC_RELEASE);
	else if (live)
		freeze_at(pb_cpu_counter(), PB_CLOCK_FROZEN);
	else
		freeze_at(0, PB_CLOCK_NONE);
}

void pb_clock_freeze(void)
{
	no_tsc = true;
	if (!pb_no_clock)
		freeze_at(pb_cpu_counter(), PB_CLOCK_FROZEN);
}

uint64_t pb_clock_per_ms(void)
{
	struct { long sec, nsec; } a, b;
	uint64_t t0, t1, ns;

	pb_sys(SYS_clock_gettime, 1, &a);
	t0 = pb_cpu_counter();
	do {
		pb_sys(SYS_clock_gettime, 1, &b);
		t1 = pb_cpu_counter();
		ns = (uint64_t)(b.sec - a.sec) * 1000000000 + (uint64_t)(b.nsec - a.nsec);
	} while (ns < 2000000);
	return (t1 - t0) * 1000 / (ns / 1000);
}
