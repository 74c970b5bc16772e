/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The program defines sigaction() itself, in front of libc's, as sandboxes do. It also calls libc's
 * sigaction(), which it finds by dlsym(). Each of them must see what the other has set. One handler
 * calls the handler that was there before.
 * @markers 1000 main/one_round
 */
#include <dlfcn.h>
#include <signal.h>
#include "../hostile.h"

static int (*libcs)(int, const struct sigaction *, struct sigaction *);
static volatile long nr_first, nr_second;
static void (*former)(int, siginfo_t *, void *);

__attribute__((noinline)) int sigaction(int sig, const struct sigaction *act, struct sigaction *old)
{
	return libcs(sig, act, old);
}

static void on_first(int sig, siginfo_t *si, void *uc)
{
	nr_first++;
}

static void on_second(int sig, siginfo_t *si, void *uc)
{
	nr_second++;
	former(sig, si, uc);
}

static KEEP void one_round(int n)
{
	struct sigaction sa = { .sa_flags = SA_SIGINFO }, old;

	sa.sa_sigaction = on_first;
	check_eq(sigaction(SIGUSR1, &sa, NULL), 0);
	check_eq(libcs(SIGUSR1, NULL, &old), 0);
	check_eq(old.sa_sigaction == on_first, 1);
	former = old.sa_sigaction;
	old.sa_sigaction = on_second;
	check_eq(libcs(SIGUSR1, &old, NULL), 0);
	raise(SIGUSR1);
	check_eq(nr_first, n + 1);
	check_eq(nr_second, n + 1);
	check_eq(sigaction(SIGUSR1, NULL, &old), 0);
	check_eq(old.sa_sigaction == on_second, 1);
	marker_begin(n);
}

int main(void)
{
	libcs = (__typeof__(libcs))dlsym(RTLD_NEXT, "sigaction");
	for (int i = 0; i < 1000; i++)
		one_round(i);
	return 0;
}
