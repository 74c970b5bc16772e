/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Forks five times in a call that then takes 20 ms in the parent, and much less in the child. */
#include <sys/wait.h>
#include <unistd.h>

__attribute__((noipa)) static int divide(void)
{
	pid_t pid = fork();

	if (!pid)
		return 1;
	waitpid(pid, NULL, 0);
	usleep(20000);
	return 0;
}

int main(void)
{
	for (int i = 0; i < 5; i++)
		if (divide())
			return 0;
	return 0;
}
