/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Prints the number of kB by which its address space grows while it starts 300 programs. The first
 * programs aren't counted. Only traced() is traced, and it is never called, so the agent has no
 * state for the main thread.
 */
#include <spawn.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

__attribute__((noinline)) int traced(int x)
{
	__asm__ volatile("nop; nop; nop; nop" : "+r"(x));
	return x + 1;
}

static long pages(void)
{
	FILE *f = fopen("/proc/self/statm", "r");
	long n = -1;

	if (!f || fscanf(f, "%ld", &n) != 1)
		n = -1;
	if (f)
		fclose(f);
	return n;
}

int main(int argc, char **argv)
{
	char *args[] = { "/bin/true", NULL };
	long before = 0;
	int status = argc > 5 ? traced(argc) : 0;

	for (int i = 0; i < 310; i++) {
		pid_t pid;

		if (i == 10)
			before = pages();
		if (posix_spawn(&pid, args[0], NULL, NULL, args, environ) ||
		    waitpid(pid, &status, 0) != pid || status)
			return 1;
	}
	printf("%ld\n", (pages() - before) * (sysconf(_SC_PAGESIZE) / 1024));
	return 0;
}
