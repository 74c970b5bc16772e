/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Stops all threads of the program while its text is written. The helper stops them. It is a
 * process that shares the program's memory and files (CLONE_VM without CLONE_THREAD), because a
 * thread can't ptrace its own thread group. It runs on its own stack, with raw system calls. This
 * file has the part of the agent's thread, stop_helper.c has the helper.
 *
 *   agent thread            helper                       each other thread
 *   ------------            ------                       -----------------
 *   touch the pages
 *   clone, PR_SET_PTRACER
 *   go := 1  ------------>  does another process share
 *   futex                   the memory?
 *                           SEIZE, INTERRUPT all  -----> stops
 *                           until no thread is new
 *                           move PCs
 *   stopped()  <----------  (if it isn't NULL)
 *           ------------->  write text
 *                           DETACH threads with a
 *                           signal; exit  -------------> goes on
 *   <---------------------
 *
 * If the observer started the program, the helper becomes the observer's child, too. So the
 * program's wait calls don't see the helper. The helper has a name of its own (PB_STOP_HELPER). By
 * this name, an injector that searches for the program's children recognises the helper, and leaves
 * it out. The PID of the helper's parent isn't enough for this: if the program ends while the
 * helper still runs, the helper gets another parent.
 *
 * In the first try, all threads have STOP_NS to stop. If a thread is late, the try fails before
 * anything is written. A thread that waits in the kernel may be late, for example if it waits for
 * its vfork child. A runnable thread needs only a processor to stop. So if a try fails because of a
 * late thread, the next try waits twice as long for runnable threads, up to STOP_MOST_NS. For other
 * threads, each try waits STOP_NS. The first PATIENT_TRIES tries also fail if a signal handler has
 * interrupted bytes that are about to be replaced.
 *
 * The program may change its root directory, or its limit of open files. So the agent's own thread
 * opens two directories of /proc when it starts (pb_stop_keep_dirs()). Another thread, in a forked
 * child, opens them for each stop.
 */
#include <asm/errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include "arch/arch.h"
#include "arch/x86_64/signal_frames.h"
#include "arch/x86_64/stop_helper.h"
#include "base/base.h"
#include "base/dumpable.h"
#include "base/sys.h"

#define GROUP		20000		/* patches per stop; they take one or two milliseconds */
#define RETRIES		100
#define PATIENT_TRIES	20		/* the first PATIENT_TRIES tries also fail if a handler has
					 * interrupted bytes to be replaced */
#define RETRY_NS	1000000
#define RETRY_MOST_NS	20000000	/* the longest pause before a retry */
#define HELPER_STACK	65536

uint32_t pb_agent_tid;
uint32_t pb_observer_pid;
uint64_t pb_stop_longest_ns;
const char *pb_stop_why;
uint64_t pb_program_ptracer;
static uint8_t helper_stack[HELPER_STACK] __attribute__((aligned(16)));
static struct pb_proc_dirs kept = { -1, -1 };
static uint32_t keeper;		/* the thread whose descriptor table has the kept directories */

void pb_stop_keep_dirs(void)
{
	if (!pb_proc_dirs_open(&kept))
		keeper = (uint32_t)pb_sys(SYS_gettid);
}

void pb_stop_forget_dirs(void)
{
	keeper = 0;
}

/* Returns whether Yama's ptrace_scope is 1. With this value, a tracer must be an ancestor of the
 * process, or the process must have named the tracer with PR_SET_PTRACER. With another value, a
 * stop leaves the PR_SET_PTRACER setting alone. */
static bool yama_restricts(const struct pb_proc_dirs *dirs)
{
	static char scope = '0';	/* if the file can't be opened, its last value counts */
	long fd = pb_sys(SYS_openat, dirs->root, "sys/kernel/yama/ptrace_scope",
			 O_RDONLY | O_CLOEXEC, 0);

	if (pb_sys_failed(fd))
		return scope == '1';
	pb_sys(SYS_read, fd, &scope, 1);
	pb_sys(SYS_close, fd);
	return scope == '1';
}

/* Waits until the helper is gone. Calls stopped() when the helper asks for it. */
static void wait_for_helper(struct pb_stop_job *job)
{
	uint32_t state;

	while ((state = __atomic_load_n(&pb_helper_state, __ATOMIC_ACQUIRE)) != PB_HELPER_GONE) {
		if (state == PB_HELPER_ASKS) {
			job->answer = job->s->stopped(pb_stop_places, pb_stop_nr_places);
			/* without patches, nothing is left to do after stopped() */
			if (!job->nr)
				job->result = job->answer;
			/* if the helper was killed meanwhile, PB_HELPER_GONE must stay */
			__atomic_compare_exchange_n(&pb_helper_state, &state, PB_HELPER_RUNS,
						    false, __ATOMIC_RELEASE, __ATOMIC_RELAXED);
		} else {
			pb_sys(SYS_futex, &pb_helper_state, FUTEX_WAIT, PB_HELPER_RUNS, NULL, NULL,
			       0);
		}
	}
}

/* Restores the program's setting. If the process that the program has named has ended, the kernel
 * refuses it; then the helper is no longer the ptracer at least. */
static void restore_ptracer(void)
{
	uint64_t ptracer = pb_program_ptracer;

	if (!ptracer || pb_sys_failed(pb_sys(SYS_prctl, PR_SET_PTRACER, ptracer, 0, 0, 0)))
		pb_sys(SYS_prctl, PR_SET_PTRACER, 0, 0, 0, 0);
}

static int one_stop(struct pb_stop_job *job)
{
	bool yama = yama_restricts(job->dirs);
	/* make the helper a child of the observer, if the observer is there to reap it */
	bool sibling = pb_observer_pid && pb_sys(SYS_getppid) == pb_observer_pid;
	long pid;
	int status;

	job->go = 0;
	job->parent = sibling ? pb_observer_pid : job->pid;
	job->result = -EAGAIN;
	pb_helper_state = PB_HELPER_RUNS;
	pid = pb_clone(CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_UNTRACED | CLONE_CHILD_CLEARTID |
		       (sibling ? CLONE_PARENT : 0),
		       helper_stack + sizeof(helper_stack), pb_stop_helper, job,
		       &pb_helper_state);
	if (pb_sys_failed(pid)) {
		job->why = "no process could be created to stop the threads";
		return (int)pid;
	}
	/* the helper must be allowed to trace the threads, and to compare the process's memory
	 * with that of other processes */
	pb_dumpable_lend();
	if (yama)
		pb_sys(SYS_prctl, PR_SET_PTRACER, pid, 0, 0, 0);
	__atomic_store_n(&job->go, 1, __ATOMIC_RELEASE);
	wait_for_helper(job);
	while (!sibling && pb_sys(SYS_wait4, pid, &status, __WALL, NULL) == -EINTR)
		;
	if (yama)
		restore_ptracer();
	pb_dumpable_return();
	return job->result;
}

/* Stops the threads for one group of patches, and tries again while the error is -EAGAIN. A vfork
 * child on a busy machine may take long until it executes a program. So the agent's own thread, for
 * which no thread of the program waits, makes longer and longer pauses. */
static int stop_for_group(const struct pb_stop *s, size_t nr, const struct pb_proc_dirs *dirs)
{
	struct { long sec, nsec; } pause = { 0, RETRY_NS };
	uint64_t most = STOP_NS;
	int err = 0;

	pb_text_prepare(s->p + s->done, nr);
	for (int tries = 0; tries < RETRIES; tries++) {
		struct pb_stop_job job = {
			.s = s, .p = s->p + s->done, .nr = nr, .patient = tries < PATIENT_TRIES,
			.pid = (uint32_t)pb_sys(SYS_getpid), .tid = (uint32_t)pb_sys(SYS_gettid),
			.most = most, .dirs = dirs,
			.why = "a thread could not be stopped",
		};

		pb_signal_frames_begin();
		err = one_stop(&job);
		if (err)
			pb_stop_why = job.why;
		if (err != -EAGAIN)
			break;
		if (job.late)
			most = 2 * most < STOP_MOST_NS ? 2 * most : STOP_MOST_NS;
		if (job.shared && job.tid == pb_agent_tid)
			pause.nsec = 2 * pause.nsec < RETRY_MOST_NS ? 2 * pause.nsec :
				     RETRY_MOST_NS;
		pb_sys(SYS_nanosleep, &pause, NULL);
	}
	return err;
}

int pb_stop_world(struct pb_stop *s)
{
	struct pb_proc_dirs own = kept;
	bool keeps = keeper && (uint32_t)pb_sys(SYS_gettid) == keeper;
	int err = keeps ? 0 : pb_proc_dirs_open(&own);

	s->done = 0;
	if (err) {
		pb_stop_why = "the process can't open /proc";
		return err;
	}
	do {
		size_t left = s->nr - s->done, nr = left < GROUP ? left : GROUP;

		err = stop_for_group(s, nr, &own);
		/* -EAGAIN: no patch of the group was written. Any other error: some patches may
		 * have been written, so the group counts as done */
		if (err != -EAGAIN)
			s->done += nr;
	} while (!err && s->done < s->nr);
	if (!keeps)
		pb_proc_dirs_close(&own);
	return err;
}
