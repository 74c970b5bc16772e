/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Calls longjmp out of deep recursion, out of a leaf that never returns, and out of a signal
 * handler. Also calls longjmp out of a function that has called setjmp itself.
 * @markers 101500 main/deep_jump main/leaf_jump main/handler_jump main/nested_jump
 * @calls leaf_that_jumps 100000
 */
#include <setjmp.h>
#include <signal.h>
#include "../hostile.h"

static jmp_buf env, inner_env;
static sigjmp_buf sigenv;

static KEEP void leaf_that_jumps(int v) { longjmp(env, v); }

static KEEP int deep(int n)
{
	if (!n)
		longjmp(env, 7);
	return deep(n - 1) + opaque(1);
}

static KEEP void deep_jump(int i)
{
	int r = setjmp(env);

	if (!r)
		deep(i % 300);
	check_eq(r, 7);
	marker_begin(i);
}

static KEEP void leaf_jump(int i)
{
	int r = setjmp(env);

	if (!r)
		leaf_that_jumps(i + 1);
	marker_begin(i);
	check_eq(r, i + 1);
}

static void on_usr1(int sig) { siglongjmp(sigenv, sig); }
static KEEP int raiser(int n)
{
	if (!n)
		return raise(SIGUSR1);
	return raiser(n - 1) + opaque(1);
}

static KEEP void handler_jump(int i)
{
	int r = sigsetjmp(sigenv, 1);

	if (!r)
		raiser(i % 10);
	marker_begin(i);
	check_eq(r, SIGUSR1);
}

static KEEP int jump_inside(int n)
{
	int r = setjmp(inner_env);

	if (r == 5)
		return n;
	if (n & 1)
		longjmp(inner_env, 5);
	longjmp(env, 9);
}

static KEEP void nested_jump(int i)
{
	int r = setjmp(env);

	if (!r)
		check_eq(jump_inside(i | 1), i | 1);
	if (!r)
		jump_inside(i & ~1);
	marker_begin(i);
	check_eq(r, 9);
}

int main(void)
{
	int i;

	signal(SIGUSR1, on_usr1);
	for (i = 0; i < 500; i++)
		deep_jump(i);
	for (i = 0; i < 100000; i++)
		leaf_jump(i);
	for (i = 0; i < 500; i++)
		handler_jump(i);
	for (i = 0; i < 500; i++)
		nested_jump(i);
	puts("101500 jumps");
	return 0;
}
