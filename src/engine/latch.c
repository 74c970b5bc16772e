/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Ends tracing when the agent finds itself broken. To do this, it sets the limit of depth to 0.
 * Most handlers of entries compare this limit anyway, so they need no further check. The handlers
 * of --clock=none don't compare it (tracer.c). So pb_period_leave_fast_paths() sends all later
 * entries of the graph tracer to the slow path, which compares the limit. The reason is left in the
 * ring. Tracing stays off, unless the agent is detached and attached again (latched.h).
 */
#include "base/base.h"
#include "base/mem.h"
#include "engine/graph/period.h"
#include "engine/graph/thread_words.h"
#include "ring/writer.h"
/* included last, because it poisons names that system headers declare */
#include "engine/latch.h"

bool pb_latched, pb_detached;

void pb_latch(const char *reason)
{
	struct pb_ring *ring = pb_ring_map.ring;
	size_t at = 0;

	if (__atomic_exchange_n(&pb_latched, true, __ATOMIC_SEQ_CST))
		return;
	__atomic_store_n(&pb_max_depth, 0, __ATOMIC_SEQ_CST);
	pb_thread_words_changed();
	pb_period_leave_fast_paths();
	if (!ring)
		return;
	pb_put_str(ring->latch_reason, sizeof(ring->latch_reason), &at, reason);
	__atomic_store_n(&ring->latched, 1, __ATOMIC_RELEASE);
}
