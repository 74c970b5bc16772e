/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* In a loop, loads a library, calls its function loaded(), and unloads it.
 * Usage: loading LIBRARY ROUNDS */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv)
{
	for (int i = 0; i < atoi(argv[2]); i++) {
		void *lib = dlopen(argv[1], RTLD_NOW);
		int (*f)(int) = lib ? (int (*)(int))dlsym(lib, "loaded") : NULL;

		if (!f || f(3) != 10) {
			puts(dlerror());
			return 1;
		}
		dlclose(lib);
	}
	return argc - 3;
}
