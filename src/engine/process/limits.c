/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The agent reserves address space when it starts: for open calls (graph/chains.c), and for chunks
 * of the ring (abi/ring.h). Most of it is never used. But the kernel counts it if the program
 * lowers its own limits (RLIMIT_AS, RLIMIT_DATA). A program may set a limit that is only a little
 * more than it needs. So after such a call the agent unmaps reserved memory until it has no
 * more than a fixed part of the limit. Memory that was used stays.
 *
 * Hits in other threads and in signal handlers may take memory of the reserves at the same time.
 * chains.c and ring_map.c ensure that they take none that is being unmapped.
 *
 * The agent doesn't see a limit that is set by a raw system call, or by another process.
 */
#include <signal.h>
#include <sys/resource.h>
#include <sys/types.h>
#include "engine/process/limits.h"
#include "base/sys.h"
#include "engine/graph/chains.h"
#include "engine/graph/thread_state.h"
#include "engine/latched.h"
#include "engine/process/replace.h"
#include "engine/process/session.h"
#include "engine/sandbox.h"

static int (*original_setrlimit)(int resource, const struct rlimit *limit);
static int (*original_prlimit)(pid_t pid, int resource, const struct rlimit *limit,
			       struct rlimit *old);

/* False in a child of vfork: it has its own limits, but shares its parent's memory. Also false in a
 * forked child before its first hit, because until then pb_process->pid is 0. */
static bool is_owner_of_memory(void)
{
	return pb_process->pid == (uint32_t)pb_sys(SYS_getpid);
}

/* The signals are blocked, because a handler could leave by a jump. If another thread is in this
 * function, this thread gives nothing back, although the other thread may have read the limit
 * before this thread changed it. A thread that returns from setrlimit() during a detach must give
 * nothing back either, because the detach doesn't wait for threads in libc. If pb_detached isn't
 * set yet, the detach waits for this thread. */
static void give_back(int resource)
{
	struct rlimit limit;
	uint64_t all = ~0ul, old;

	if (pb_sys(SYS_rt_sigprocmask, SIG_SETMASK, &all, &old, 8))
		return;
	if (!__atomic_exchange_n(&pb_process->limiting, 1, __ATOMIC_SEQ_CST)) {
		if (!__atomic_load_n(&pb_detached, __ATOMIC_SEQ_CST) &&
		    !pb_sys(SYS_prlimit64, 0, resource, NULL, &limit)) {
			pb_chains_limit(limit.rlim_cur);
			if (resource == RLIMIT_AS)
				pb_session_limit_ring(limit.rlim_cur);
		}
		__atomic_store_n(&pb_process->limiting, 0, __ATOMIC_RELEASE);
	}
	pb_sys(SYS_rt_sigprocmask, SIG_SETMASK, &old, NULL, 8);
}

static void limit_is_set(int resource)
{
	if ((resource == RLIMIT_AS || resource == RLIMIT_DATA) && pb_calls_are_safe() &&
	    is_owner_of_memory())
		give_back(resource);
}

static int our_setrlimit(int resource, const struct rlimit *limit)
{
	int ret = original_setrlimit(resource, limit);

	if (!ret)
		limit_is_set(resource);
	return ret;
}

static int our_prlimit(pid_t pid, int resource, const struct rlimit *limit, struct rlimit *old)
{
	int ret = original_prlimit(pid, resource, limit, old);

	if (!ret && limit && (!pid || (pb_calls_are_safe() && pid == pb_sys(SYS_getpid))))
		limit_is_set(resource);
	return ret;
}

void pb_limits_hook(struct pb_module *m)
{
	if (!original_setrlimit)
		pb_replace(m, "setrlimit", our_setrlimit, &original_setrlimit);
	if (!original_prlimit)
		pb_replace(m, "prlimit", our_prlimit, &original_prlimit);
}
