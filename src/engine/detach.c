/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Detaches in steps. A step that fails because the threads couldn't be stopped is repeated until it
 * succeeds. After another error, it is repeated for about 40 seconds. Then the detach gives up, and
 * reports the reason. Text that couldn't be restored leads to stubs that record nothing: traced
 * functions are idle, and replaced functions may stay replaced. The stubs and the ring stay mapped.
 * The steps:
 *
 *   1  remove the tracers: the text of traced functions has the bytes of the file
 *      again, and no thread enters the functions' stubs any more
 *   2  stop the threads for a moment, again and again, until a stop finds none in a
 *      stub, in the agent's code or in libc's sigaction(); during this last stop,
 *      install the program's own signal handlers in the kernel again
 *   3  restore the text of replaced functions (sigaction, exec, the loader's hook)
 *   4  restore the calls of mcount and __fentry__ that the compiler made, and that the
 *      agent has replaced by nops
 *   5  stop the threads again and again, until a stop finds none in a replacement, in a
 *      stub or in the agent's code; after this, the ring can be unmapped
 *
 * A forked child that isn't traced detaches by itself, too. It has one thread, which runs the
 * replacement of fork. So no thread is stopped: the child restores its text (steps 1, 3 and 4),
 * gives the handlers back, and unmaps the ring and the eBPF maps.
 */
#include <asm/errno.h>
#include "engine/detach.h"
#include "arch/arch.h"
#include "base/sys.h"
#include "engine/process/creds.h"
#include "engine/text/ftrace.h"
#include "engine/latch.h"
#include "engine/process/loader.h"
#include "engine/process/session.h"
#include "engine/prog/prog.h"
#include "engine/process/sigaction.h"
#include "engine/graph/chains.h"
#include "engine/graph/thread.h"
#include "engine/uaccess.h"
#include "ring/writer.h"

#define FIRST_PAUSE_NS	1000000ull
#define LAST_PAUSE_NS	10000000000ull
#define SLICE_NS	20000000ull
#define RUN_OUT_STOPS	16		/* after so many stops (about 40 seconds), steps 2 and 5 no
					 * longer wait for threads that are still in our code */
#define MOST_FAILURES	16		/* of a step (about 40 seconds) */

static bool may_wait;		/* whether to keep waiting for threads to leave our code */
static bool finished;
static bool left;		/* no thread was in our code at the last stop of step 5 */

static bool in_our_code(uint64_t pc)
{
	return (pb_agent_holds(pc) && !pb_creds_waits(pc)) || pb_in_stub(pc) || pb_prog_holds(pc);
}

/* A thread in libc's sigaction() may be about to give the kernel a handler of ours. */
static bool in_handlers_way(uint64_t pc)
{
	return in_our_code(pc) || pb_in_sigaction(pc);
}

/* undo_handlers() and leave_ring() are called by the agent's thread while the other threads are
 * stopped. nr of the stopped threads are in our code. */
static int undo_handlers(const struct pb_stopped *at, size_t nr)
{
	finished = !nr || !may_wait;
	if (finished)
		pb_sigaction_undo();
	return 0;
}

static int leave_ring(const struct pb_stopped *at, size_t nr)
{
	finished = !nr || !may_wait;
	left = !nr;
	/* step 2 may have given up waiting for a thread that was inside our sigaction() */
	if (finished)
		pb_sigaction_undo();
	__atomic_store_n(&pb_ring_map.mode, PB_RING_DISCARD, __ATOMIC_RELEASE);
	return 0;
}

/* Sleeps, and returns how long the next pause must be. A thread that changes its credentials waits
 * for the agent's thread, so the pause is cut into slices. */
static uint64_t pause_for(uint64_t ns)
{
	for (uint64_t left = ns; left;) {
		uint64_t slice = left < SLICE_NS ? left : SLICE_NS;
		struct { uint64_t sec, nsec; } ts = { 0, slice };

		pb_creds_serve();
		pb_sys(SYS_nanosleep, &ts, NULL);
		left -= slice;
	}
	return 2 * ns < LAST_PAUSE_NS ? 2 * ns : LAST_PAUSE_NS;
}

/* Doesn't take the lock of the text, because no text is written. With the lock held, a thread in
 * dlopen would wait for the lock inside our code, and so couldn't leave our code. */
static int run_out(bool (*ours)(uint64_t pc),
		   int (*at_stop)(const struct pb_stopped *at, size_t nr))
{
	struct pb_stop stop = { .ours = ours, .stopped = at_stop };
	uint64_t ns = FIRST_PAUSE_NS;
	int err;

	for (int stops = 0;; stops++) {
		may_wait = stops < RUN_OUT_STOPS;
		err = pb_stop_world(&stop);
		if (err || finished)
			return err;
		ns = pause_for(ns);
	}
}

static int run_out_of_our_code(bool live)
{
	return run_out(in_handlers_way, undo_handlers);
}

static int run_out_of_replacements(bool live)
{
	return run_out(in_our_code, leave_ring);
}

static int stop_tracing(bool live)
{
	int err;

	pb_text_lock();
	err = pb_ftrace_stop(live);
	/* The replacements stay in place until step 3. Each of them ends by a jump through the
	 * words that pb_text_returns() sets. From now on, this jump leads to the idle code, which
	 * records nothing. */
	if (!err)
		pb_text_returns((uint64_t)pb_exit_ret_idle, (uint64_t)pb_exit_jump_idle);
	pb_text_unlock();
	return err;
}

static int undo_replacements(bool live)
{
	int err;

	pb_text_lock();
	err = pb_ftrace_undo(live);
	if (!err)
		pb_loader_unhooked();
	pb_text_unlock();
	return err;
}

static int undo_nops(bool live)
{
	int err;

	pb_text_lock();
	pb_text_begin();
	for (uint32_t i = 0; i < pb_nr_modules; i++)
		if (pb_modules[i].present)
			pb_text_change_nops(&pb_modules[i], false);
	err = pb_text_commit(live);
	pb_text_unlock();
	return err;
}

/* Returns 0 or the error that makes the detach give up. */
static int repeat(int (*step)(bool live))
{
	uint64_t ns = FIRST_PAUSE_NS;
	int err, failures = 0;

	for (;;) {
		pb_stop_why = NULL;
		err = step(true);
		if (!err || (err != -EAGAIN && err != -EINPROGRESS && ++failures > MOST_FAILURES))
			return err;
		/* EINPROGRESS: a piece of the text was restored, because memory is short */
		if (err != -EINPROGRESS)
			ns = pause_for(ns);
	}
}

/* For a process that has one thread. */
static bool do_once(int (*step)(bool live))
{
	int err;

	do
		err = step(false);
	while (err == -EINPROGRESS);
	return !err;
}

static void give_up(struct pb_session *s, int err)
{
	__atomic_store_n(&pb_ring_map.mode, PB_RING_DISCARD, __ATOMIC_RELEASE);
	if (s)
		pb_session_error(s, err, "the detach is incomplete",
				 pb_stop_why ? pb_stop_why : pb_text_why(err));
}

static void leave_memory(void)
{
	pb_session_leave_ring();
	pb_chains_leave();
	pb_prog_leave();
}

bool pb_detach(struct pb_session *s)
{
	static int (*const steps[])(bool live) = {
		stop_tracing, run_out_of_our_code, undo_replacements, undo_nops,
		run_out_of_replacements,
	};
	int err = 0;

	pb_text_only_restores = true;
	/* no load may fault any more, because step 2 removes the handlers that such loads need */
	pb_reads_off();
	__atomic_store_n(&pb_detached, true, __ATOMIC_RELEASE);
	if (!s)
		__atomic_store_n(&pb_ring_map.mode, PB_RING_DISCARD, __ATOMIC_RELEASE);
	for (size_t i = 0; i < pb_array_size(steps) && !err; i++)
		err = repeat(steps[i]);
	pb_creds_end();
	if (err)
		give_up(s, err);
	if (left)
		leave_memory();
	if (s)
		pb_session_close(s);
	return left;
}

/* Finds out from the text which jumps are there. The process may have forked in the middle of a
 * batch, between the writes of two parts. Then the flags of sites and windows differ from the
 * text. */
static void look_at_text(void)
{
	pb_text_lock();
	pb_ftrace_look();
	pb_text_unlock();
}

bool pb_detach_child(void)
{
	pb_detached = true;
	pb_text_only_restores = true;
	look_at_text();
	if (!do_once(stop_tracing) || !do_once(undo_replacements) || !do_once(undo_nops))
		return false;
	pb_sigaction_undo();
	leave_memory();
	return true;
}

bool pb_detach_inherited(void)
{
	pb_agent_tid = (uint32_t)pb_sys(SYS_gettid);
	pb_stop_forget_dirs();
	pb_creds_forget();
	look_at_text();
	return pb_detach(NULL);
}
