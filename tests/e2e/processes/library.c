/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The library that late_library.c loads. */
__attribute__((noipa)) int late(int i)
{
	return i & 1;
}
