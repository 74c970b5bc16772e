/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* run_attach compiles this file once for each library of test_links. In each library, where()
 * returns another number, because each is compiled with another -DWHERE=N. */
int where(void)
{
	return WHERE;
}
