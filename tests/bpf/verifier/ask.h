/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Asks the running kernel about generated programs: its verdict, its log, and what a test
 * run does with maps and packet.
 */
#ifndef PB_TEST_ASK_H
#define PB_TEST_ASK_H
#include "generate.h"

extern char ask_log[1 << 20];		/* the log of the last load */
extern int ask_seconds;			/* seconds after which a load is interrupted: a loop may take minutes */

/* Makes maps in the kernel. Returns 0, or -errno if the kernel can't be asked. */
int ask_open(void);
/* Makes the program arrays of all types. Call it before dropping privileges. */
void ask_make_all(void);
/* Loads the program. Returns a descriptor, or -errno. level: the log level; with 0, the log has only the reason of a
 * refusal. */
int ask_load(const struct gen_program *p, int level);
/* Like ask_load(), but unloads the program. Returns 0, or -errno. */
int ask_verdict(const struct gen_program *p, int level);

/*
 * What a verdict means, by its errno and the log's last line. Only ASK_REFUSES is a statement about
 * the program. The kernel gives up in these cases: the log says that the program is too large or
 * its jumps are too complex, whatever the errno; ENOMEM; EAGAIN or EINTR, after a signal (a stop,
 * a freezer, the time limit of ask_load()); ENOSPC, if the log has no room for a reason. With EFAULT
 * the kernel reports a bug of its own. Every other error is a refusal, even E2BIG without those
 * words (too many frames).
 */
enum ask_answer { ASK_ACCEPTS, ASK_REFUSES, ASK_GIVES_UP, ASK_HAS_BUG };
/* Says what the verdict of the last ask_load() or ask_verdict() means. err: its return value. */
enum ask_answer ask_answer(int err);
/* The log's last line before its statistics, up to the end of the line. */
const char *ask_last_line(void);
/* Whether the last log shows this flaw: later kernels link a number to another number with a delta.
 * When they add the linked number to a pointer, they take the delta for the pointer's offset,
 * whatever is known of the number itself. */
bool ask_takes_delta_for_offset(void);

/*
 * Runs the program in the kernel, with maps and packet as they are in the world (world.h).
 * Returns 0 with r0 and a hash of the kernel's maps and packet, or -errno. ask_sum() computes
 * the same hash for the world.
 */
struct ask_result {
	uint32_t r0;
	uint64_t sum;
};
int ask_run(int fd, uint32_t type, struct ask_result *out);
uint64_t ask_sum(uint32_t type);
#endif
