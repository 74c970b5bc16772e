/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * For tests of the writer: interrupts the writing of a record at the k-th instruction. Install
 * on_step() for SIGTRAP, set `nested` and `jump`, and write the record between begin_steps() and
 * end_steps(). If `step` is less than k afterwards, writing the record took fewer than k
 * instructions. If `step_later` isn't 0, the handler also acts at that step. With `jump`, the
 * handler jumps to `out`, which the caller has set with sigsetjmp(). Set `step_at` to 0 before
 * other records are written.
 */
#ifndef PB_TEST_WRITER_STEP_H
#define PB_TEST_WRITER_STEP_H
#include <setjmp.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "../step_path.h"
#include "writer_ring.h"

/* The handler's action. CHANGE: goes on to another chunk twice. SUPPLY: frees chunk 1 and writes a
 * record. DRAIN: at step_at and at step_later, fills the chunk, goes on to another chunk, and
 * drains the full chunks. AGAIN: does the same at step_at only, and then goes on to another chunk
 * once more. UNSEEN: writes a record at step_at and at step_later; the writer isn't notified that a
 * handler runs. FORK_RECORD: forks, and the child writes records in the handler. */
enum nested { NOTHING, RECORD, CHANGE, SUPPLY, DRAIN, AGAIN, UNSEEN, FORK, FORK_RECORD };

extern long step, step_at, step_later;
extern uint8_t *drained;	/* for drain(): element N counts the drained chunks with seq N */
extern enum nested nested;
extern bool jump;
extern sigjmp_buf out;
extern bool all;		/* tests each instruction, not only some */

/* After a fork: the child waits in the handler until the parent closes go_on[1]. */
extern bool is_child;
extern int go_on[2];
extern pid_t child;

void on_step(int sig, siginfo_t *info, void *context);

/* Step k is counted from here. Runs with the same path must write the same record to the same ring.
 * Without a path, all steps up to k are single steps. `later` is the path from step k to
 * step_later, or NULL. */
void prepare_steps(struct step_path *path, long k, struct step_path *later);

/* Returns whether the breakpoint of a path is set and wasn't hit yet. */
bool runs_to_breakpoint(void);

static inline void begin_steps(struct step_path *path, long k, struct step_path *later)
{
	prepare_steps(path, k, later);
	set_trap_flag(!runs_to_breakpoint());
}

static inline void end_steps(void)
{
	set_trap_flag(false);
	assert_false(runs_to_breakpoint());
}

#endif
