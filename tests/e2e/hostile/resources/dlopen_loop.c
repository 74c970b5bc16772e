/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The main thread opens, calls, and closes a plugin in a loop, while another thread makes calls.
 * The plugin's constructor must have run, and its symbols must be found. While the plugin is
 * closed, the program maps other memory at the plugin's addresses.
 * @plugin plugin.c
 * @libs -ldl
 * @markers 600 one_load back_in_program
 * @calls back_in_program 400
 * @timeout 30
 */
#include <dlfcn.h>
#include <pthread.h>
#include <sys/mman.h>
#include "../hostile.h"

static char path[4096];
static volatile int stop;

static KEEP int back_in_program(int n)
{
	marker_begin(n);
	return n * 2;
}

static KEEP long spin(long x) { return opaque(x) ^ 0x1234; }
static KEEP void *spinner(void *arg)
{
	long x = 1;

	while (!stop)
		x = spin(x);
	return NULL;
}

static KEEP void one_load(int n)
{
	void *h = dlopen(path, n & 1 ? RTLD_LAZY : RTLD_NOW);
	int (*call)(int, int (*)(int)), i;
	Dl_info info;
	char *base, *map;

	if (!h)
		die("%s", dlerror());
	call = (int (*)(int, int (*)(int)))dlsym(h, "plugin_call");
	check(call);
	for (i = 0; i < 2; i++)
		check_eq(call(n, back_in_program), (n + 41) * 2 + 1);
	check(dladdr((void *)call, &info));
	base = info.dli_fbase;
	check(!dlclose(h));
	check(!dlopen(path, RTLD_LAZY | RTLD_NOLOAD));
	map = mmap(base, 16384, PROT_READ | PROT_WRITE,
		   MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
	check(map == base);
	memset(map, 0xcc, 16384);
	check(!munmap(map, 16384));
	marker_begin(n);
}

int main(int argc, char **argv)
{
	pthread_t t;
	int n;

	strcpy(path, argv[0]);
	strcpy(strrchr(path, '/') + 1, "plugin.so");
	check(!pthread_create(&t, NULL, spinner, NULL));
	for (n = 0; n < 200; n++)
		one_load(n);
	stop = 1;
	check(!pthread_join(t, NULL));
	puts("200 loads");
	return 0;
}
