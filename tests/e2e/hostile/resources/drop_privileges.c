/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Like a daemon, the program starts as root and gives up its privileges. After that, every thread
 * of the process runs as user nobody without capabilities. Calls, new threads, children and text
 * changes must work as before.
 * @needs root
 * @markers 600 main thread_main
 * @serve 100
 */
#include <dirent.h>
#include <linux/capability.h>
#include <grp.h>
#include <pthread.h>
#include <semaphore.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include "../hostile.h"

#define NOBODY 65534
static sem_t go;

int capset(struct __user_cap_header_struct *h, const struct __user_cap_data_struct *d);

static KEEP void *thread_main(void *arg)
{
	int n;

	if (arg)
		while (sem_wait(&go))
			;
	for (n = 0; n < 100; n++)
		marker_begin(n);
	check_eq(geteuid(), NOBODY);
	return NULL;
}

static KEEP int check_tasks(void)
{
	DIR *d = opendir("/proc/self/task");
	struct dirent *e;
	int tasks = 0;

	check(d);
	while ((e = readdir(d))) {
		char path[300], line[256];
		unsigned long a, b, c, f2;
		FILE *f;

		if (e->d_name[0] == '.')
			continue;
		snprintf(path, sizeof(path), "/proc/self/task/%s/status", e->d_name);
		f = fopen(path, "r");
		if (!f)		/* the thread has ended */
			continue;
		tasks++;
		while (fgets(line, sizeof(line), f)) {
			if (sscanf(line, "Uid: %lu %lu %lu %lu", &a, &b, &c, &f2) == 4 ||
			    sscanf(line, "Gid: %lu %lu %lu %lu", &a, &b, &c, &f2) == 4)
				if (a != NOBODY || b != NOBODY || c != NOBODY || f2 != NOBODY)
					die("task %s: %s", e->d_name, line);
			if ((sscanf(line, "CapEff: %lx", &a) == 1 ||
			     sscanf(line, "CapPrm: %lx", &a) == 1) && a)
				die("task %s: %s", e->d_name, line);
		}
		fclose(f);
	}
	closedir(d);
	return tasks;
}

int main(void)
{
	struct __user_cap_header_struct head = { _LINUX_CAPABILITY_VERSION_3, 0 };
	struct __user_cap_data_struct none[2] = { 0 };
	pthread_t t[2], late;
	int i, n, status;
	pid_t pid;

	if (geteuid())
		return 77;
	check(!sem_init(&go, 0, 0));
	for (i = 0; i < 2; i++)
		check(!pthread_create(&t[i], NULL, thread_main, (void *)1));
	/* All threads become user nobody. Only this thread keeps its permitted capabilities,
	 * because PR_SET_KEEPCAPS holds only for the thread that calls it. capset() then drops
	 * these capabilities. */
	check(!prctl(PR_SET_KEEPCAPS, 1));
	check(!setgroups(0, NULL) && !setregid(NOBODY, NOBODY) &&
	      !setresuid(NOBODY, NOBODY, NOBODY));
	check(!capset(&head, none));
	check(setuid(0) == -1);
	check(check_tasks() >= 3);
	check(!pthread_create(&late, NULL, thread_main, NULL));
	check(!pthread_join(late, NULL));
	for (i = 0; i < 2; i++)
		sem_post(&go);
	for (i = 0; i < 2; i++)
		check(!pthread_join(t[i], NULL));
	check(check_tasks() >= 1);
	pid = fork();
	check(pid >= 0);
	for (n = 0; n < 150; n++)
		marker_begin(n);
	if (!pid)
		_exit(0);
	check(waitpid(pid, &status, 0) == pid && !status);
	while (!may_end())
		marker_begin(0);
	check(check_tasks() >= 1);
	puts("nobody");
	return 0;
}
