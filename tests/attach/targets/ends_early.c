/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Waits until a mapping has the first argument in its name. This argument names the agent's file,
 * or the ring, which the agent maps when it is connected. So the wait ends in the middle of the
 * attach. Then the process ends. If there is a second argument, the process executes the program
 * with this name instead.
 */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static int is_mapped(const char *name)
{
	char line[4096];
	int found = 0;
	FILE *f = fopen("/proc/self/maps", "r");

	while (f && fgets(line, sizeof(line), f))
		found |= strstr(line, name) != NULL;
	if (f)
		fclose(f);
	return found;
}

int main(int argc, char **argv)
{
	printf("pid %d\n", (int)getpid());
	fflush(stdout);
	while (!is_mapped(argv[1]))
		usleep(300);
	if (argc > 2)
		execlp(argv[2], argv[2], NULL);
	_exit(3);
}
