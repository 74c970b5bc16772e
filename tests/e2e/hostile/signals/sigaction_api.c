/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * sigaction and signal must report exactly the handlers, flags and masks that the program has set.
 * This is tested for SA_RESETHAND, SA_NODEFER, SA_RESTART, SIG_IGN and SIG_DFL. Also tests that
 * default actions end a child.
 * @markers 200 main/one_iteration
 */
#include <pthread.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include "../hostile.h"

static volatile int depth, deepest, runs, saw_blocked;
static const int sigs[] = { SIGSEGV, SIGBUS, SIGTRAP, SIGFPE, SIGILL, SIGPROF, SIGUSR1, SIGSYS };

static void on_plain(int sig) { runs++; }
static void on_other(int sig, siginfo_t *si, void *uc)
{
	runs += 100;
	check(uc && si->si_signo == sig);
}
static void on_nested(int sig)
{
	sigset_t set;

	if (++depth > deepest)
		deepest = depth;
	sigprocmask(SIG_BLOCK, NULL, &set);
	saw_blocked |= sigismember(&set, sig) | sigismember(&set, SIGUSR2) << 1;
	if (depth < 3 && runs < 3) {
		runs++;
		raise(sig);
	}
	depth--;
}

static KEEP void read_back(int sig)
{
	struct sigaction a = { .sa_handler = on_plain }, b = { .sa_sigaction = on_other }, old;

	sigaddset(&a.sa_mask, SIGUSR2);
	a.sa_flags = SA_RESTART | SA_ONSTACK;
	b.sa_flags = SA_SIGINFO;
	check(!sigaction(sig, NULL, &old));
	check(old.sa_handler == SIG_DFL && !(old.sa_flags & SA_SIGINFO));
	check(!sigaction(sig, &a, &old));
	check(old.sa_handler == SIG_DFL);
	check(!sigaction(sig, &b, &old));
	check(old.sa_handler == on_plain);
	check_eq(old.sa_flags & (SA_RESTART | SA_ONSTACK | SA_SIGINFO | SA_RESETHAND | SA_NODEFER),
		 SA_RESTART | SA_ONSTACK);
	check(sigismember(&old.sa_mask, SIGUSR2) == 1 && sigismember(&old.sa_mask, SIGHUP) == 0);
	runs = 0;
	check(!raise(sig));
	check_eq(runs, 100);
	check(!sigaction(sig, NULL, &old));
	check(old.sa_sigaction == on_other && (old.sa_flags & SA_SIGINFO));
	check((void *)signal(sig, on_plain) == (void *)on_other);
	check(!raise(sig) && runs == 101);
	check(signal(sig, SIG_IGN) == on_plain);
	check(!raise(sig) && runs == 101);
	check(signal(sig, SIG_DFL) == SIG_IGN);
}

static KEEP void flags(int sig)
{
	struct sigaction a = { .sa_handler = on_plain, .sa_flags = SA_RESETHAND }, old;

	check(!sigaction(sig, &a, NULL));
	runs = 0;
	check(!raise(sig) && runs == 1);
	check(!sigaction(sig, NULL, &old) && old.sa_handler == SIG_DFL);

	memset(&a, 0, sizeof(a));
	a.sa_handler = on_nested;
	a.sa_flags = SA_NODEFER;
	sigaddset(&a.sa_mask, SIGUSR2);
	depth = deepest = saw_blocked = runs = 0;
	check(!sigaction(sig, &a, NULL));
	check(!raise(sig));
	check_eq(deepest, 3);
	check_eq(saw_blocked, 2);
	a.sa_flags = 0;
	depth = deepest = saw_blocked = runs = 0;
	check(!sigaction(sig, &a, NULL));
	check(!raise(sig));
	check_eq(deepest, 1);
	check(saw_blocked == 3);
	check(signal(sig, SIG_DFL) == on_nested);
}

static KEEP int ends_child(int sig, int how)
{
	int status, *null = opaque((int *)0);
	pid_t pid = fork();

	check(pid >= 0);
	if (!pid) {
		struct rlimit none = { 0, 0 };

		setrlimit(RLIMIT_CORE, &none);
		if (how == 1)
			signal(sig, SIG_IGN);
		if (how == 2 && sig == SIGSEGV)
			*(volatile int *)null = 1;
		raise(sig);
		_exit(55);
	}
	check(waitpid(pid, &status, 0) == pid);
	if (how == 1)
		check(WIFEXITED(status) && WEXITSTATUS(status) == 55);
	else
		check(WIFSIGNALED(status) && WTERMSIG(status) == sig);
	return status;
}

static KEEP void one_iteration(int n)
{
	int sig = sigs[n % 8];

	read_back(sig);
	flags(sig);
	if (n < 24)
		ends_child(sig, n / 8);
	marker_begin(n);
}

int main(void)
{
	struct sigaction a = { .sa_handler = on_plain };
	int n;

	check(sigaction(SIGKILL, &a, NULL) == -1 && errno == EINVAL);
	check(sigaction(0, &a, NULL) == -1 && errno == EINVAL);
	check(sigaction(65, &a, NULL) == -1 && errno == EINVAL);
	check(sigaction(32, &a, NULL) == -1 && errno == EINVAL);
	for (n = 0; n < 200; n++)
		one_iteration(n);
	puts("200 iterations");
	return 0;
}
