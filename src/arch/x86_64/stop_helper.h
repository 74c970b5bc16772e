/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The helper of a stop (stop.c), and what it shares with the thread that requests the stop.
 * Context: one stop at a time.
 */
#ifndef PB_ARCH_STOP_HELPER_H
#define PB_ARCH_STOP_HELPER_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "arch/arch.h"
#include "base/task.h"

#define STOP_NS		20000000ull
#define STOP_MOST_NS	1000000000ull	/* the longest that a try waits for runnable threads */
#define PB_STOP_PLACES	4096		/* largest number of stopped PCs for stopped(); if there are
					 * more, the stop is retried */

struct pb_stop_job {
	const struct pb_stop *s;
	const struct pb_patch *p;	/* the patches of this group */
	size_t nr;
	uint32_t pid, tid, go;	/* tid: the thread that requested the stop */
	uint32_t parent;	/* PID of the helper's parent */
	const struct pb_proc_dirs *dirs;
	bool patient;		/* fail if a handler has interrupted bytes to be replaced */
	uint64_t most;		/* ns for which the stop waits for runnable threads */
	bool late;		/* the stop failed because a thread stopped too late */
	bool shared;		/* the stop failed because another process shares the memory */
	int answer;		/* the result of stopped() */
	int result;
	const char *why;
};

/* GONE: the kernel sets it when the helper has ended; ASKS: stopped() is to run */
enum { PB_HELPER_GONE, PB_HELPER_RUNS, PB_HELPER_ASKS };
extern uint32_t pb_helper_state;
/* The PCs for stopped(). There may be more of them than the array has room for. */
extern struct pb_stopped pb_stop_places[PB_STOP_PLACES];
extern size_t pb_stop_nr_places;

/* The helper's only function. job: a struct pb_stop_job. */
int pb_stop_helper(void *job);
#endif
