/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The eBPF program of forked.bpf.c kills the child after it has reserved a record in the child.
 * After that, the parent makes 50 more calls. */
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

__attribute__((noinline, noclone)) int call(int x)
{
	__asm__ volatile("" : "+r"(x));
	return x * 3 + (x >> 2);
}

int main(void)
{
	int status = 0;

	call(0);
	pid_t child = fork();

	if (!child) {
		call(7777);
		_exit(0);
	}
	waitpid(child, &status, 0);
	for (int i = 1; i <= 50; i++) {
		call(i);
		usleep(5000);
	}
	return WIFSIGNALED(status) ? WTERMSIG(status) : 99;
}
