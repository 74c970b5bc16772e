/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Whatever the agent does for a dlopen, afterwards the process has one thread: the
 * kernel grants some things only then. alone PLUGIN */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <err.h>
#include <sched.h>
#include <stdio.h>

int main(int argc, char **argv)
{
	for (int i = 0; i < 300; i++) {
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
