/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* late_library [N] LIBRARY: a thread loads the library after the main thread has exited. With N,
 * the process may then have only N descriptors. */
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

static void *thread(void *library)
{
	int (*late)(int), sum = 0;
	void *d;

	usleep(100000);
	d = dlopen(library, RTLD_NOW);
	late = d ? (int (*)(int))dlsym(d, "late") : NULL;
	for (int i = 0; late && i < 100; i++)
		sum += late(i);
	printf("%d\n", sum);
	fflush(stdout);
	_exit(!late);
}

int main(int argc, char **argv)
{
	struct rlimit files = { 0 };
	pthread_t t;

	if (argc > 2) {
		files.rlim_cur = files.rlim_max = (rlim_t)atoi(argv[1]);
		setrlimit(RLIMIT_NOFILE, &files);
	}
	pthread_create(&t, NULL, thread, argv[argc - 1]);
	pthread_exit(NULL);
}
