/* SPDX-License-Identifier: LGPL-2.1-or-later */
int where(void)
{
	return WHERE;
}
