/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* late_library LIBRARY: a thread loads the library after the main thread has exited. */
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
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
	pthread_t t;

	pthread_create(&t, NULL, thread, argv[argc - 1]);
	pthread_exit(NULL);
}
