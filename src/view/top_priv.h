/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Declarations that three files share: top_round.c takes the events, top.c computes the tables, and
 * top_print.c prints the tables. */
#ifndef PB_VIEW_TOP_PRIV_H
#define PB_VIEW_TOP_PRIV_H
#include "view/sums.h"
#include "view/top.h"

/* The state of one function. */
struct pb_top_state {
	uint64_t calls;			/* multiplied by PB_SAMPLE_UNIT (reader/sample.h) */
	uint64_t total, self;		/* ticks */
	uint32_t table;			/* the table for which the state was computed */
	uint32_t stack;			/* 1 + the number of the last stack that had an open call of
					 * this function */
};

/* The functions of one thread, or of all threads. */
struct pb_top_group {
	struct pb_thread *thread;	/* NULL: all */
	struct pb_sums sums;
	struct pb_top_state *now, *before;	/* the index is the function's number */
	size_t size;			/* of each array, in bytes */
	uint32_t *numbers;		/* the functions that have a state in this table */
	size_t nr_numbers, room;
	uint32_t table;
	bool estimated, ever_estimated;	/* chunks were skipped: in this table, in any table */
	struct pb_report report;	/* the rows of this table */
};

/* The state of a thread whose chunks are sampled (reader/sample.h). */
struct pb_top_thread {
	uint64_t from;		/* the sums have the thread's calls and times up to `from` */
	bool paused;		/* chunks wait, so the open calls aren't known now */
};

static inline struct pb_top_thread *pb_top_thread(struct pb_top *t, size_t index)
{
	static struct pb_top_thread never_sampled;

	return index < t->nr_each ? &t->each[index] : &never_sampled;
}

/* Returns the group of a thread, or NULL if there is no memory. `index` is the index of the
 * thread's cursor in the stream. */
struct pb_top_group *pb_top_group(struct pb_top *t, struct pb_follow *f, size_t index);
/* There are new modules or images, so the functions' numbers have changed: gives the sums, states
 * and open calls of all groups the new numbers. Returns 0 or -errno. */
int pb_top_renumber(struct pb_top *t, struct pb_follow *f);
/* Computes the rows of each group: what has happened since the last table or, with `all`, since the
 * start. */
int pb_top_compute(struct pb_top *t, struct pb_follow *f, uint64_t now, bool all);
#endif
