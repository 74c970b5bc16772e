/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The time in records. Context: any, also the hit path. */
#ifndef PB_ENGINE_CLOCK_H
#define PB_ENGINE_CLOCK_H
#include <stdbool.h>
#include <stdint.h>

extern uint8_t pb_no_clock;	/* PB_CLOCK_* (layout.h): each record has the time pb_frozen_clock;
				 * 0: the TSC */
extern uint64_t pb_frozen_clock;

uint64_t pb_clock(void);
uint64_t pb_clock_ticks(void);	/* the TSC, even with --clock=none; 0: the TSC mustn't be read */
/* Sets trace_clock. If `none` is set at the start, records have no time. If it is set later (live),
 * all records from then on have the time of that moment, because earlier records have times. */
void pb_clock_set(bool none, bool live);
/* Reading the TSC is about to be forbidden (strict seccomp, PR_SET_TSC). */
void pb_clock_freeze(void);
#endif
