/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The running kernel as judge of generated programs: its verdict, its words, and what
 * a test run does with maps and packet.
 */
#ifndef PB_TEST_ASK_H
#define PB_TEST_ASK_H
#include "generate.h"

extern char ask_log[1 << 20];		/* what it said last */
extern int ask_seconds;			/* in which it verifies a program, then it is interrupted: a loop may take it minutes */

/* Makes its maps. 0, or -errno: it can't be asked. */
int ask_open(void);
/* A process without privileges can't make any later. */
void ask_make_all(void);
/* A descriptor, or -errno. level: of the log, 0: only what it refuses the program for */
int ask_load(const struct gen_program *p, int level);
/* The same, and nothing is kept. */
int ask_verdict(const struct gen_program *p, int level);

/*
 * What a verdict means, by its errno and the log's last line. Only ASK_REFUSES says something of the program.
 * The kernel gives up if the log says that the program is too large or its jumps are too complex, whatever the errno;
 * by ENOMEM; by EAGAIN or EINTR, when a signal (a stop, a freezer, the end of the time that ask_load gives it) comes in
 * between; and by ENOSPC, where the log has no room for a reason. By EFAULT it says that it has a bug. All else is a refusal, E2BIG
 * without those words (too many frames) as well.
 */
enum ask_answer { ASK_ACCEPTS, ASK_REFUSES, ASK_GIVES_UP, ASK_HAS_BUG };
/* err: of the last ask_load or ask_verdict */
enum ask_answer ask_answer(int err);
/* The log's last line before its statistics, up to the end of the line. */
const char *ask_last_line(void);
/* Of its last words. Later kernels link a number to another one it is so much more than, and call that a
 * pointer's offset when it is added to one, whatever is known of the number itself. */
bool ask_takes_delta_for_offset(void);

/*
 * A run with the world (world.h) as it is now: maps and packet are the same before it.
 * 0 or -errno, the result, and a sum of maps and packet that ask_sum gives of the world.
 */
struct ask_result {
	uint32_t r0;
	uint64_t sum;
};
int ask_run(int fd, uint32_t type, struct ask_result *out);
uint64_t ask_sum(uint32_t type);
#endif
