/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Converts the records' clock (TSC) to nanoseconds of the trace clock. The recorder reads all
 * clocks at several instants (PB_META_CLOCK). The conversion follows straight lines between these
 * instants. Before the first instant, the first line is extended; after the last instant, the last
 * line is. If the machine slept between two instants, a clock that stops during a sleep stops in
 * the middle of the time that the machine was awake. Products have 128 bits, so the result is exact
 * to the nanosecond for lines that are shorter than a few hours.
 *
 * Context: the observer; after pb_clock_init() has returned, any thread.
 */
#ifndef PB_READER_TRACE_CLOCK_H
#define PB_READER_TRACE_CLOCK_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "abi/datadir.h"
#include "base/base.h"

struct pb_clock_line {
	uint64_t tsc, ns;		/* the point where the line begins */
	uint64_t whole, fraction;	/* ns per tick, in 64.64 fixed point */
};

/* A time during which the trace clock stands still, because the machine slept. */
struct pb_clock_sleep {
	uint64_t from, to;		/* ticks */
};

struct pb_clock {
	char name[16];			/* "x86-tsc", "mono", ... */
	bool none;			/* records have no times */
	bool uncalibrated;		/* there are no two usable readings, so a tick counts as
					 * 1 ns */
	struct pb_clock_line *lines;
	size_t nr;
	struct pb_clock_sleep *sleeps;	/* in the order of time */
	size_t nr_sleeps;
	struct pb_clock_line mean;	/* begins at the first reading; its rate is the mean of all
					 * intervals in which the machine didn't sleep */
	/* These values tell the user how good the conversion is. */
	size_t readings;		/* number of readings that are used */
	uint64_t span_ns;		/* time from the first reading to the last */
	uint64_t off_ns;		/* the largest distance of a reading from `mean`, without
					 * the sleeps */
	uint64_t khz;			/* the TSC's frequency; 0: unknown */
	uint64_t start_realtime;	/* ns from 1970 to the first reading, or 0 */
};

/* Makes the lines. `pairs` are readings in any order, and unusable readings are left out. Returns 0
 * or -ENOMEM. */
int pb_clock_init(struct pb_clock *c, const char *name, const struct pb_meta_clock *pairs,
		  size_t nr);
void pb_clock_free(struct pb_clock *c);

uint64_t pb_clock_ns(const struct pb_clock *c, uint64_t tsc);
/* Returns the first tick that isn't before this time of the trace clock. */
uint64_t pb_clock_ticks(const struct pb_clock *c, uint64_t ns);
/* Returns the number of ticks from start to end, without the ticks of sleeps. start <= end */
uint64_t pb_clock_awake(const struct pb_clock *c, uint64_t start, uint64_t end);
/* Converts a sum of durations to nanoseconds, by the mean rate. The durations must come from
 * pb_clock_ticks_between(). */
uint64_t pb_clock_span(const struct pb_clock *c, uint64_t ticks);

/* Returns a duration in ticks of the trace clock. start <= end */
static inline uint64_t pb_clock_ticks_between(const struct pb_clock *c, uint64_t start,
					      uint64_t end)
{
	return pb_likely(!c->nr_sleeps) ? end - start : pb_clock_awake(c, start, end);
}
#endif
