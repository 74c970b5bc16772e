/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* alone PLUGIN COUNT: after each dlopen and dlclose the process must have only one thread, whatever
 * the agent did meanwhile. The kernel allows some system calls only in a process with one thread,
 * for example unshare(CLONE_THREAD). */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <err.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv)
{
	for (int i = 0; i < atoi(argv[2]); i++) {
		void *h = dlopen(argv[1], RTLD_NOW);

		if (!h)
			errx(1, "%s", dlerror());
		if (unshare(CLONE_THREAD))
			err(1, "unshare after dlopen %d", i);
		dlclose(h);
		if (unshare(CLONE_THREAD))
			err(1, "unshare after dlclose %d", i);
	}
	puts("alone");
	return 0;
}
