/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A program to attach to, which loads libraries on request. It reads the path of a library from
 * each line of its input. It loads the library, calls its function added() ten times, and answers
 * with a line.
 */
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

int main(void)
{
	char path[4096];

	printf("ready %d\n", (int)getpid());
	fflush(stdout);
	while (fgets(path, sizeof(path), stdin)) {
		path[strcspn(path, "\n")] = 0;
		void *library = dlopen(path, RTLD_NOW);
		void (*added)(void) = library ? (void (*)(void))dlsym(library, "added") : NULL;

		for (int i = 0; added && i < 10; i++)
			added();
		puts(added ? "loaded" : dlerror());
		fflush(stdout);
	}
	return 0;
}
