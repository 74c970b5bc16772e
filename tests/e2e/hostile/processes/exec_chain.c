/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The program execs itself from main, from a thread, and from deep inside calls. It passes its own
 * environment, a new one, or an empty one. Arguments must arrive unchanged.
 * @markers 20 stage
 * @calls main 20
 * @status 3
 */
#include <pthread.h>
#include "../hostile.h"

extern char **environ;
static char number[16];
static char *next_argv[] = { NULL, number, (char *)"an argument", NULL };

static KEEP int exec_deep(int depth, char **envp)
{
	if (depth)
		return opaque(exec_deep(depth - 1, envp)) + 1;
	execve("/proc/self/exe", next_argv, envp);
	die("exec: %m");
}

static KEEP void *exec_thread(void *arg)
{
	exec_deep(3, arg);
	return NULL;
}

static KEEP void stage(int n) { marker_begin(n); opaque(n); }

int main(int argc, char **argv)
{
	static char *own_env[] = { (char *)"A=1", NULL }, *no_env[] = { NULL };
	int n = argc > 1 ? atoi(argv[1]) : 0, i;
	pthread_t t;

	if (n) {
		check_eq(argc, 3);
		check(!strcmp(argv[2], "an argument"));
	}
	for (i = 0; environ[i]; i++)
		if (strstr(environ[i], "PATCHBAY") || !strncmp(environ[i], "LD_PRELOAD=", 11))
			die("stage %d sees %s", n, environ[i]);
	if (n % 4 == 1 || n % 4 == 2)
		check_eq(i, n % 4 == 1);
	stage(n);
	if (n == 19) {
		puts("20 images");
		return 3;
	}
	next_argv[0] = argv[0];
	sprintf(number, "%d", n + 1);
	switch (n % 4) {
	case 0: exec_deep(5, own_env); break;
	case 1: exec_deep(0, no_env); break;
	case 2:
		check(!pthread_create(&t, NULL, exec_thread, environ));
		pthread_join(t, NULL);
		break;
	default: execv("/proc/self/exe", next_argv);
	}
	return 98;
}
