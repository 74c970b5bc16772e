/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Does nothing. The test also links it so that the agent can't be loaded. */
int main(void)
{
	return 0;
}
