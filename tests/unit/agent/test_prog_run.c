/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Interrupts the preparation of a forked child for runs of eBPF programs, at its instructions
 * (engine/prog/prog_run.c, prog_map.c). The signal handler makes a hit itself, or leaves the
 * preparation by a jump. In both cases, the child must hold the lock of its owner number after it.
 */
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#include "bpf/map/map_file.h"
#include "bpf/map/map_owner.h"
#include "engine/graph/thread.h"
#include "engine/prog/prog.h"
#include "engine/prog/prog_priv.h"
#include "engine/sandbox.h"
#include "../step_path.h"

#define SLOT		0x7000
#define STRIDE		3
#define MOST_STEPS	100000

enum { READY, OVER, NOT_READY, NO_LOCK };	/* exit statuses of a child. OVER: the preparation
						 * was over before the step */

uint32_t pb_sandboxed;
bool pb_filtered;

static struct pb_thread thread;
static struct pb_stack stack;
static struct pb_bpf_map made, map;
static char path[32];
static sigjmp_buf left;
static volatile long step, step_at;
static void (*act)(void);

static void map_again(void)
{
	pb_prog_map_again(&map, path, true);
}

static void on_step(int sig, siginfo_t *info, void *context)
{
	step = step + 1;
	if (step != step_at)
		return;
	act();
	((ucontext_t *)context)->uc_mcontext.gregs[REG_EFL] &= ~(greg_t)TRAP_FLAG;
}

static void hit(void)
{
	struct pb_prog_open *o = pb_prog_open(&thread, SLOT - 512, NULL);

	if (o != PB_PROG_NOT_READY)
		pb_prog_close(&thread, o);
}

static void leave(void)
{
	siglongjmp(left, 1);
}

static bool has_lock(void)
{
	short type = F_WRLCK;
	int fd = open(path, O_RDWR);

	return fd >= 0 && map.owner && !pb_bpf_owner_lock(fd, F_OFD_GETLK, &type, map.owner, 1) &&
	       type != F_UNLCK;
}

static int run_in_child(void)
{
	static struct pb_prog_open *o;

	if (!sigsetjmp(left, 1)) {
		set_trap_flag(true);
		o = pb_prog_open(&thread, SLOT, NULL);
		set_trap_flag(false);
	} else {
		o = pb_prog_open(&thread, SLOT, NULL);
	}
	if (!o || o == PB_PROG_NOT_READY)
		return NOT_READY;
	if (!has_lock())
		return NO_LOCK;
	return step < step_at ? OVER : READY;
}

static void interrupt(void (*handler)(void))
{
	struct sigaction sa = { .sa_sigaction = on_step, .sa_flags = SA_SIGINFO };
	int status = READY;

	act = handler;
	sigaction(SIGTRAP, &sa, NULL);
	for (step_at = 1; status == READY && step_at < MOST_STEPS; step_at += STRIDE) {
		pid_t pid = fork();

		if (!pid)
			_exit(run_in_child());
		assert_int_equal(waitpid(pid, &status, 0), pid);
		assert_true(WIFEXITED(status));
		status = WEXITSTATUS(status);
	}
	assert_int_equal(status, OVER);
	assert_true(step_at > 100);
}

static void a_handler_makes_a_hit(void **state)
{
	interrupt(hit);
}

static void a_handler_jumps(void **state)
{
	interrupt(leave);
}

static int start(void **state)
{
	struct pb_bpf_map_spec spec = { .attr = { BPF_MAP_TYPE_ARRAY, 4, 8, 1, 0 },
		.cpu_slots = 1, .types = { .spin_lock_off = -1, .timer_off = -1 } };

	thread.w.tid = 77;
	thread.stack = &stack;
	pb_threads = &thread;
	if (pb_bpf_map_create(&made, &spec))
		return -1;
	snprintf(path, sizeof(path), "/proc/self/fd/%d", made.fd);
	return pb_prog_map(&map, path) || pb_prog_runs_start(map_again) ? -1 : 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_handler_makes_a_hit),
		cmocka_unit_test(a_handler_jumps),
	};

	return cmocka_run_group_tests(tests, start, NULL);
}
