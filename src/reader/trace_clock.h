/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * From the records' clock (TSC) to nanoseconds of the trace clock: straight
 * lines between the instants in which the recorder read all clocks
 * (PB_META_CLOCK), the outer ones going on for ever. Multiplication in 128
 * bits; exact to the nanosecond for lines shorter than some hours.
 *
 * Context: the observer, any thread once it is made.
 */
#ifndef PB_READER_TRACE_CLOCK_H
#define PB_READER_TRACE_CLOCK_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "abi/datadir.h"

struct pb_clock_line {
	uint64_t tsc, ns;		/* where it begins */
	uint64_t whole, fraction;	/* ns for a tick, 64.64 */
};

struct pb_clock {
	char name[16];			/* "x86-tsc", "mono", ... */
	bool none;			/* records have no times */
	bool uncalibrated;		/* fewer than two readings: a tick counts as 1 ns */
	struct pb_clock_line *lines;
	size_t nr;
	struct pb_clock_line mean;	/* from the first to the last */
	/* What the lines are made of, for people to judge by. */
	size_t readings;		/* those that are used */
	uint64_t span_ns;		/* from the first to the last */
	uint64_t off_ns;		/* how far one of them lies off `mean`, at most */
	uint64_t khz;			/* of the TSC; 0: not known */
	uint64_t start_realtime;	/* ns since 1970 of the first reading, or 0 */
};

/* `pairs` in any order; unusable ones are left out. 0 or -ENOMEM. */
int pb_clock_init(struct pb_clock *c, const char *name, const struct pb_meta_clock *pairs,
		  size_t nr);
void pb_clock_free(struct pb_clock *c);

uint64_t pb_clock_ns(const struct pb_clock *c, uint64_t tsc);
/* A time on the trace clock back to ticks: the first that has it. */
uint64_t pb_clock_ticks(const struct pb_clock *c, uint64_t ns);
/* A sum of durations, by the mean rate. */
uint64_t pb_clock_span(const struct pb_clock *c, uint64_t ticks);
#endif
