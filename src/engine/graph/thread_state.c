/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The variables that lead to the data of the process, its threads and its stacks (thread_state.h),
 * and the period, which period.c changes. thread.c sets the other variables. All files of this
 * folder use them. */
#include "engine/graph/thread_state.h"
#include "base/base.h"

/* A state of zeros. Its top is NULL, so each hit takes the slow path. */
struct pb_thread pb_no_thread;
__thread struct pb_thread *pb_tls __attribute__((tls_model("initial-exec"))) = &pb_no_thread;

PB_LASTING struct pb_process *pb_process;
PB_LASTING struct pb_exec_reserve *pb_exec_reserves;
PB_LASTING struct pb_stack *pb_stacks;
PB_LASTING struct pb_thread *pb_threads;
uint32_t pb_period;
bool pb_had_holes;

/* Also a state of zeros. It is never filled. */
struct pb_thread pb_foreign_thread;

bool pb_thread_is_new(void)
{
	return pb_tls == &pb_no_thread || pb_tls == &pb_foreign_thread;
}
