/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Tests stops of all threads. A thread must not notice a stop, even if it gets no processor in
 * time. A stop that asks its requester must end, whichever thread has requested it, and even if its
 * helper is killed. New threads are no reason for a failure. A stop must not leave the process more
 * open to others than before. */
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <linux/capability.h>
#include <linux/filter.h>
#include <fcntl.h>
#include <linux/seccomp.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>
#include "abi/messages.h"
#include "arch/arch.h"
#include "arch/x86_64/hit_stacks.h"
#include "arch/x86_64/signal_frames.h"
#include "arch/x86_64/vm_users.h"
#include "base/dumpable.h"
#include "base/task.h"

#define ROUNDS 6
#define LATE_MOST_NS 2000000000	/* if a thread is late by more than this, the stop may interrupt its
				 * system call */

/* stands for the label in hooks.S, which is not linked */
const uint8_t pb_signal_called[1];
/* thunks.S is linked, and its thunk of makecontext needs these symbols */
void *pb_original_makecontext;
void pb_note_makecontext(void);
void pb_note_makecontext(void)
{
}

static char helper_name[32];
static int epoll_fd, event_fd;
/* interrupted: number of waits that failed with EINTR. waiting: number of rounds in which the
 * thread has begun to wait. woken: number of rounds that have ended. */
static volatile int interrupted, waiting, woken;

static void use_first_cpu(int policy)
{
	struct sched_param p = { 0 };
	cpu_set_t cpus;

	CPU_ZERO(&cpus);
	CPU_SET(0, &cpus);
	sched_setaffinity(0, sizeof(cpus), &cpus);
	sched_setscheduler(0, policy, &p);
}

static uint64_t now_ns(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

static uint64_t used_ns(void)
{
	return now_ns(CLOCK_THREAD_CPUTIME_ID);
}

/* This thread uses up its share of processor time before each wait. So after each wake-up, it
 * stays runnable for a long time until it gets the processor. */
static void *starved(void *arg)
{
	struct epoll_event e;

	use_first_cpu(SCHED_IDLE);
	for (int i = 0; i < ROUNDS; i++) {
		uint64_t end = used_ns() + 1000000, count;

		while (used_ns() < end)
			;
		waiting++;
		while (epoll_wait(epoll_fd, &e, 1, -1) < 0 && errno == EINTR)
			interrupted++;
		read(event_fd, &count, 8);
		woken++;
	}
	return NULL;
}

static uint64_t stays(uint64_t pc)
{
	return 0;
}

static int nothing(const struct pb_stopped *at, size_t nr)
{
	return 0;
}

/* A stop is given up if it waits too long for a thread, for example for a thread that gets no
 * processor. The stop's interrupt reaches this thread later. If the thread is late by less than
 * LATE_MOST_NS, its system calls must not fail with EINTR. */
static void starved_thread_sees_no_stop(void **state)
{
	struct pb_stop s = { .moved = stays, .stopped = nothing };
	pid_t busy = fork();
	pthread_t thread;
	int seen = 0;

	if (!busy) {
		use_first_cpu(SCHED_OTHER);
		alarm(60);
		for (;;)
			;
	}
	epoll_fd = epoll_create1(0);
	event_fd = eventfd(0, EFD_NONBLOCK);
	assert_return_code(epoll_ctl(epoll_fd, EPOLL_CTL_ADD, event_fd,
				     &(struct epoll_event){ .events = EPOLLIN }), errno);
	assert_int_equal(pthread_create(&thread, NULL, starved, NULL), 0);
	pb_agent_tid = (uint32_t)gettid();
	for (int i = 0; i < ROUNDS; i++) {
		uint64_t start;

		while (waiting == i)
			usleep(1000);
		usleep(1000);
		interrupted = 0;
		start = now_ns(CLOCK_MONOTONIC);
		pb_stop_world(&s);
		write(event_fd, &(uint64_t){ 1 }, 8);
		while (woken == i)
			usleep(1000);
		if (now_ns(CLOCK_MONOTONIC) - start < LATE_MOST_NS)
			seen += interrupted;
	}
	kill(busy, SIGKILL);
	waitpid(busy, NULL, 0);
	pthread_join(thread, NULL);
	assert_int_equal(seen, 0);
}

/* The thread that starts the agent's thread may be late to store pb_agent_tid. Meanwhile the
 * agent's thread may already stop all others. */
static void requester_calls_stopped(void **state)
{
	struct pb_stop s = { .moved = stays, .stopped = nothing };

	pb_agent_tid = 0;
	alarm(60);
	assert_int_equal(pb_stop_world(&s), 0);
	alarm(0);
}

/* Returns this thread's only child, or 0. */
static pid_t only_child(void)
{
	char path[64];
	int child = 0;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/self/task/%d/children", gettid());
	f = fopen(path, "r");
	if (!f)
		return 0;
	if (fscanf(f, "%d", &child) != 1)
		child = 0;
	fclose(f);
	return child;
}

static int read_helper(const struct pb_stopped *at, size_t nr)
{
	pid_t child = only_child();
	char path[64];
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/comm", child);
	f = fopen(path, "r");
	if (!f)
		return 0;
	if (fscanf(f, "%31s", helper_name) != 1)
		helper_name[0] = 0;
	fclose(f);
	return 0;
}

/* By this name the injector knows the process that stops the threads. */
static void helper_has_a_name(void **state)
{
	struct pb_stop s = { .moved = stays, .stopped = read_helper };

	assert_int_equal(pb_stop_world(&s), 0);
	assert_string_equal(helper_name, PB_STOP_HELPER);
}

static int killed;

static int kill_helper(const struct pb_stopped *at, size_t nr)
{
	pid_t child = only_child();

	killed += child && !kill(child, SIGKILL);
	/* before the helper can be waited for, the kernel has set GONE */
	waitid(P_PID, (id_t)child, &(siginfo_t){ 0 }, WEXITED | WNOWAIT | __WALL);
	return 0;
}

/* `pkill patchbay` kills the helper, too. */
static void killed_helper_ends_the_stop(void **state)
{
	struct pb_stop s = { .moved = stays, .stopped = kill_helper };

	alarm(60);
	assert_int_equal(pb_stop_world(&s), 0);
	alarm(0);
	assert_int_equal(killed, 1);
}

static void *waits_for_byte(void *arg)
{
	char byte;

	read(*(int *)arg, &byte, 1);
	return NULL;
}

static int wait_for_byte(void *arg)
{
	waits_for_byte(arg);
	return 0;
}

/* Runs in a process that is so new that few PIDs are newer. Returns 0, or the number of the check
 * that has failed. */
static int find_new_users(void)
{
	static char stack[65536] __attribute__((aligned(16)));
	struct pb_proc_dirs dirs;
	int ends[2], failed = 0;
	pthread_t thread;
	pid_t child;

	if (pb_proc_dirs_open(&dirs) || pipe(ends) ||
	    pthread_create(&thread, NULL, waits_for_byte, &ends[0]))
		return 1;
	if (pb_vm_users_new(&dirs, (uint32_t)getpid()))
		failed = 2;
	child = clone(wait_for_byte, stack + sizeof(stack), CLONE_VM | SIGCHLD, &ends[0]);
	if (!failed && (child < 0 || !pb_vm_users_new(&dirs, (uint32_t)getpid())))
		failed = 3;
	write(ends[1], "12", 2);
	pthread_join(thread, NULL);
	waitpid(child, NULL, 0);
	return failed;
}

static void new_thread_is_no_process(void **state)
{
	pid_t child = fork();
	int status;

	if (!child)
		_exit(find_new_users());
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
}

/* PR_GET_DUMPABLE with 0 as its next argument is a trap, which makes the result 2. */
static bool trap_dumpable(void)
{
	struct sock_filter filter[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_prctl, 0, 5),
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[0])),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, PR_GET_DUMPABLE, 0, 3),
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[1])),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 0, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_TRAP),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog prog = { sizeof(filter) / sizeof(filter[0]), filter };

	return !prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) &&
	       !prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &prog);
}

static void say_root_only(int sig, siginfo_t *info, void *context)
{
	((ucontext_t *)context)->uc_mcontext.gregs[REG_RAX] = 2;
}

static int drop_capabilities(void)
{
	struct __user_cap_header_struct head = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct none[_LINUX_CAPABILITY_U32S_3] = { 0 };

	return (int)syscall(SYS_capset, &head, none);
}

/* A program gets the value 2 if it changes its user while fs.suid_dumpable is 2. The test doesn't
 * change this setting of the machine: a trap shows the stop the value 2. */
static int stop_root_only(void)
{
	struct sigaction trap = { .sa_sigaction = say_root_only, .sa_flags = SA_SIGINFO };
	struct pb_stop s = { .moved = stays, .stopped = nothing };

	/* with CAP_SYS_PTRACE, a stop doesn't make the process dumpable */
	sigaction(SIGSYS, &trap, NULL);
	if (drop_capabilities() || prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) || !trap_dumpable() ||
	    prctl(PR_GET_DUMPABLE, 0, 0, 0, 0) != 2 || prctl(PR_GET_DUMPABLE, 1, 0, 0, 0))
		return 1;
	pb_agent_tid = (uint32_t)gettid();
	if (pb_stop_world(&s))
		return 2;
	return prctl(PR_GET_DUMPABLE, 1, 0, 0, 0) ? 3 : 0;
}

static void hidden_process_stays_hidden(void **state)
{
	pid_t child = fork();
	int status;

	if (!child)
		_exit(stop_root_only());
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
}

static int asked_value, lent_value;

/* During the stop, the program sets its state. In between it sees the state of before the stop. */
static int ask_during_stop(const struct pb_stopped *at, size_t nr)
{
	uint32_t before, loans = pb_dumpable_loans();

	if (!pb_dumpable_is_lent(&lent_value) || prctl(PR_GET_DUMPABLE, 0, 0, 0, 0) != 1 || !loans)
		return -EPROTO;
	before = pb_dumpable_ask((uint32_t)asked_value);
	if (prctl(PR_SET_DUMPABLE, asked_value, 0, 0, 0) ||
	    pb_dumpable_asked((uint32_t)asked_value, false, before))
		return -EPROTO;
	return 0;
}

/* The kernel refuses the program's call. */
static int refuse_during_stop(const struct pb_stopped *at, size_t nr)
{
	pb_dumpable_asked(1, true, pb_dumpable_ask(1));
	return 0;
}

static int stop_hidden(int value, int (*stopped)(const struct pb_stopped *at, size_t nr))
{
	struct pb_stop s = { .moved = stays, .stopped = stopped };

	asked_value = value;
	return prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) || pb_stop_world(&s) ? -1 :
	       prctl(PR_GET_DUMPABLE, 0, 0, 0, 0);
}

static int ask_in_all_ways(void)
{
	uint32_t before;

	if (drop_capabilities())
		return 1;
	pb_agent_tid = (uint32_t)gettid();
	if (stop_hidden(1, ask_during_stop) != 1 || lent_value)
		return 2;
	if (stop_hidden(0, ask_during_stop))
		return 3;
	if (stop_hidden(0, nothing) || stop_hidden(1, refuse_during_stop))
		return 4;
	/* a whole stop comes between the two parts of a request */
	before = pb_dumpable_ask(1);
	return stop_hidden(0, nothing) || !pb_dumpable_asked(1, false, before) ? 5 : 0;
}

static void program_sets_its_dumpable_state(void **state)
{
	pid_t child = fork();
	int status;

	if (!child)
		_exit(ask_in_all_ways());
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
}

static volatile unsigned frames_seen;

static bool count_frame(void *arg, const struct pb_signal_frame *f)
{
	frames_seen += f->sp != 0;
	return false;
}

/* ---- Yama's ptrace_scope is 1 ---- */

static uint64_t ptracers[8];
static volatile int nr_ptracers;

/* A filter has caught prctl(PR_SET_PTRACER). The call succeeds without the kernel. */
static void on_prctl(int sig, siginfo_t *info, void *context)
{
	greg_t *g = ((ucontext_t *)context)->uc_mcontext.gregs;

	if (nr_ptracers < 8)
		ptracers[nr_ptracers++] = (uint64_t)g[REG_RSI];
	g[REG_RAX] = 0;
}

static bool pretend_yama(void)
{
	FILE *f;

	if (unshare(CLONE_NEWNS) || mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) ||
	    mount("none", "/proc/sys/kernel", "tmpfs", 0, NULL) ||
	    mkdir("/proc/sys/kernel/yama", 0755))
		return false;
	f = fopen("/proc/sys/kernel/yama/ptrace_scope", "w");
	return f && fputs("1\n", f) >= 0 && !fclose(f);
}

static bool catch_prctl(void)
{
	struct sock_filter f[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_prctl, 0, 3),
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, PR_SET_PTRACER, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_TRAP),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog p = { sizeof(f) / sizeof(f[0]), f };
	struct sigaction sa = { .sa_sigaction = on_prctl, .sa_flags = SA_SIGINFO };

	return !sigaction(SIGSYS, &sa, NULL) && !prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) &&
	       !prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &p);
}

/* The child's exit status; 77: this machine can't pretend that it has Yama. */
static int stop_under_yama(void)
{
	struct pb_stop s = { .moved = stays, .stopped = nothing };

	if (!pretend_yama() || !catch_prctl())
		return 77;
	for (int i = 0; i < 2; i++) {
		pb_program_ptracer = i ? 4711 : 0;
		nr_ptracers = 0;
		if (pb_stop_world(&s))
			return 1;
		/* the helper, then the program's own setting. A stop may be tried again */
		if (nr_ptracers < 2 || nr_ptracers & 1 || !ptracers[0] ||
		    ptracers[1] != pb_program_ptracer)
			return 2;
	}
	return 0;
}

static void the_programs_ptracer_stays(void **state)
{
	pid_t pid = fork();
	int status;

	if (!pid)
		_exit(stop_under_yama());
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	if (WEXITSTATUS(status) == 77)
		skip();
	assert_int_equal(WEXITSTATUS(status), 0);
}

/* The handler's own frame is above this function's frame. */
static void look_from_hit_stack(int sig)
{
	struct pb_hit_stack_use *use = pb_hit_stack_use(1);
	struct user_regs_struct regs = { .rsp = (uint64_t)use - 256 };

	regs.fs_base = (uint64_t)__builtin_thread_pointer();
	use->slot = (uint64_t)__builtin_frame_address(0);
	pb_signal_frames(&regs, count_frame, NULL);
}

/* A thread is on a stack of the agent. The frames on the program's stack are found, too. */
static void frames_behind_a_hit_stack(void **state)
{
	struct sigaction sa = { .sa_handler = look_from_hit_stack }, old;

	sigaction(SIGUSR2, &sa, &old);
	pb_signal_frames_begin();
	frames_seen = 0;
	raise(SIGUSR2);
	sigaction(SIGUSR2, &old, NULL);
	assert_int_equal(frames_seen, 1);
}

/* Returns the protection of the page, as the list of mappings has it. */
static const char *protection(uint64_t page)
{
	static char prot[8];
	FILE *f = fopen("/proc/self/maps", "re");
	unsigned long start, end;
	char line[512];

	assert_non_null(f);
	while (fgets(line, sizeof(line), f))
		if (sscanf(line, "%lx-%lx %4s", &start, &end, prot) == 3 &&
		    page - start < end - start)
			break;
	fclose(f);
	return prot;
}

/* If /proc/self/mem can't be opened, pages are made writable for a moment. Afterwards, each has the
 * protection that it had, even if patches lie on the border of pages. */
static void text_keeps_its_protection(void **state)
{
	static const char *const prots[] = { "r-xp", "rwxp", "rwxp", "r-xp", "r-xp", "rwxp" };
	const uint64_t page = 4096, nr = sizeof(prots) / sizeof(prots[0]);
	uint8_t *text = mmap(NULL, nr * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
			     -1, 0);
	struct pb_patch p[6] = { 0 };
	struct rlimit limit, none;

	assert_true(text != MAP_FAILED);
	for (unsigned i = 0; i < nr; i++) {
		int w = prots[i][1] == 'w' ? PROT_WRITE : 0;

		assert_int_equal(mprotect(text + i * page, page, PROT_READ | PROT_EXEC | w), 0);
		p[i].addr = (uint64_t)text + (i + 1) * page - (i + 1 == nr ? 5 : 2);
		p[i].len = 5;
		memset(p[i].bytes, 'a' + (int)i, 5);
	}
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
	none = (struct rlimit){ 0, limit.rlim_max };
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
	int poked = pb_text_poke(p, nr), written = pb_text_write((uint64_t)text, "xyz", 3);
	int opened = open("/proc/self/maps", O_RDONLY);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
	assert_int_equal(opened, -1);
	assert_int_equal(poked, 0);
	assert_int_equal(written, 0);
	assert_memory_equal(text, "xyz", 3);
	for (unsigned i = 0; i < nr; i++) {
		assert_memory_equal((void *)p[i].addr, p[i].bytes, 5);
		assert_string_equal(protection((uint64_t)text + i * page), prots[i]);
	}
	munmap(text, nr * page);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(starved_thread_sees_no_stop),
		cmocka_unit_test(requester_calls_stopped),
		cmocka_unit_test(helper_has_a_name),
		cmocka_unit_test(killed_helper_ends_the_stop),
		cmocka_unit_test(new_thread_is_no_process),
		cmocka_unit_test(hidden_process_stays_hidden),
		cmocka_unit_test(program_sets_its_dumpable_state),
		cmocka_unit_test(the_programs_ptracer_stays),
		cmocka_unit_test(frames_behind_a_hit_stack),
		cmocka_unit_test(text_keeps_its_protection),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
