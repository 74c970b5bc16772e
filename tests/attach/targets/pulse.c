/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The simplest target. It answers each line of its input with the line "pulse N", so that a test
 * sees that it lives. The argument selects a special property:
 *
 *	filter	it has a seccomp filter, which allows everything
 *	no_openat	it has a seccomp filter, with which openat() fails
 *	kill_openat	it has a seccomp filter, which kills it at openat()
 *	strict	it runs in seccomp's strict mode
 *	alone	it can't create threads, unless it runs as root
 *	hidden	it isn't dumpable
 *	two	it has a second thread, which waits
 *	mixed	its saved user ID differs from the others, and it has no capabilities (it must be
 *		started as root)
 *	in_wait	it answers in a signal handler that interrupted sigsuspend()
 *	in_restarted	it answers in a signal handler that interrupted waitpid(). The kernel would
 *		restart this call. The test sends the signal
 *	old_frame	it answers in a function whose array has overwritten the frame of an earlier
 *		signal handler, except the frame's first word
 *	in_malloc	it answers in a signal handler that interrupted malloc(), free() or their
 *		caller
 */
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

/* What the filter does with openat(). */
static void set_filter(unsigned action)
{
	struct sock_filter filter[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_openat, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, action),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog prog = { 4, filter };

	prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
	prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &prog);
}

/* Returns the exit status. */
static int answer(void)
{
	char c, line[32];
	int n = 0;

	/* strict mode permits read() and write() */
	if (write(1, "ready\n", 6) != 6)
		return 1;
	while (read(0, &c, 1) == 1) {
		if (c != '\n')
			continue;
		strcpy(line, "pulse ");
		line[6] = (char)('0' + ++n % 10);
		line[7] = '\n';
		if (write(1, line, 8) != 8)
			return 1;
	}
	return 0;
}

static void answer_and_end(int sig)
{
	_exit(answer());
}

static uint64_t *frame;

static void find_frame(int sig)
{
	frame = (uint64_t *)__builtin_frame_address(0) + 1;
}

/* Makes a frame that lies below the caller's stack pointer afterwards. */
static __attribute__((noinline)) void leave_frame(void)
{
	signal(SIGALRM, find_frame);
	raise(SIGALRM);
}

/* Clears the words after the first one of the frame, which is now in its array. */
static __attribute__((noinline)) int answer_over_frame(uint64_t *first)
{
	uint64_t words[1000];

	if (first <= words || first + 100 > words + 1000)
		return 1;
	memset(first + 1, 0, 99 * sizeof(*first));
	return answer() || !*(volatile uint64_t *)first;
}

static int answer_with_old_frame(void)
{
	leave_frame();
	return answer_over_frame(frame);
}

static void send_alarm(void)
{
	struct itimerval soon = { .it_value = { 0, 20000 } };

	signal(SIGALRM, answer_and_end);
	setitimer(ITIMER_REAL, &soon, NULL);
}

/* The signal is blocked until the wait, so it can't interrupt anything else. */
static int answer_in_wait(void)
{
	sigset_t alarm, none;

	sigemptyset(&none);
	sigemptyset(&alarm);
	sigaddset(&alarm, SIGALRM);
	sigprocmask(SIG_BLOCK, &alarm, NULL);
	send_alarm();
	return sigsuspend(&none);
}

static int answer_in_restarted(void)
{
	pid_t child = fork();

	if (!child) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		while (1)
			pause();
	}
	signal(SIGALRM, answer_and_end);
	return waitpid(child, NULL, 0) < 0;
}

static int answer_in_malloc(void)
{
	send_alarm();
	while (1) {
		void *volatile made = malloc(100);

		free(made);
	}
}

static void *wait_for_ever(void *arg)
{
	for (;;)
		pause();
	return arg;
}

static int answer_beside_thread(void)
{
	pthread_t t;

	return pthread_create(&t, NULL, wait_for_ever, NULL) || answer();
}

static int answer_as(const char *kind)
{
	if (!strcmp(kind, "in_wait"))
		return answer_in_wait();
	if (!strcmp(kind, "in_restarted"))
		return answer_in_restarted();
	if (!strcmp(kind, "two"))
		return answer_beside_thread();
	if (!strcmp(kind, "old_frame"))
		return answer_with_old_frame();
	return !strcmp(kind, "in_malloc") ? answer_in_malloc() : answer();
}

int main(int argc, char **argv)
{
	const char *kind = argc > 1 ? argv[1] : "";

	if (!strcmp(kind, "filter"))
		set_filter(SECCOMP_RET_ALLOW);
	if (!strcmp(kind, "no_openat"))
		set_filter(SECCOMP_RET_ERRNO | 1);
	if (!strcmp(kind, "kill_openat"))
		set_filter(SECCOMP_RET_KILL_PROCESS);
	if (!strcmp(kind, "alone"))
		setrlimit(RLIMIT_NPROC, &(struct rlimit) { 0, 1000 });
	if (!strcmp(kind, "mixed") && setresuid(65534, 65534, 65533))
		return 1;
	if (!strcmp(kind, "hidden"))
		prctl(PR_SET_DUMPABLE, 0);
	if (!strcmp(kind, "strict"))
		prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT);
	int status = answer_as(kind);

	/* exit_group() isn't permitted there */
	if (!strcmp(kind, "strict"))
		syscall(SYS_exit, status);
	return status;
}
