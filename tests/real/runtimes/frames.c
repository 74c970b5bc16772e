/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Takes stack traces of three kinds, at many depths of a recursion. backtrace() gives the names.
 * _Unwind_Backtrace() gives CFAs, which must be right. The handler of a profiling timer calls
 * backtrace(), too.
 */
#define _GNU_SOURCE
#include <execinfo.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <unwind.h>

#define KEEP __attribute__((noinline, noclone))
#define MAX 128

static uintptr_t frames[MAX];	/* the CFA of each call of level() */
static volatile sig_atomic_t ticks, bad_ticks;
static int seen, wrong;

struct walk {
	int depth;		/* number of frames of level() that the walk has passed */
};

static _Unwind_Reason_Code look(struct _Unwind_Context *c, void *arg)
{
	extern int level(int n, int how);
	struct walk *w = arg;

	if (_Unwind_FindEnclosingFunction((void *)_Unwind_GetIP(c)) != (void *)level)
		return _URC_NO_REASON;
	seen++;
	/* _Unwind_GetCFA() doesn't return this frame's CFA. It returns the value that rsp had
	 * before the frame's current call instruction, which is the CFA of the called function */
	wrong += w->depth && _Unwind_GetCFA(c) != frames[w->depth - 1];
	w->depth++;
	return _URC_NO_REASON;
}

static KEEP void names(void)
{
	void *at[MAX];
	int k = backtrace(at, MAX);
	char **s = backtrace_symbols(at, k);
	int levels = 0;

	for (int i = 0; i < k; i++)
		levels += strstr(s[i], "(level+") != NULL;
	printf("%d levels, %s main\n", levels,
	       k > levels + 1 && strstr(s[levels + 1], "(main+") ? "then" : "no");
	free(s);
}

KEEP int level(int n, int how)
{
	struct walk w = { 0 };
	int r = 0;

	frames[n] = (uintptr_t)__builtin_dwarf_cfa();
	if (n)
		r = level(n - 1, how) + 1;
	else if (how == 0)
		names();
	else
		_Unwind_Backtrace(look, &w);
	__asm__ volatile("" ::: "memory");
	return r;
}

static void on_tick(int sig)
{
	void *at[MAX];
	int k = backtrace(at, MAX);

	(void)sig;
	ticks++;
	/* the walk must reach the bottom of the stack, wherever the signal interrupted the
	 * program */
	bad_ticks += k < 4;
}

int main(int argc, char **argv)
{
	int rounds = argc > 1 ? atoi(argv[1]) : 1000;
	struct sigaction sa = { .sa_handler = on_tick, .sa_flags = SA_RESTART };
	struct itimerval it = { { 0, 1000 }, { 0, 1000 } }, none = { 0 };
	void *first[2];

	backtrace(first, 2);
	for (int n = 0; n < 12; n++)
		level(n, 0);
	for (int n = 0; n < MAX; n++)
		level(n, 1);
	printf("%d frames seen, %d wrong\n", seen, wrong);
	sigaction(SIGPROF, &sa, NULL);
	setitimer(ITIMER_PROF, &it, NULL);
	for (int i = 0; i < rounds || ticks < 20; i++)
		level(i % 50, 1);
	setitimer(ITIMER_PROF, &none, NULL);
	printf("ticks, %d bad; %d wrong\n", bad_ticks, wrong);
	return 0;
}
