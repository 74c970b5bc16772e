/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The library that attach_storm.cc loads and unloads. */
int from_library(int n);
static int __attribute__((noinline)) twice(int n)
{
	return 2 * n;
}

int from_library(int n)
{
	return twice(n) + 1;
}
