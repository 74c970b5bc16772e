/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* storm.c loads and unloads this module. The module's functions count their calls in storm.c's
 * counter. */
long c_m_leaf(long x, long *calls)
{
	__asm__ volatile("lock incq %0" : "+m"(*calls));
	return x + 5;
}

long c_m_two(long x, long *calls)
{
	__asm__ volatile("lock incq %0" : "+m"(*calls));
	return c_m_leaf(x, calls) + c_m_leaf(x + 1, calls);
}
