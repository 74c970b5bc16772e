/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A thread loads the library LIBRARY. The library's constructor waits until the program's input
 * ends. Until then the thread holds the loader's lock. If it is compiled with -DLIBRARY_ITSELF,
 * this file is the library.
 */
#include <dlfcn.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#ifdef LIBRARY_ITSELF
__attribute__((constructor)) static void wait_for_input(void)
{
	struct pollfd input = { .fd = 0, .events = POLLIN };

	printf("ready\n");
	fflush(stdout);
	poll(&input, 1, -1);
}
#else
static void *load(void *arg)
{
	return dlopen(LIBRARY, RTLD_NOW);
}

int main(void)
{
	pthread_t t;
	void *handle;

	pthread_create(&t, NULL, load, NULL);
	pthread_join(t, &handle);
	sleep(1);
	printf("loaded %d, %d\n", !!handle, system("exit 3") >> 8);
	return 0;
}
#endif
