/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Loops in which one call of setjmp, sigsetjmp or getcontext returns many times.
 * @markers 9000 main/loop_setjmp main/loop_sigsetjmp main/loop_getcontext
 */
#include <setjmp.h>
#include <signal.h>
#include <ucontext.h>
#include "../hostile.h"

static jmp_buf env;
static sigjmp_buf sigenv;
static ucontext_t uc;

static KEEP void again(int v) { longjmp(env, v); }
static KEEP void sigagain(int v) { siglongjmp(sigenv, v); }
static KEEP void ctxagain(void) { setcontext(&uc); }

static KEEP int loop_setjmp(void)
{
	volatile int i = 0;
	int v = setjmp(env);

	marker_begin(v);
	if (++i < 3000)
		again(i);
	return v;
}

static KEEP int loop_sigsetjmp(void)
{
	volatile int i = 0;
	int v = sigsetjmp(sigenv, 1);
	sigset_t set;

	marker_begin(v);
	sigprocmask(SIG_SETMASK, NULL, &set);
	check(!sigismember(&set, SIGUSR2));
	if (++i < 3000) {
		sigaddset(&set, SIGUSR2);
		sigprocmask(SIG_SETMASK, &set, NULL);
		sigagain(i);
	}
	return v;
}

static KEEP int loop_getcontext(void)
{
	volatile int i = 0;

	getcontext(&uc);
	marker_begin(i);
	if (++i < 3000)
		ctxagain();
	return i;
}

int main(void)
{
	check_eq(loop_setjmp(), 2999);
	check_eq(loop_sigsetjmp(), 2999);
	check_eq(loop_getcontext(), 3000);
	puts("all loops ended");
	return 0;
}
