/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Each thread's state has copies of five variables of the agent (thread_words.h). This file brings
 * the copies up to date when a variable changes. Several threads may change variables and copy them
 * at the same time, and a thread may fill its state meanwhile. So after each copy, the variables
 * are compared with the copied values. If they differ, they are copied again. For example, if a
 * thread stores an old value over a new one, its comparison finds that the variable has changed. If
 * the variable changes only after the comparison, the thread that changes it stores the copies
 * afterwards (pb_thread_words_changed()).
 */
#include "engine/graph/thread_words.h"
#include "engine/clock.h"

uint32_t pb_max_depth;
uint64_t pb_thresh;
bool pb_calls_watching;

/* Returns whether the variables still have the copied values. */
static bool copy(struct pb_thread *t)
{
	/* the frozen time is valid once pb_no_clock is set, so it is read after pb_no_clock, and
	 * stored before it */
	uint8_t no_clock = __atomic_load_n(&pb_no_clock, __ATOMIC_ACQUIRE);
	uint64_t frozen = __atomic_load_n(&pb_frozen_clock, __ATOMIC_RELAXED);
	uint64_t thresh = __atomic_load_n(&pb_thresh, __ATOMIC_RELAXED);
	uint32_t depth = __atomic_load_n(&pb_max_depth, __ATOMIC_RELAXED);
	bool watching = __atomic_load_n(&pb_calls_watching, __ATOMIC_RELAXED);

	__atomic_store_n(&t->frozen_clock, frozen, __ATOMIC_RELAXED);
	__atomic_store_n(&t->thresh, thresh, __ATOMIC_RELAXED);
	__atomic_store_n(&t->max_depth, depth, __ATOMIC_RELAXED);
	__atomic_store_n(&t->watching, watching, __ATOMIC_RELAXED);
	__atomic_store_n(&t->no_clock, no_clock, __ATOMIC_SEQ_CST);
	return no_clock == __atomic_load_n(&pb_no_clock, __ATOMIC_SEQ_CST) &&
	       frozen == __atomic_load_n(&pb_frozen_clock, __ATOMIC_RELAXED) &&
	       thresh == __atomic_load_n(&pb_thresh, __ATOMIC_RELAXED) &&
	       depth == __atomic_load_n(&pb_max_depth, __ATOMIC_RELAXED) &&
	       watching == __atomic_load_n(&pb_calls_watching, __ATOMIC_RELAXED);
}

void pb_thread_words_copy(struct pb_thread *t)
{
	while (!copy(t))
		;
}

void pb_thread_words_changed(void)
{
	for (struct pb_thread *t = NULL; pb_process && (t = pb_thread_next(t));)
		pb_thread_words_copy(t);
}
