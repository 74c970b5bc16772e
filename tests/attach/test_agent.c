/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The agent of the injector's tests. patchbay_attach() starts a thread, which stays. The thread
 * appends one line to the file whose path is the argument `session`. The line has the PID, the
 * arguments `protocol` and `agent`, the number of signals that the caller of patchbay_attach()
 * blocks, the number of calls so far, the namespace (dlmopen) in which the agent was loaded, and
 * how many other threads are traced.
 */
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static struct {
	char line[512], session[256];
} note;

static void *live_on(void *arg)
{
	int fd = open(note.session, O_CREAT | O_APPEND | O_WRONLY | O_CLOEXEC, 0666);

	if (fd >= 0) {
		if (write(fd, note.line, strlen(note.line)) < 0)
			return NULL;
		close(fd);
	}
	for (;;)
		pause();
}

static int is_traced(const char *tid)
{
	char path[300], line[256];
	int tracer = 0;

	snprintf(path, sizeof(path), "/proc/self/task/%s/status", tid);
	FILE *f = fopen(path, "r");

	while (f && !tracer && fgets(line, sizeof(line), f))
		sscanf(line, "TracerPid: %d", &tracer);
	if (f)
		fclose(f);
	return tracer != 0;
}

static int others_traced(void)
{
	DIR *d = opendir("/proc/self/task");
	struct dirent *e;
	int nr = 0;

	while (d && (e = readdir(d)))
		if (e->d_name[0] != '.' && atoi(e->d_name) != gettid())
			nr += is_traced(e->d_name);
	if (d)
		closedir(d);
	return nr;
}

static long own_namespace(void)
{
	Lmid_t id = -1;
	Dl_info info;
	void *map;

	if (!dladdr1((void *)own_namespace, &info, &map, RTLD_DL_LINKMAP) ||
	    dlinfo(map, RTLD_DI_LMID, &id))
		return -1;
	return id;
}

static int attach(const char *session, const char *agent, uint32_t protocol)
{
	static int calls;
	pthread_t thread;
	sigset_t mask;
	int blocked = 0;

	if (strstr(session, "refuse"))
		return -EPROTO;
	pthread_sigmask(SIG_SETMASK, NULL, &mask);
	for (int sig = 1; sig < 32; sig++)
		blocked += sigismember(&mask, sig);
	snprintf(note.session, sizeof(note.session), "%s", session);
	snprintf(note.line, sizeof(note.line), "pid %d protocol %u agent %s blocked %d calls %d "
		 "namespace %ld traced %d\n", (int)getpid(), protocol, agent, blocked, ++calls,
		 own_namespace(), others_traced());
	return -pthread_create(&thread, NULL, live_on, NULL);
}

int patchbay_attach(const char *session, const char *agent, uint32_t protocol, int *answer);

/* Waits for the injector as the real agent does. On a busy machine, the injector may need longer
 * than 4 s. */
int patchbay_attach(const char *session, const char *agent, uint32_t protocol, int *answer)
{
	int result = attach(session, agent, protocol);
	char tid[16];

	__atomic_store_n(answer, result, __ATOMIC_RELEASE);
	snprintf(tid, sizeof(tid), "%d", (int)gettid());
	for (int i = 0; __atomic_load_n(answer, __ATOMIC_ACQUIRE) == result; i++) {
		if (i >= 4000 && !is_traced(tid))
			break;
		usleep(1000);
	}
	return result;
}
