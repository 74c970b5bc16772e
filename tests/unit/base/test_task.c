/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Tests how base/task.c reads the state of a process's threads in /proc. If a recorder doesn't
 * answer, this state shows whether the recorder is only held up and will answer later. */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>

#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include "base/task.h"

static void wait_for_end(void)
{
	for (;;)
		pause();
}

static void spin(void)
{
	for (;;)
		;
}

/* The process waits for its vfork child. Meanwhile the process is in state D, as if it waited for a
 * disk. */
static void wait_for_vfork(void)
{
	if (!vfork()) {
		alarm(30);
		for (;;)
			pause();
	}
	_exit(0);
}

static pid_t child_that(void (*does)(void))
{
	pid_t pid = fork();

	if (!pid) {
		setpgid(0, 0);
		does();
	}
	return pid;
}

/* Waits until the process is in this state. */
static bool comes_to(pid_t pid, char state)
{
	struct timespec pause = { .tv_nsec = 1000000 };
	int dir = pb_task_dir((uint32_t)pid);
	char is = 0;

	for (int i = 0; i < 20000 && (is = pb_task_state(dir, (uint32_t)pid)) != state; i++)
		nanosleep(&pause, NULL);
	close(dir);
	return is == state;
}

static void end(pid_t pid)
{
	kill(-pid, SIGKILL);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

static void a_runnable_process_is_held_up(void **state)
{
	pid_t pid = child_that(spin);

	assert_true(comes_to(pid, 'R'));
	assert_true(pb_process_is_held_up((uint32_t)pid));
	end(pid);
}

static void a_process_in_the_kernel_is_held_up(void **state)
{
	pid_t pid = child_that(wait_for_vfork);

	assert_true(comes_to(pid, 'D'));
	assert_true(pb_process_is_held_up((uint32_t)pid));
	end(pid);
}

static void a_sleeping_or_stopped_process_is_not(void **state)
{
	pid_t pid = child_that(wait_for_end);

	assert_true(comes_to(pid, 'S'));
	assert_false(pb_process_is_held_up((uint32_t)pid));
	kill(pid, SIGSTOP);
	assert_true(comes_to(pid, 'T'));
	assert_false(pb_process_is_held_up((uint32_t)pid));
	end(pid);
	assert_false(pb_process_is_held_up((uint32_t)pid));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_runnable_process_is_held_up),
		cmocka_unit_test(a_process_in_the_kernel_is_held_up),
		cmocka_unit_test(a_sleeping_or_stopped_process_is_not),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
