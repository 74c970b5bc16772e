/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Runs of eBPF programs that a handler leaves by a jump (engine/prog/prog_run.c).
 *
 * In the first tests, a signal comes in the middle of the preparation of a forked child for runs of
 * eBPF programs, at each of its instructions (also those of prog_map.c). The handler makes a hit
 * itself, leaves the code by a jump, or forks. After that, runs must be possible, and the child
 * must hold the lock of its owner number. A process that the handler has forked must have no part
 * in this lock. The parent traces the child, because the preparation blocks all signals.
 */
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/sys.h"
#include "bpf/map/map_file.h"
#include "bpf/map/map_owner.h"
#include "engine/graph/thread.h"
#include "engine/prog/prog.h"
#include "engine/prog/prog_priv.h"
#include "engine/sandbox.h"

#define SLOT		0x7000
#define STRIDE		3
#define MOST_STEPS	100000

enum { OKAY, NOT_READY, NO_LOCK, SHARED };	/* exit statuses of a child */

uint32_t pb_sandboxed;
bool pb_filtered;

static struct pb_thread thread;
static struct pb_stack stack;
static struct pb_process process;
static struct pb_bpf_map made, map;
static char path[32];
static sigjmp_buf left;
static volatile bool *over;		/* in shared memory: the child's first run is open */
static int to_child[2], from_child[2];	/* pipes to and from the process that a handler forks */
static volatile pid_t forked;
static void (*volatile act)(void);
static volatile int came;		/* number of deferred signals that were delivered */

static void map_again(void)
{
	pb_prog_map_again(&map, path, true);
}

static void on_signal(int sig)
{
	act();
}

static void hit(void)
{
	static struct pb_prog_run run;
	struct pb_prog_open *o = pb_prog_open(&thread, SLOT - 512, &run);

	if (o != PB_PROG_NOT_READY)
		pb_prog_close(&thread, o);
}

static void leave(void)
{
	siglongjmp(left, 1);
}

/* Does what the replacement of fork (engine/fork.c) does in a child. */
static void fork_child(void)
{
	forked = fork();
	if (!forked && !pb_prog_runs_ready())
		pb_prog_map_again(&map, path, false);
}

static bool is_locked(uint32_t owner)
{
	short type = F_WRLCK;
	int fd = open(path, O_RDWR);
	bool locked = fd >= 0 && !pb_bpf_owner_lock(fd, F_OFD_GETLK, &type, owner, 1) &&
		      type != F_UNLCK;

	close(fd);
	return locked;
}

/* Run in the process that a handler has forked. It lives until the pipe has no writer any more. */
static void show_owner(void)
{
	char c;

	close(to_child[1]);
	if (write(from_child[1], &map.owner, sizeof(map.owner)) == sizeof(map.owner))
		while (read(to_child[0], &c, 1) > 0)
			;
	_exit(0);
}

static bool shares_lock(void)
{
	uint32_t owner;

	if (read(from_child[0], &owner, sizeof(owner)) != sizeof(owner))
		return true;
	close(to_child[1]);
	waitpid(forked, NULL, 0);
	return owner && (owner == map.owner || is_locked(owner));
}

static int run_in_child(void)
{
	static struct pb_prog_run run, deeper;
	struct pb_prog_open *o;

	forked = -1;
	if (pipe(to_child) || pipe(from_child))
		return NO_LOCK;
	if (!sigsetjmp(left, 1)) {
		ptrace(PTRACE_TRACEME, 0, 0, 0);
		pb_sys(SYS_kill, getpid(), SIGSTOP);
		o = pb_prog_open(&thread, SLOT, &run);
		*over = true;
	} else {
		o = pb_prog_open(&thread, SLOT - 512, &deeper);
	}
	if (!forked)
		show_owner();
	if (!o || o == PB_PROG_NOT_READY)
		return NOT_READY;
	if (!map.owner || !is_locked(map.owner))
		return NO_LOCK;
	return forked > 0 && shares_lock() ? SHARED : OKAY;
}

/* Steps the child so many times, or until its run is open. Returns false if it is open. */
static bool go(pid_t pid, long steps)
{
	int status;

	assert_int_equal(waitpid(pid, &status, 0), pid);
	while (steps-- && !*over) {
		assert_int_equal(ptrace(PTRACE_SINGLESTEP, pid, 0, 0), 0);
		assert_int_equal(waitpid(pid, &status, 0), pid);
		assert_true(WIFSTOPPED(status) && WSTOPSIG(status) == SIGTRAP);
	}
	return !*over;
}

static void interrupt(void (*handler)(void))
{
	bool more = true;
	int status;
	long at;

	act = handler;
	signal(SIGUSR1, on_signal);
	for (at = 1; more && at < MOST_STEPS; at += STRIDE) {
		pid_t pid;

		*over = false;
		pid = fork();
		if (!pid)
			_exit(run_in_child());
		more = go(pid, at);
		if (more)
			kill(pid, SIGUSR1);
		assert_int_equal(ptrace(PTRACE_DETACH, pid, 0, 0), 0);
		assert_int_equal(waitpid(pid, &status, 0), pid);
		assert_true(WIFEXITED(status));
		assert_int_equal(WEXITSTATUS(status), OKAY);
	}
	assert_false(more);
	assert_true(at > 100);
}

static void a_handler_makes_a_hit(void **state)
{
	interrupt(hit);
}

static void a_handler_jumps(void **state)
{
	interrupt(leave);
}

static void a_handler_forks(void **state)
{
	interrupt(fork_child);
}

/* ---- runs that were left ----------------------------------------------------------------- */

static char memory[1 << 16] __attribute__((aligned(16)));

/* A run whose state is at this offset in the stack */
static struct pb_prog_run *run_at(uint32_t offset)
{
	return (struct pb_prog_run *)(memory + offset);
}

static struct pb_prog_open *open_at(uint32_t offset)
{
	return pb_prog_open(&thread, (uint64_t)(memory + offset + 1024), run_at(offset));
}

static bool is_running_at(uint32_t offset)
{
	return pb_prog_is_running((uint64_t)(memory + offset));
}

/* A jump has left a run. Deeper code of the program overwrites the run's state. Then it makes a hit
 * of its own. */
static void a_left_run_is_overwritten(void **state)
{
	struct pb_prog_open *o = open_at(0x8000), *inner;

	assert_true(is_running_at(0x4000));
	assert_false(is_running_at(0xc000));
	memset(run_at(0x8000), 0xff, sizeof(struct pb_prog_run));
	assert_false(is_running_at(0x4000));
	inner = open_at(0x4000);
	assert_true(is_running_at(0x2000));
	assert_false(is_running_at(0x6000));
	pb_prog_close(&thread, inner);
	assert_false(is_running_at(0x2000));
	pb_prog_close(&thread, o);
}

/* A handler on a stack that lies inside of the run's stack has interrupted the run. */
static void a_stack_lies_in_the_stack(void **state)
{
	struct pb_stack alternate = {
		.lo = (uint64_t)(memory + 0xc000), .hi = (uint64_t)(memory + 0xe000),
	};
	struct pb_prog_open *o = open_at(0x8000);

	thread.alternate = &alternate;
	assert_true(is_running_at(0xd000));
	assert_false(is_running_at(0xf000));
	thread.alternate = NULL;
	pb_prog_close(&thread, o);
	assert_false(is_running_at(0xd000));

	/* a stack that was made by makecontext() */
	thread.own = stack;
	thread.stack = &thread.own;
	process.holes = true;
	o = open_at(0x8000);
	assert_true(is_running_at(0xd000));
	process.holes = false;
	assert_false(is_running_at(0xd000));
	pb_prog_close(&thread, o);
	thread.stack = &stack;
}

static void on_deferred(int sig, siginfo_t *info, void *context)
{
	came = came + 1;
}

/* A handler makes a hit in the middle of a run. A signal is deferred until the end of the inner
 * run. Another handler jumps out of both, back to the outer run, and sets the mask. When the outer
 * run ends, the mask stays. */
static void a_deferred_signal_of_a_left_run(void **state)
{
	struct sigaction sa = { .sa_sigaction = on_deferred, .sa_flags = SA_SIGINFO };
	siginfo_t info = { .si_signo = SIGUSR2, .si_code = SI_QUEUE };
	struct pb_prog_open *outer = open_at(0x8000);
	ucontext_t context = { 0 };
	sigset_t mask;

	came = 0;
	sigaction(SIGUSR2, &sa, NULL);
	assert_non_null(open_at(0x4000));
	context.uc_mcontext.gregs[REG_RSP] = (greg_t)(memory + 0x2000);
	/* the mask of the outer run's handler */
	sigaddset(&context.uc_sigmask, SIGUSR1);
	assert_true(pb_prog_defer(SIGUSR2, &info, &context, true));
	assert_int_equal(came, 0);
	sigemptyset(&mask);
	sigprocmask(SIG_SETMASK, &mask, NULL);
	assert_int_equal(came, 1);
	pb_prog_close(&thread, outer);
	sigprocmask(SIG_SETMASK, NULL, &mask);
	assert_false(sigismember(&mask, SIGUSR1));
}

/* A run is about to announce a change of an element. A handler interrupts it, and a run in the
 * handler makes the same announcement, and is left by a jump. Or it fills the same bucket of a map
 * of stacks. A lock is different: the inner run may only have tried to take it. */
static void both_runs_take_the_same(uint32_t type, uint64_t word, uint64_t *what, uint64_t after)
{
	struct pb_bpf_map_spec spec = { .attr = { type, 4, 64, 4, 0 }, .cpu_slots = 1,
		.types = { .spin_lock_off = type == BPF_MAP_TYPE_HASH ? 0 : -1, .timer_off = -1 } };
	struct pb_prog_open *outer = open_at(0x8000), *last;
	struct pb_bpf_map m;

	assert_int_equal(pb_bpf_map_create(&m, &spec), 0);
	pb_prog_takes(&run_at(0x8000)->run, &m, what, word);
	assert_non_null(open_at(0x4000));
	pb_prog_takes(&run_at(0x4000)->run, &m, what, word);
	*what = word;
	last = open_at(0x6000);
	assert_true(*what == after);
	pb_prog_close(&thread, last);
	pb_prog_gives(&run_at(0x8000)->run, what);
	pb_prog_close(&thread, outer);
	pb_bpf_map_close(&m);
}

static void an_outer_run_has_noted_the_same(void **state)
{
	uint64_t words[8];

	both_runs_take_the_same(BPF_MAP_TYPE_HASH, 77ull << 32 | 1, words, 0);
	both_runs_take_the_same(BPF_MAP_TYPE_STACK_TRACE, 77ull << 32 | 2, words, 1ull << 12);
	both_runs_take_the_same(BPF_MAP_TYPE_ARRAY, 77, words, 77);
}

static int start(void **state)
{
	struct pb_bpf_map_spec spec = { .attr = { BPF_MAP_TYPE_ARRAY, 4, 8, 1, 0 },
		.cpu_slots = 1, .types = { .spin_lock_off = -1, .timer_off = -1 } };

	thread.w.tid = 77;
	thread.stack = &stack;
	thread.top = (struct pb_open_call *)memory;
	stack.lo = (uint64_t)memory;
	stack.hi = stack.lo + sizeof(memory);
	pb_process = &process;
	pb_tls = &thread;
	pb_threads = &thread;
	over = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (over == MAP_FAILED || pb_bpf_map_create(&made, &spec))
		return -1;
	snprintf(path, sizeof(path), "/proc/self/fd/%d", made.fd);
	return pb_prog_map(&map, path) || pb_prog_runs_start(map_again) ? -1 : 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_handler_makes_a_hit),
		cmocka_unit_test(a_handler_jumps),
		cmocka_unit_test(a_handler_forks),
		cmocka_unit_test(a_left_run_is_overwritten),
		cmocka_unit_test(a_stack_lies_in_the_stack),
		cmocka_unit_test(a_deferred_signal_of_a_left_run),
		cmocka_unit_test(an_outer_run_has_noted_the_same),
	};

	return cmocka_run_group_tests(tests, start, NULL);
}
