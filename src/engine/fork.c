/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Detaches the forked children of a process if only the process itself is traced. A child begins
 * with a copy of the process's memory, so the child's text has the agent's jumps. The replacement
 * of fork takes these jumps out before the child continues. The child's text is the child's own
 * copy, so the process isn't affected. If children are traced, the replacement only takes back what
 * a stop has changed in the process, if the child was forked during this stop, and lets go of the
 * parent's locks on the eBPF maps.
 *
 * _Fork is replaced, because fork() and all other functions of libc that fork call it. (If libc has
 * no _Fork, fork is replaced.) A child of vfork or posix_spawn shares its parent's memory, and
 * doesn't come here.
 *
 * A child keeps the jumps, and takes the slow path at each call of a traced function, if:
 *
 *   - a signal handler has interrupted the agent's code or an eBPF program, and forks. In the child
 *     this code goes on, and may hold addresses in the ring, or be in the middle of a change of
 *     tables
 *   - the program has set a seccomp filter, which may kill the child for a system call of
 *     the agent
 *   - the program has forked by a system call of its own
 *   - the child's text can't be restored, for example because the kernel refuses a system call
 */
#include <signal.h>
#include <sys/types.h>
#include "engine/fork.h"
#include "engine/detach.h"
#include "engine/graph/thread.h"
#include "engine/latch.h"
#include "engine/process/creds.h"
#include "engine/process/replace.h"
#include "engine/prog/prog.h"
#include "engine/sandbox.h"
#include "arch/arch.h"
#include "base/dumpable.h"
#include "base/sys.h"

static pid_t (*original_fork)(void);
/* Set in a child if a signal handler has forked it, and this handler had interrupted code of the
 * agent. The child goes on with that code, and so do the children that it forks. */
static bool interrupted;

static void detach_child(void)
{
	pb_detach_child();
}

static void with_signals_blocked(void (*change)(void))
{
	uint64_t all = ~0ul, old;

	if (!pb_calls_are_safe() || pb_sys(SYS_rt_sigprocmask, SIG_SETMASK, &all, &old, 8))
		return;
	change();
	pb_sys(SYS_rt_sigprocmask, SIG_SETMASK, &old, NULL, 8);
}

static pid_t our_fork(void)
{
	bool inside = interrupted || pb_tls->w.nr_pending ||
		      pb_prog_is_running((uint64_t)__builtin_frame_address(0));
	uint32_t loan = pb_dumpable_fork_begins();
	pid_t pid = original_fork();

	if (pid)
		return pid;
	pb_program_ptracer = 0;		/* the kernel doesn't copy this setting */
	if (pb_calls_are_safe())
		pb_dumpable_forked(loan);
	interrupted = inside;
	if (!interrupted)
		with_signals_blocked(pb_follow_fork ? pb_prog_forked : detach_child);
	return 0;
}

void pb_fork_hook(struct pb_module *m, bool progs)
{
	/* a process whose children are traced is stopped only if the agent has a thread */
	if ((pb_follow_fork && !pb_creds_wanted && !progs) || original_fork || !m->libc)
		return;
	if (!pb_replace(m, "_Fork", our_fork, &original_fork))
		pb_replace(m, "fork", our_fork, &original_fork);
}
