/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The library that dlopen_loop and close_all open and close. */
static int constructed;

int plugin_call(int n, int (*back)(int));

__attribute__((constructor, noinline)) static void plugin_begin(void) { constructed = 41; }
__attribute__((noinline)) static int plugin_inner(int n)
{
	__asm__ volatile("" : "+r"(n));
	return n + constructed;
}
int plugin_call(int n, int (*back)(int))
{
	int r = back(plugin_inner(n));

	__asm__ volatile("" : "+r"(r));
	return r + 1;
}
