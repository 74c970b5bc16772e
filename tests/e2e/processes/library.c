/* SPDX-License-Identifier: LGPL-2.1-or-later */
__attribute__((noipa)) int late(int i)
{
	return i & 1;
}
