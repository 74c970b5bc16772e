/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The libraries of test_links in run_attach. The option -DWHERE=N makes where() return a different
 * number in each library. */
int where(void)
{
	return WHERE;
}
