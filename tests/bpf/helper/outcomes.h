/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Makes a series of calls in Patchbay and in the kernel, and compares the outcomes. */
#ifndef TESTS_BPF_OUTCOMES_H
#define TESTS_BPF_OUTCOMES_H
#include "calls.h"

/* The outcomes of the last series. */
extern struct outcome ours, kernels;
/* The number of series whose comparison stopped at a call, because a flaw of the kernel changed the
 * call's result. */
extern unsigned nr_flaws;

/* Returns 0 if the outcomes are the same. Otherwise prints the differences and returns 1. */
int compare_outcomes(const struct calls *c);
/* Prints the packet, and the calls with our results. */
void show_calls(const struct calls *c);
#endif
