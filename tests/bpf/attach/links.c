/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Calls where() three times in the library that this program is linked with. Then loads each
 * library of the command line and calls its where() once. */
#include <dlfcn.h>
#include <stdio.h>

int where(void);

int main(int argc, char **argv)
{
	int sum = where() + where() + where();

	for (int i = 1; i < argc; i++) {
		void *lib = dlopen(argv[i], RTLD_NOW | RTLD_LOCAL);
		int (*f)(void) = lib ? (int (*)(void))dlsym(lib, "where") : NULL;

		if (!f) {
			puts(dlerror());
			return 1;
		}
		sum += f();
	}
	printf("sum %d\n", sum);
	return 7;
}
