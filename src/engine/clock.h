/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The time in records. Context: any, also the hit path. */
#ifndef PB_ENGINE_CLOCK_H
#define PB_ENGINE_CLOCK_H
#include <stdbool.h>
#include <stdint.h>

extern uint8_t pb_no_clock;	/* 0: the time of a record is the TSC. PB_CLOCK_* (layout.h): the
				 * time of each record is pb_frozen_clock. */
extern uint64_t pb_frozen_clock;

uint64_t pb_clock(void);
uint64_t pb_clock_ticks(void);	/* returns the TSC, even with --clock=none; 0: the TSC mustn't be
				 * read */
/* Measures how many ticks a millisecond has. Takes 2 ms. Context: not on the hit path. */
uint64_t pb_clock_per_ms(void);
/* Converts a time to ticks. The number of ticks in a microsecond is rounded down to a whole number;
 * a fraction of a tick in the result is rounded up. The result is at most INT64_MAX. */
uint64_t pb_clock_ticks_of(uint64_t ns, uint64_t ticks_per_ms);
/* Sets trace_clock. If `none` is set at the start, records have no time. If `none` is set later
 * (live), all later records have the time of this call, so that the records of a chunk stay
 * ordered. */
void pb_clock_set(bool none, bool live);
/* Called when reading the TSC is about to be forbidden (strict seccomp, PR_SET_TSC). */
void pb_clock_freeze(void);
#endif
