/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Makes threads, loads a library, forks and execs with hardly any address space left. */
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

static unsigned long size_now(void)
{
	unsigned long n = 0;
	FILE *f = fopen("/proc/self/statm", "r");

	if (!f || fscanf(f, "%lu", &n) != 1)
		return 0;
	fclose(f);
	return n * 4096;
}

__attribute__((noipa)) int work(int x)
{
	return x * 3 + 1;
}

static void *run(void *arg)
{
	int x = 0;

	for (int i = 0; i < 1000; i++)
		x = work(x);
	return (void *)(long)x;
}

int main(int argc, char **argv)
{
	struct rlimit none = { 0, 0 }, r;
	void *got[3] = { 0 };
	pthread_t t;
	int status = 0;

	if (argc > 1) {
		puts("executed");
		return 0;
	}
	setvbuf(stdout, NULL, _IONBF, 0);
	/* room for the thread and the library only */
	r.rlim_cur = size_now() + (24 << 20);
	r.rlim_max = RLIM_INFINITY;
	setrlimit(RLIMIT_AS, &r);
	for (int i = 0; i < 3; i++) {
		if (pthread_create(&t, NULL, run, NULL))
			puts("no thread");
		else
			pthread_join(t, &got[i]);
	}
	printf("%p %p %p\n", got[0], got[1], got[2]);
	printf("library %d\n", dlopen("libm.so.6", RTLD_NOW) != NULL);
	none.rlim_max = RLIM_INFINITY;
	setrlimit(RLIMIT_AS, &none);
	setrlimit(RLIMIT_DATA, &none);
	printf("%p, library %d\n", run(NULL), dlopen("libz.so.1", RTLD_NOW) != NULL);
	if (!fork())
		_exit(run(NULL) != got[0]);
	wait(&status);
	printf("child %d\n", status);
	r.rlim_cur = RLIM_INFINITY;
	setrlimit(RLIMIT_AS, &r);
	setrlimit(RLIMIT_DATA, &r);
	execl(argv[0], argv[0], "again", NULL);
	return 1;
}
