/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The agent of the injector's tests. patchbay_attach() starts a thread, which stays. The thread
 * appends one line to the file whose path is the "session": the arguments, and whether the thread
 * that called has all signals blocked.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
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

int patchbay_attach(const char *session, const char *agent, uint32_t protocol);

int patchbay_attach(const char *session, const char *agent, uint32_t protocol)
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
	snprintf(note.line, sizeof(note.line), "pid %d protocol %u agent %s blocked %d calls %d\n",
		 (int)getpid(), protocol, agent, blocked, ++calls);
	return -pthread_create(&thread, NULL, live_on, NULL);
}
