/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The libraries of test_links in run_attach. Each library returns a different number: -DWHERE. */
int where(void)
{
	return WHERE;
}
