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

struct reading {
	uint64_t ns, ticks;
};

/* Reads CLOCK_MONOTONIC and the TSC at nearly the same moment. The thread may be scheduled out
 * between the reads. So the function reads both clocks several times, and returns the pair whose
 * reads took the shortest time. */
static struct reading read_both(void)
{
	struct reading best = { 0 };
	uint64_t width = UINT64_MAX;

	for (int i = 0; i < 8; i++) {
		struct { uint64_t sec, nsec; } ts;
		uint64_t before = pb_cpu_counter(), after;

		pb_sys(SYS_clock_gettime, 1, &ts);
		after = pb_cpu_counter();
		if (after - before >= width)
			continue;
		width = after - before;
		best.ns = ts.sec * 1000000000 + ts.nsec;
		best.ticks = before + width / 2;
	}
	return best;
}

uint64_t pb_clock_per_ms(void)
{
	struct reading a = read_both(), b;

	do
		b = read_both();
	while (b.ns - a.ns < 2000000);
	return (b.ticks - a.ticks) * 1000000 / (b.ns - a.ns);
}

uint64_t pb_clock_ticks_of(uint64_t ns, uint64_t ticks_per_ms)
{
	uint64_t per_us = ticks_per_ms / 1000, us = ns / 1000;

	if (per_us && us >= INT64_MAX / per_us)
		return INT64_MAX;
	return us * per_us + (ns % 1000 * per_us + 999) / 1000;
}
