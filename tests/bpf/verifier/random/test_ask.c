/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Tests ask_answer(), which returns the meaning of a verdict of the kernel. The last two tests ask
 * the kernel. Without root, they are skipped. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <cmocka.h>
#include <string.h>
#include "ask.h"

#define STATS "processed 14 insns (limit 1000000) max_states_per_insn 0 total_states 1 " \
	      "peak_states 1 mark_read 0\n"
/* With level 0, ask_verdict() sets the kernel's log level to LOG_STATS (ask.c). At this level, the
 * log ends with these lines. */
#define MORE_STATS "verification time 2435714 usec\nstack depth 16+64\n" STATS

static void test_answers(void **state)
{
	static const struct {
		int err;
		const char *log;
		enum ask_answer answer;
	} cases[] = {
		{ 0, STATS, ASK_ACCEPTS },
		{ -EACCES, "R0 !read_ok\n" STATS, ASK_REFUSES },
		{ -EINVAL, "unknown opcode 00\n" STATS, ASK_REFUSES },
		{ -EINVAL, "", ASK_REFUSES },
		{ -E2BIG, "BPF program is too large. Processed 1000001 insn\n" STATS,
		  ASK_GIVES_UP },
		{ -E2BIG, "BPF program is too large. Processed 1000001 insn\n" MORE_STATS,
		  ASK_GIVES_UP },
		{ -E2BIG, "The sequence of 8193 jumps is too complex.\n" STATS, ASK_GIVES_UP },
		{ -EFAULT, "The sequence of 8193 jumps is too complex.\n" STATS, ASK_GIVES_UP },
		{ -E2BIG, "The sequence of 8193 jumps is too complex for async cb.\n" STATS,
		  ASK_GIVES_UP },
		{ -E2BIG, "the call stack of 9 frames is too deep !\n" STATS, ASK_REFUSES },
		{ -E2BIG, "the call stack of 9 frames is too deep !\n" MORE_STATS, ASK_REFUSES },
		{ -E2BIG, MORE_STATS, ASK_REFUSES },
		{ -E2BIG, "", ASK_REFUSES },
		/* only the last line is the reason of the refusal */
		{ -EACCES, "BPF program is too large. Processed 1000001 insn\nR0 !read_ok\n" STATS,
		  ASK_REFUSES },
		{ -EACCES, "The sequence of calls\njumps is too complex\n" STATS, ASK_REFUSES },
		{ -ENOMEM, STATS, ASK_GIVES_UP },
		{ -EAGAIN, "25: (85) call bpf_loop#181\n" STATS, ASK_GIVES_UP },
		{ -EINTR, "", ASK_GIVES_UP },
		{ -ENOSPC, "", ASK_GIVES_UP },
		{ -EFAULT, "verifier bug: REG INVARIANTS VIOLATION\n" STATS, ASK_HAS_BUG },
	};

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		strcpy(ask_log, cases[i].log);
		if (ask_answer(cases[i].err) != cases[i].answer)
			fail_msg("%d, %s: %d", cases[i].err, cases[i].log,
				 ask_answer(cases[i].err));
	}
}

/* The program has a loop with may_goto around bpf_loop. Linux 6.18 walks this loop for minutes. The
 * load must stop after ask_seconds. */
static void test_limit(void **state)
{
	static struct gen_program p;
	int err;

	if (ask_open())
		skip();
	generate(&p, 700018719);
	ask_seconds = 1;
	err = ask_verdict(&p, 0);
	if (err != -EAGAIN)
		skip();		/* another kernel decides at once */
	assert_int_equal(ask_answer(err), ASK_GIVES_UP);
}

/* The program is too large for the running kernel. Unlike test_answers(), this test uses a log that
 * the running kernel writes. */
static void test_too_large(void **state)
{
	static struct gen_program p;
	int err;

	if (ask_open())
		skip();
	generate(&p, 2410);
	ask_seconds = 60;
	err = ask_verdict(&p, 0);
	if (err != -E2BIG)
		skip();		/* another kernel or a slow machine has another verdict */
	assert_int_equal(ask_answer(err), ASK_GIVES_UP);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_answers),
					    cmocka_unit_test(test_limit),
					    cmocka_unit_test(test_too_large) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
