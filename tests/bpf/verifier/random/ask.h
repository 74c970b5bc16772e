/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Asks the running kernel about generated programs. The kernel's answers are its verdict, its log,
 * and the contents of maps and packet after a test run.
 */
#ifndef PB_TEST_ASK_H
#define PB_TEST_ASK_H
#include "generate.h"

extern char ask_log[1 << 20];		/* the log of the last load */
extern int ask_seconds;			/* time limit of a load in seconds. Without a limit,
					 * the kernel may verify a program with loops for
					 * minutes */

/* Makes maps in the kernel. Returns 0, or -errno if the kernel can't be asked. */
int ask_open(void);
/* Makes the program arrays of all types. Must be called before the process drops privileges. */
void ask_make_all(void);
/* Loads the program. Returns a descriptor, or -errno. `level` is the log level. With level 0, the
 * log has only the reason of a refusal and statistics. */
int ask_load(const struct gen_program *p, int level);
/* Loads the program like ask_load(), and unloads it. Returns 0, or -errno. */
int ask_verdict(const struct gen_program *p, int level);

/*
 * The meaning of a verdict, by its errno and the log's last line. A refusal (ASK_REFUSES) is a
 * statement about the program. ASK_GIVES_UP and ASK_HAS_BUG say nothing about the program. The
 * kernel gives up in four cases. (1) The log says that the program is too large or that its jumps
 * are too complex. The errno doesn't matter. (2) ENOMEM. (3) EAGAIN or EINTR, after a signal (a
 * stop, a freezer, the time limit of ask_load()). (4) ENOSPC, if the log has no room for a reason.
 * EFAULT reports a bug of the kernel. Every other error is a refusal. Even E2BIG is a refusal if
 * the log doesn't match case 1: the kernel also returns E2BIG for a program with too many frames.
 */
enum ask_answer { ASK_ACCEPTS, ASK_REFUSES, ASK_GIVES_UP, ASK_HAS_BUG };
/* Returns the meaning of the last verdict. `err` is the return value of the last ask_load() or
 * ask_verdict(). */
enum ask_answer ask_answer(int err);
/* Returns the log's last line before the statistics. */
const char *ask_last_line(void);
/* Returns whether the last log shows a flaw of Linux 6.18. If r2 = r1 + c, this kernel links r2 to
 * r1 and calls c the delta of r2. If the program then adds r2 to a pointer, the kernel uses the
 * delta as the whole offset. It ignores the bounds of r2. */
bool ask_takes_delta_for_offset(void);

/*
 * ask_run() copies the contents of the test's maps and packet (world.h) to the kernel's maps and
 * packet, and runs the program in the kernel. If the run succeeds, returns 0, and *out gets r0 and
 * a hash of the kernel's maps and packet. Otherwise returns -errno. ask_sum() computes the same
 * hash of the test's maps and packet.
 */
struct ask_result {
	uint32_t r0;
	uint64_t sum;
};
int ask_run(int fd, uint32_t type, struct ask_result *out);
uint64_t ask_sum(uint32_t type);
#endif
